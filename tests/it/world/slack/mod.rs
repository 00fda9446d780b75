//! A Slack workspace with one app in it: state, what people do in it, and what a test may ask about it afterwards.
//!
//! The Web API is in `api`, the websockets are in `socket`, the file hosts in `files`, the shapes of Slack's JSON in
//! `shapes` (all after platform-facts A to C).

mod api;
mod files;
mod shapes;
mod socket;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

pub use files::{Behaviour, FileRequest, FileSpec, Transcript};
pub use shapes::{APP, BOT, BOT_USER, CENTRAL, DANA, DANA_DM, PRIVATE_ROOM, ROOM, SAM, TEAM};
pub use socket::{Ack, Frames, disconnect_frame, hello_frame};

use super::shared::{Secrets, Shared, Unexpected, random_uuid};

/// The bot scopes that the manifest asks for (platform-facts C4).
const SCOPES: &[&str] = &[
    "app_mentions:read",
    "channels:history",
    "channels:read",
    "chat:write",
    "files:read",
    "groups:history",
    "groups:read",
    "im:history",
    "im:read",
    "mpim:history",
    "mpim:read",
    "reactions:write",
    "users:read",
];

/// The fake Slack. Cheap to clone; every clone is the same workspace.
#[derive(Clone)]
pub struct FakeSlack {
    state: Shared<State>,
    secrets: Secrets,
    unexpected: Unexpected,
}

struct State {
    app_token: String,
    bot_token: String,
    scopes: BTreeSet<String>,
    users: BTreeMap<String, Value>,
    channels: BTreeMap<String, Channel>,
    files: BTreeMap<String, files::StoredFile>,
    file_requests: Vec<FileRequest>,
    last_ts: u128,
    tickets: HashSet<String>,
    sockets: socket::Sockets,
    faults: HashMap<String, VecDeque<Fault>>,
    calls: Vec<String>,
    reactions: BTreeMap<String, BTreeSet<String>>,
    reaction_log: Vec<(String, String)>,
    ephemerals: Vec<Ephemeral>,
}

struct Channel {
    name: String,
    kind: ChannelKind,
    bot_is_member: bool,
    /// By ts, which sorts by time.
    messages: BTreeMap<String, Value>,
}

/// Slack's `channel_type` of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChannelKind {
    Public,
    Private,
    Direct,
}

/// A way in which a Web API call goes wrong.
#[derive(Debug, Clone)]
pub enum Fault {
    /// HTTP 200 with `ok: false` and this error.
    Error(&'static str),
    /// HTTP 429 with `Retry-After` in seconds.
    RateLimited(u64),
    /// This HTTP status with an HTML body.
    Status(u16),
    /// Answered properly, but only after this time.
    Slow(Duration),
    /// Carried out, then the connection is closed without an answer.
    SwallowAnswer,
}

/// A message only for one person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ephemeral {
    pub channel: String,
    pub user: String,
    pub text: String,
    /// Empty outside a thread.
    pub thread_ts: String,
}

/// What somebody posted, and the envelopes by which Slack announced it.
#[derive(Debug, Clone)]
pub struct Posted {
    pub channel: String,
    pub ts: String,
    pub envelopes: Vec<Envelope>,
}

/// One event on its way to the app.
#[derive(Debug, Clone)]
pub struct Envelope {
    pub id: String,
    pub payload: Value,
}

/// One of the events that announce a post that mentions the bot; their order is not fixed, and the mention may lack the
/// files (platform-facts A5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Twin {
    Message,
    Mention,
    MentionWithoutFiles,
    MessageWithoutFiles,
}

impl FakeSlack {
    pub fn new(secrets: Secrets, unexpected: Unexpected) -> Self {
        let state = State {
            app_token: secrets.issue("slack app token", "xapp-1-A0USHER-"),
            bot_token: secrets.issue("slack bot token", "xoxb-1000-2000-"),
            scopes: SCOPES.iter().map(ToString::to_string).collect(),
            users: BTreeMap::new(),
            channels: BTreeMap::new(),
            files: BTreeMap::new(),
            file_requests: Vec::new(),
            last_ts: 0,
            tickets: HashSet::new(),
            sockets: socket::Sockets::default(),
            faults: HashMap::new(),
            calls: Vec::new(),
            reactions: BTreeMap::new(),
            reaction_log: Vec::new(),
            ephemerals: Vec::new(),
        };
        let slack = Self { state: Shared::new(state), secrets, unexpected };
        slack.add_user(DANA, "dana", "Dana");
        slack.add_user(SAM, "sam", "Sam");
        slack.add_channel(CENTRAL, "usher", ChannelKind::Public);
        slack.add_channel(ROOM, "widgets", ChannelKind::Public);
        slack.add_channel(PRIVATE_ROOM, "board", ChannelKind::Private);
        slack.add_channel(DANA_DM, "", ChannelKind::Direct);
        slack
    }

    pub fn app_token(&self) -> String {
        self.state.with(|state| state.app_token.clone())
    }

    pub fn bot_token(&self) -> String {
        self.state.with(|state| state.bot_token.clone())
    }

    pub fn add_user(&self, id: &str, name: &str, display_name: &str) {
        self.state.with(|state| state.users.insert(id.to_owned(), shapes::user(id, name, display_name)));
    }

    pub fn add_channel(&self, id: &str, name: &str, kind: ChannelKind) {
        let channel = Channel { name: name.to_owned(), kind, bot_is_member: true, messages: BTreeMap::new() };
        self.state.with(|state| state.channels.insert(id.to_owned(), channel));
    }

    /// The bot is taken out of a channel.
    pub fn remove_bot(&self, channel: &str) {
        self.state.with(|state| state.channel(channel).bot_is_member = false);
    }

    /// Takes a scope away, as for an app that was not reinstalled.
    pub fn revoke_scope(&self, scope: &str) {
        self.state.with(|state| state.scopes.remove(scope));
    }

    /// Stores a file and gives its object, to be put into a post.
    pub fn add_file(&self, spec: FileSpec) -> Value {
        self.state.with(|state| files::store(state, spec))
    }

    /// A post that was there before the app looked: stored, not announced. Its ts can be a thread.
    pub fn earlier(&self, channel: &str, thread: Option<&str>, user: &str, text: &str) -> String {
        self.state.with(|state| state.store_post(channel, thread, user, text, &[])).1
    }

    /// Somebody posts; Slack announces it with one `message` event. Without an open socket it is only stored.
    pub fn post(&self, channel: &str, thread: Option<&str>, user: &str, text: &str, files: &[Value]) -> Posted {
        self.announce(channel, thread, user, text, files, &[Twin::Message])
    }

    /// Somebody posts a message with further fields, such as `attachments` with a message that is forwarded in it.
    pub fn post_with(&self, channel: &str, thread: Option<&str>, user: &str, text: &str, fields: Value) -> Posted {
        let (event, ts) = self.state.with(|state| {
            let kind = state.channel(channel).kind;
            let ts = state.store_post(channel, thread, user, text, &[]).1;
            let message = state.message(channel, &ts);
            shapes::merge(message, fields);
            (shapes::event(Twin::Message, message, channel, kind), ts)
        });
        Posted { channel: channel.to_owned(), ts, envelopes: vec![self.send_event(&event)] }
    }

    /// Somebody posts and mentions the bot; Slack announces it with these events, in this order.
    pub fn mention(
        &self,
        channel: &str,
        thread: Option<&str>,
        user: &str,
        text: &str,
        files: &[Value],
        twins: &[Twin],
    ) -> Posted {
        self.announce(channel, thread, user, &format!("<@{BOT_USER}> {text}"), files, twins)
    }

    fn announce(
        &self,
        channel: &str,
        thread: Option<&str>,
        user: &str,
        text: &str,
        files: &[Value],
        twins: &[Twin],
    ) -> Posted {
        let (message, ts) = self.state.with(|state| state.store_post(channel, thread, user, text, files));
        let kind = self.state.with(|state| state.channel(channel).kind);
        let events = twins.iter().map(|twin| shapes::event(*twin, &message, channel, kind));
        Posted { channel: channel.to_owned(), ts, envelopes: events.map(|event| self.send_event(&event)).collect() }
    }

    /// The author edits a post: stored, and announced as `message_changed`.
    pub fn edit(&self, posted: &Posted, text: &str) -> Envelope {
        let event = self.state.with(|state| {
            let (kind, event_ts) = (state.channel(&posted.channel).kind, state.next_ts());
            let message = state.message(&posted.channel, &posted.ts);
            let previous = message.clone();
            shapes::edit(message, text, &event_ts);
            shapes::changed(message, &previous, &posted.channel, kind, &event_ts)
        });
        self.send_event(&event)
    }

    /// These fields of a post change, for whatever reason: stored, and announced as `message_changed`.
    pub fn change(&self, posted: &Posted, fields: Value) -> Envelope {
        let event = self.state.with(|state| {
            let (kind, event_ts) = (state.channel(&posted.channel).kind, state.next_ts());
            let message = state.message(&posted.channel, &posted.ts);
            let previous = message.clone();
            shapes::merge(message, fields);
            shapes::changed(message, &previous, &posted.channel, kind, &event_ts)
        });
        self.send_event(&event)
    }

    /// The author deletes a post: taken out, and announced as `message_deleted`.
    pub fn delete(&self, posted: &Posted) -> Envelope {
        let event = self.state.with(|state| {
            let (kind, event_ts) = (state.channel(&posted.channel).kind, state.next_ts());
            let previous = state.message(&posted.channel, &posted.ts).clone();
            state.channel(&posted.channel).messages.remove(&posted.ts);
            shapes::deleted(&previous, &posted.channel, kind, &event_ts)
        });
        self.send_event(&event)
    }

    /// Slack says that something about a file changed, and not what (platform-facts B4).
    pub fn file_changed(&self, file: &Value) -> Envelope {
        let event_ts = self.state.with(State::next_ts);
        self.send_event(&json!({
            "type": "file_change", "file_id": file["id"], "user_id": file["user"], "file": {"id": file["id"]},
            "event_ts": event_ts,
        }))
    }

    /// Wraps any event into an envelope and sends it on one of the open sockets.
    pub fn send_event(&self, event: &Value) -> Envelope {
        let envelope = Envelope { id: random_uuid(), payload: shapes::payload(event) };
        self.state.with(|state| state.sockets.send_envelope(&envelope, 0, ""));
        envelope
    }

    /// Slack saw no ack and sends the same payload again.
    pub fn redeliver(&self, envelope: &Envelope, retry_attempt: u32) -> Envelope {
        let again = Envelope { id: random_uuid(), payload: envelope.payload.clone() };
        self.state.with(|state| state.sockets.send_envelope(&again, retry_attempt, "timeout"));
        again
    }

    /// Slack sends the very same envelope once more, as a fresh one (platform-facts A4).
    pub fn send_again(&self, envelope: &Envelope) {
        self.state.with(|state| state.sockets.send_envelope(envelope, 0, ""));
    }

    /// The next call of this Web API method goes wrong; several faults queue up.
    pub fn fail_next(&self, method: &str, fault: Fault) {
        self.state.with(|state| state.faults.entry(method.to_owned()).or_default().push_back(fault));
    }

    /// The next attempt to open a socket goes wrong.
    pub fn refuse_open(&self, fault: Fault) {
        self.fail_next("apps.connections.open", fault);
    }

    /// The Web API methods called so far, in order.
    pub fn calls(&self) -> Vec<String> {
        self.state.with(|state| state.calls.clone())
    }

    /// The bot's reactions on a post now.
    pub fn reactions_on(&self, ts: &str) -> BTreeSet<String> {
        self.state.with(|state| state.reactions.get(ts).cloned().unwrap_or_default())
    }

    /// What the bot did with its reactions on a post, in order: `+eyes`, `-eyes`.
    pub fn reaction_history(&self, ts: &str) -> Vec<String> {
        self.state.with(|state| {
            state.reaction_log.iter().filter(|(on, _)| on == ts).map(|(_, change)| change.clone()).collect()
        })
    }

    pub fn ephemerals(&self) -> Vec<Ephemeral> {
        self.state.with(|state| state.ephemerals.clone())
    }

    /// The link to a post that a person copies.
    pub fn permalink(&self, channel: &str, ts: &str) -> String {
        shapes::permalink(channel, ts)
    }

    /// Every request to the file hosts, in order.
    pub fn file_requests(&self) -> Vec<FileRequest> {
        self.state.with(|state| state.file_requests.clone())
    }
}

impl State {
    fn channel(&mut self, id: &str) -> &mut Channel {
        self.channels.get_mut(id).expect("a channel of this workspace")
    }

    fn message(&mut self, channel: &str, ts: &str) -> &mut Value {
        self.channel(channel).messages.get_mut(ts).expect("a message of this channel")
    }

    /// A time stamp later than every one before, unique in the whole workspace.
    fn next_ts(&mut self) -> String {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970").as_micros();
        self.last_ts = now.max(self.last_ts + 1);
        format!("{}.{:06}", self.last_ts / 1_000_000, self.last_ts % 1_000_000)
    }

    /// Stores a post and gives it with its ts.
    fn store_post(
        &mut self,
        channel: &str,
        thread: Option<&str>,
        user: &str,
        text: &str,
        files: &[Value],
    ) -> (Value, String) {
        let ts = self.next_ts();
        let parent_user = thread.map(|thread| self.message(channel, thread)["user"].clone());
        let message = shapes::message(user, text, &ts, thread.zip(parent_user), files);
        self.channel(channel).messages.insert(ts.clone(), message.clone());
        (message, ts)
    }
}
