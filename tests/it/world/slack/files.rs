//! Slack's file hosts: file objects as Slack sends them, and every way in which a download is known to go
//! (platform-facts B3, B4, C2).

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use serde_json::{Value, json};

use super::super::http::{self, BrokenOff, Call, End, Reply};
use super::super::shared::random_hex;
use super::{DANA, FakeSlack, State, TEAM, shapes};

/// A file to be attached.
#[derive(Debug, Clone)]
pub struct FileSpec {
    name: String,
    mimetype: String,
    bytes: Bytes,
    behaviours: VecDeque<Behaviour>,
    transcripts: VecDeque<Transcript>,
    fields: Value,
}

/// What the file host does with a download that carries the right token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behaviour {
    Normal,
    /// Enterprise Grid: sent on to files-origin.slack.com, which needs the bearer too.
    Grid,
    /// 200 with the sign-in page.
    SignInPage,
    /// Sent on to the sign-in page.
    SignInRedirect,
    /// Sent on to a host that is none of Slack's.
    RedirectOff(&'static str),
    /// Content-Length promises more than comes before the connection closes.
    Truncated,
    /// A complete answer with fewer bytes than the file object declares.
    ShortOfDeclared,
    /// The head, half of the bytes, then nothing.
    Stall,
    /// So many bytes a second.
    Slow(usize),
    /// No Content-Length, and no end.
    Endless,
    /// No answer before this time, then a normal one.
    Delay(Duration),
    Status(u16),
}

/// A state of Slack's transcription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transcript {
    None,
    Processing,
    Failed,
    /// Done: a preview, whether it is cut, and the captions where there are any.
    Complete {
        preview: String,
        has_more: bool,
        vtt: Option<String>,
    },
}

/// A request to one of the file hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRequest {
    pub host: String,
    pub path: String,
    /// Whether it had an `Authorization` header, whatever was in it.
    pub with_authorization: bool,
}

pub struct StoredFile {
    object: Value,
    spec: FileSpec,
}

impl FileSpec {
    pub fn new(name: &str, mimetype: &str, bytes: impl Into<Bytes>) -> Self {
        Self {
            name: name.to_owned(),
            mimetype: mimetype.to_owned(),
            bytes: bytes.into(),
            behaviours: VecDeque::from([Behaviour::Normal]),
            transcripts: VecDeque::new(),
            fields: json!({}),
        }
    }

    /// How its downloads go, one after another; the last one stays.
    pub fn behaving(mut self, behaviours: impl Into<VecDeque<Behaviour>>) -> Self {
        self.behaviours = behaviours.into();
        self
    }

    /// The states of its transcription: the first in the post, each next one at the next `files.info`; the last one
    /// stays.
    pub fn transcribed(mut self, transcripts: impl Into<VecDeque<Transcript>>) -> Self {
        self.transcripts = transcripts.into();
        self
    }

    /// Fields of the file object that differ from the usual.
    pub fn with(mut self, fields: Value) -> Self {
        shapes::merge(&mut self.fields, fields);
        self
    }
}

/// Stores the file and gives its object.
pub fn store(state: &mut State, spec: FileSpec) -> Value {
    let id = format!("F0{}", random_hex(5).to_uppercase());
    let mut object = usual_object(&id, &spec);
    shapes::merge(&mut object, spec.fields.clone());
    if let Some(transcript) = spec.transcripts.front() {
        shapes::merge(&mut object, transcription(&id, transcript));
    }
    state.files.insert(id, StoredFile { object: object.clone(), spec });
    object
}

/// The file object for `files.info`; the transcription moves on by one state.
pub fn look_up(state: &mut State, id: &str) -> Option<Value> {
    let file = state.files.get_mut(id)?;
    advance(&mut file.spec.transcripts);
    if let Some(transcript) = file.spec.transcripts.front() {
        shapes::merge(&mut file.object, transcription(id, transcript));
    }
    Some(file.object.clone())
}

impl FakeSlack {
    /// Answers for files.slack.com, files-origin.slack.com and the workspace's own host.
    pub async fn file(&self, call: Call) -> Result<Reply, BrokenOff> {
        let with_authorization = call.authorization().is_some();
        let request = FileRequest { host: call.host.clone(), path: call.path.clone(), with_authorization };
        let authorised = self.state.with(|state| {
            state.file_requests.push(request);
            call.bears(&state.bot_token) && state.scopes.contains("files:read")
        });
        if call.host == "acme.slack.com" {
            return Ok(sign_in_page());
        }
        let Some((object, spec)) = self.state.with(|state| find(state, &call)) else {
            self.unexpected.record(format!("{} https://{}{}", call.method, call.host, call.path));
            return Ok(http::whole(404, "text/html", "no such file"));
        };
        if !authorised {
            return Ok(sign_in_redirect(&call.path));
        }
        if call.path.ends_with(".vtt") {
            return Ok(captions(&spec));
        }
        let behaviour = self.state.with(|state| next_behaviour(state, &call, &object));
        Ok(serve(&call, behaviour, &spec).await)
    }
}

/// The file that the path names: `/files-pri/<team>-<file>/...`.
fn find(state: &State, call: &Call) -> Option<(Value, FileSpec)> {
    let id = call.path.split('/').nth(2)?.split('-').nth(1)?;
    let file = state.files.get(id)?;
    Some((file.object.clone(), file.spec.clone()))
}

fn next_behaviour(state: &mut State, call: &Call, object: &Value) -> Behaviour {
    let id = object["id"].as_str().unwrap_or("");
    let Some(file) = state.files.get_mut(id) else { return Behaviour::Normal };
    let behaviour = file.spec.behaviours.front().copied().unwrap_or(Behaviour::Normal);
    let second_leg = behaviour == Behaviour::Grid && call.host == "files-origin.slack.com";
    if !(behaviour == Behaviour::Grid && call.host == "files.slack.com") {
        advance(&mut file.spec.behaviours);
    }
    if second_leg { Behaviour::Normal } else { behaviour }
}

/// Goes on to the next state; the last one stays.
fn advance<T>(states: &mut VecDeque<T>) {
    if states.len() > 1 {
        states.pop_front();
    }
}

async fn serve(call: &Call, behaviour: Behaviour, spec: &FileSpec) -> Reply {
    let bytes = spec.bytes.clone();
    let half = bytes.slice(..bytes.len() / 2);
    match behaviour {
        Behaviour::Normal => http::whole(200, &spec.mimetype, bytes),
        Behaviour::Grid => http::redirect(&format!("https://files-origin.slack.com{}", call.path)),
        Behaviour::SignInPage => sign_in_page(),
        Behaviour::SignInRedirect => sign_in_redirect(&call.path),
        Behaviour::RedirectOff(host) => http::redirect(&format!("https://{host}{}", call.path)),
        Behaviour::Truncated => http::streamed(&spec.mimetype, Some(bytes.len()), http::then(half, End::BreakOff)),
        Behaviour::ShortOfDeclared => http::whole(200, &spec.mimetype, half),
        Behaviour::Stall => http::streamed(&spec.mimetype, Some(bytes.len()), http::then(half, End::Silence)),
        Behaviour::Slow(per_second) => {
            http::streamed(&spec.mimetype, Some(bytes.len()), http::paced(bytes, per_second))
        }
        Behaviour::Endless => {
            let block = Bytes::from(vec![b'x'; 64 * 1024]);
            http::streamed(&spec.mimetype, None, stream::repeat_with(move || Ok(block.clone())))
        }
        Behaviour::Delay(time) => {
            tokio::time::sleep(time).await;
            http::whole(200, &spec.mimetype, bytes)
        }
        Behaviour::Status(status) => http::whole(status, "text/plain", "the fake world says so"),
    }
}

fn captions(spec: &FileSpec) -> Reply {
    match spec.transcripts.front() {
        Some(Transcript::Complete { vtt: Some(vtt), .. }) => http::whole(200, "text/vtt; charset=utf-8", vtt.clone()),
        _ => http::whole(404, "text/html", "no captions"),
    }
}

/// What Slack does with a download that lacks the right token (platform-facts C2).
fn sign_in_redirect(path: &str) -> Reply {
    let reply = http::redirect(&format!("https://acme.slack.com/?redir={}", path.replace('/', "%2F")));
    http::with_header(reply, "x-slack-meta", "?;acl_fail")
}

fn sign_in_page() -> Reply {
    let page = "<!DOCTYPE html><html><head><title>Sign in | Slack</title></head><body>Sign in to acme</body></html>";
    http::whole(200, "text/html; charset=utf-8", page)
}

fn usual_object(id: &str, spec: &FileSpec) -> Value {
    let FileSpec { name, mimetype, .. } = spec;
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    let family = mimetype.split('/').next().unwrap_or("");
    let display = if ["audio", "video"].contains(&family) { family } else { "unknown" };
    let slug = slug(name);
    json!({
        "id": id, "created": 1_760_000_000, "timestamp": 1_760_000_000, "name": name, "title": name,
        "mimetype": mimetype, "filetype": extension, "pretty_type": extension.to_uppercase(), "user": DANA,
        "user_team": TEAM, "editable": false, "size": spec.bytes.len(), "mode": "hosted", "is_external": false,
        "external_type": "", "is_public": true, "public_url_shared": false, "display_as_bot": false, "username": "",
        "url_private": format!("https://files.slack.com/files-pri/{TEAM}-{id}/{slug}"),
        "url_private_download": format!("https://files.slack.com/files-pri/{TEAM}-{id}/download/{slug}"),
        "media_display_type": display,
        "permalink": format!("https://acme.slack.com/files/{DANA}/{id}/{slug}"),
        "permalink_public": format!("https://slack-files.com/{TEAM}-{id}-0123456789"),
        "is_starred": false, "has_rich_preview": false, "file_access": "visible",
    })
}

/// The last part of a file's URL: never the name itself (platform-facts B3).
fn slug(name: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || ".-".contains(letter) { letter } else { '_' };
    name.to_lowercase().chars().map(plain).collect()
}

fn transcription(id: &str, transcript: &Transcript) -> Value {
    match transcript {
        Transcript::None => json!({"transcription": {"status": "none"}}),
        Transcript::Processing => json!({"transcription": {"status": "processing"}}),
        Transcript::Failed => json!({"transcription": {"status": "failed"}}),
        Transcript::Complete { preview, has_more, vtt } => {
            let preview = json!({"content": preview, "has_more": has_more});
            let mut fields = json!({
                "transcription": {"status": "complete", "locale": "en-US", "preview": preview},
            });
            if vtt.is_some() {
                let url = format!("https://files.slack.com/files-tmb/{TEAM}-{id}-0123456789/file.vtt?_xcb=1");
                fields["vtt"] = json!(url);
            }
            fields
        }
    }
}
