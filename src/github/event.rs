//! GitHub's webhook events to the normalized message.
//!
//! Owns which events are messages, who said them, what they are about, and which of their fields a prompt may read. It
//! must not know signatures, storage or what a message is for. Nothing in a payload is an error: users and bodies may be
//! null, fields unknown, and what is no message is passed over for a counted reason (platform-facts D).

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::assets::attachments;
use super::closing::closed_issues;
use crate::core::envelope::{Envelope, EnvelopeKey};
use crate::core::loose::{count, field, text, words};
use crate::core::message::{GitHubFacts, GitHubPlace, Message, MessageId, Person, Place, Spot, Supplement};
use crate::core::work_item::WorkItem;

/// Who usher is on GitHub: what it said itself never comes back as a message.
#[derive(Debug, Clone, Default)]
pub struct Own {
    /// The login of its token.
    pub login: Option<String>,
    /// The id of its app.
    pub app_id: Option<u64>,
    /// The key of its records.
    pub key: Option<EnvelopeKey>,
}

/// What usher looks at.
#[derive(Debug, Clone, Copy)]
pub struct Scope<'a> {
    /// The Enterprise host, `None` for github.com.
    pub host: Option<&'a str>,
    /// `owner/repo`, lower-cased.
    pub repositories: &'a [String],
}

/// What an event is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// Somebody said something.
    Message(Box<Message>),
    /// Not for usher.
    PassedOver(PassedOver),
}

/// Why an event is no message. For counting: it carries no text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PassedOver {
    /// An event of another kind.
    OtherEvent,
    /// An action in which nobody says anything, or an edit that changed no words.
    OtherAction,
    /// A repository that is not declared.
    UndeclaredRepository,
    /// usher said it.
    Own,
    /// A bot said it.
    Bot,
    /// Its account is gone, so nobody's authority covers it.
    NoAuthor,
    /// It lacks what every event has.
    Unreadable,
}

impl PassedOver {
    /// The greppable code, for logs and metrics.
    pub const fn code(self) -> &'static str {
        match self {
            Self::OtherEvent => "other-event",
            Self::OtherAction => "other-action",
            Self::UndeclaredRepository => "undeclared-repository",
            Self::Own => "own",
            Self::Bot => "bot",
            Self::NoAuthor => "no-author",
            Self::Unreadable => "unreadable",
        }
    }
}

/// Reads an event by its name.
pub fn read(event: &str, payload: &Value, scope: Scope<'_>, own: &Own) -> What {
    match message(event, payload, scope, own) {
        Ok(message) => What::Message(Box::new(message)),
        Err(why) => What::PassedOver(why),
    }
}

/// A review that came in events, with what REST says of it: its words, its state and every inline comment.
pub(super) fn review_of(message: &Message, review: &Value, comments: &[Value], host: Option<&str>) -> Message {
    let mut whole = message.clone();
    let body = text(review, "body").unwrap_or_default();
    let texts = std::iter::once(body).chain(comments.iter().filter_map(|comment| text(comment, "body")));
    let mut fields = message.github.as_ref().map(|facts| facts.fields.clone()).unwrap_or_default();
    fields.insert("review".to_owned(), Value::Object(review_fields(review)));
    let inline =
        comments.iter().filter_map(|comment| Some((count(comment, "id")?, picked(comment, COMMENT)))).collect();
    whole.merge(Message {
        text: body.to_owned(),
        attachments: texts.flat_map(|text| attachments(text, host)).collect(),
        github: Some(GitHubFacts {
            event: "pull_request_review".to_owned(),
            action: "submitted".to_owned(),
            fields,
            inline,
        }),
        ..message.clone()
    });
    whole
}

/// REST writes the state in upper case, webhooks in lower case (platform-facts D).
fn review_fields(review: &Value) -> Map<String, Value> {
    let mut fields = picked(review, REVIEW);
    if let Some(state) = text(review, "state") {
        fields.insert("state".to_owned(), json!(state.to_ascii_lowercase()));
    }
    fields
}

/// Where an event's words stand in its payload.
struct Said<'v> {
    /// The container with the words.
    container: &'v Value,
    spot: Spot,
    action: Action,
}

/// What happened to the words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Said,
    Edited,
    Deleted,
}

fn message(event: &str, payload: &Value, scope: Scope<'_>, own: &Own) -> Result<Message, PassedOver> {
    let said = said(event, payload)?;
    let item = item(payload, scope)?;
    let author = author(payload, &said, own)?;
    let body = text(said.container, "body").unwrap_or_default();
    if own.key.as_ref().is_some_and(|key| Envelope::of_comment(body, key).is_some()) {
        return Err(PassedOver::Own);
    }
    let original = MessageId::github(&item, said.spot);
    let (id, supplement) = identity(&said, original);
    let is_inline = event == "pull_request_review_comment";
    Ok(Message {
        id,
        place: Place::GitHub(GitHubPlace { closes: closes(payload, &item), item, spot: said.spot }),
        author,
        addressed: true,
        text: if is_inline { String::new() } else { body.to_owned() },
        quotes: Vec::new(),
        attachments: attachments(body, scope.host),
        permalink: text(said.container, "html_url").map(str::to_owned),
        sent_at: sent_at(&said),
        late: false,
        github: Some(facts(event, payload, &said)),
        supplement,
    })
}

fn body_of<'v>(event: &str, payload: &'v Value) -> &'v str {
    let container = match event {
        "issues" => "issue",
        "pull_request" => "pull_request",
        "pull_request_review" => "review",
        _ => "comment",
    };
    text(field(payload, container), "body").unwrap_or_default()
}

fn said<'v>(event: &str, payload: &'v Value) -> Result<Said<'v>, PassedOver> {
    let (container, spot) = match event {
        "issues" => (field(payload, "issue"), Some(Spot::Description)),
        "pull_request" => (field(payload, "pull_request"), Some(Spot::Description)),
        "issue_comment" => (field(payload, "comment"), count(field(payload, "comment"), "id").map(Spot::Comment)),
        "pull_request_review" => (field(payload, "review"), count(field(payload, "review"), "id").map(Spot::Review)),
        "pull_request_review_comment" => {
            let comment = field(payload, "comment");
            (comment, count(comment, "pull_request_review_id").map(Spot::Review))
        }
        _ => return Err(PassedOver::OtherEvent),
    };
    let action = action(event, text(payload, "action").unwrap_or_default(), payload)?;
    let spot = spot.filter(|_| container.is_object()).ok_or(PassedOver::Unreadable)?;
    Ok(Said { container, spot, action })
}

/// An edit counts only when the body really changed: GitHub sends `edited` with no changes too (field report W11).
fn action(event: &str, action: &str, payload: &Value) -> Result<Action, PassedOver> {
    let before = field(field(field(payload, "changes"), "body"), "from").as_str();
    let body_changed = before.is_some_and(|before| before != body_of(event, payload));
    match (event, action) {
        ("issues" | "pull_request", "opened")
        | ("issue_comment" | "pull_request_review_comment", "created")
        | ("pull_request_review", "submitted") => Ok(Action::Said),
        (_, "edited") if body_changed => Ok(Action::Edited),
        ("issue_comment", "deleted") => Ok(Action::Deleted),
        _ => Err(PassedOver::OtherAction),
    }
}

fn identity(said: &Said<'_>, original: MessageId) -> (MessageId, Option<Supplement>) {
    match said.action {
        Action::Said => (original, None),
        Action::Edited => {
            let moment = text(said.container, "updated_at").unwrap_or("unknown");
            (original.followed_by(&format!("edited/{moment}")), Some(Supplement::Edited { of: original }))
        }
        Action::Deleted => (original.followed_by("deleted"), Some(Supplement::Deleted { of: original })),
    }
}

fn item(payload: &Value, scope: Scope<'_>) -> Result<WorkItem, PassedOver> {
    let repository =
        text(field(payload, "repository"), "full_name").ok_or(PassedOver::Unreadable)?.to_ascii_lowercase();
    if !scope.repositories.contains(&repository) {
        return Err(PassedOver::UndeclaredRepository);
    }
    let holder = ["issue", "pull_request"].into_iter().find_map(|name| count(field(payload, name), "number"));
    let number = holder.ok_or(PassedOver::Unreadable)?;
    let host = scope.host.map(|host| format!("{host}/")).unwrap_or_default();
    format!("{host}{repository}#{number}").parse().map_err(|_| PassedOver::Unreadable)
}

/// Who said it. An edit or a deletion is judged by who made it, not by whose words they were (spec 11.5 item 49).
fn author(payload: &Value, said: &Said<'_>, own: &Own) -> Result<Person, PassedOver> {
    let user = match said.action {
        Action::Said => field(said.container, "user"),
        Action::Edited | Action::Deleted => field(payload, "sender"),
    };
    let login = text(user, "login").ok_or(PassedOver::NoAuthor)?.to_ascii_lowercase();
    let app = count(field(said.container, "performed_via_github_app"), "id");
    if own.login.as_deref().is_some_and(|own| own.eq_ignore_ascii_case(&login)) || (app.is_some() && app == own.app_id)
    {
        return Err(PassedOver::Own);
    }
    if text(user, "type") == Some("Bot") {
        return Err(PassedOver::Bot);
    }
    Ok(Person::GitHub(login))
}

/// For a pull request, the issues that its text or its branch says it closes.
fn closes(payload: &Value, item: &WorkItem) -> Vec<WorkItem> {
    closed_by(field(payload, "pull_request"), item)
}

/// The issues that a pull request says it closes.
pub(super) fn closed_by(pull_request: &Value, item: &WorkItem) -> Vec<WorkItem> {
    let body = text(pull_request, "body").unwrap_or_default();
    let branch = text(field(pull_request, "head"), "ref").unwrap_or_default();
    closed_issues(item, body, branch)
}

fn sent_at(said: &Said<'_>) -> Timestamp {
    let names = match said.action {
        Action::Said | Action::Deleted => ["created_at", "submitted_at", "updated_at"],
        Action::Edited => ["updated_at", "submitted_at", "created_at"],
    };
    let moment = names.into_iter().find_map(|name| text(said.container, name));
    moment.and_then(|moment| moment.parse().ok()).unwrap_or(Timestamp::UNIX_EPOCH)
}

fn facts(event: &str, payload: &Value, said: &Said<'_>) -> GitHubFacts {
    let mut fields = Map::new();
    let mut inline = BTreeMap::new();
    for (name, allowed) in ALLOWED {
        let container = field(payload, name);
        let mut picked = picked(container, allowed);
        if std::ptr::eq(container, said.container) {
            picked.extend(self::picked(container, WORDS));
        }
        match count(said.container, "id") {
            _ if picked.is_empty() => {}
            Some(id) if event == "pull_request_review_comment" && *name == "comment" => drop(inline.insert(id, picked)),
            _ => drop(fields.insert((*name).to_owned(), Value::Object(picked))),
        }
    }
    if let Some(actor) = text(field(payload, "sender"), "login") {
        fields.insert("actor".to_owned(), json!(actor));
    }
    GitHubFacts {
        event: event.to_owned(),
        action: text(payload, "action").unwrap_or_default().to_owned(),
        fields,
        inline,
    }
}

/// The words, of the container that the event is about. An issue's description is repeated in the event of every comment
/// on it, and is then not what was said, nor said by who may speak.
const WORDS: &[&str] = &["body", "author"];

/// What a prompt may read, by container. Anything else in a payload never reaches one.
const ALLOWED: &[(&str, &[&str])] = &[
    ("comment", COMMENT),
    ("review", REVIEW),
    ("issue", &["number", "title", "state", "html_url"]),
    ("pull_request", &["number", "title", "state", "html_url", "draft", "merged"]),
];

const COMMENT: &[&str] = &["path", "line", "body", "html_url", "author"];
const REVIEW: &[&str] = &["state", "body", "html_url", "author"];

fn picked(container: &Value, allowed: &[&str]) -> Map<String, Value> {
    let pick = |name: &&str| {
        let value = match *name {
            "author" => field(field(container, "user"), "login"),
            "body" => {
                return words(container, "body").map(|body| ("body".to_owned(), json!(body.replace("\r\n", "\n"))));
            }
            name => field(container, name),
        };
        (value.is_string() || value.is_number() || value.is_boolean()).then(|| ((*name).to_owned(), value.clone()))
    };
    allowed.iter().filter_map(pick).collect()
}
