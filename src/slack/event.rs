//! Slack's message events to the normalized message.
//!
//! Owns which events and subtypes are messages, who said them, and where their words stand. It must not know sockets,
//! storage or what a message is for. Nothing in a payload is an error: what is no message is passed over for a counted
//! reason, and a field of the wrong type counts as missing.

mod change;
mod forward;
#[cfg(test)]
mod tests;

use jiff::Timestamp;
use serde_json::Value;

use super::file::read_files;
use super::mrkdwn::{Reader, as_mrkdwn, mentions, unaddressed};
use crate::core::attachment::AttachmentRef;
use crate::core::loose::{field, flag, id, items, text, words};
use crate::core::message::{ConversationKind, Message, MessageId, Person, Place, SlackPlace};

pub use super::mrkdwn::Names;

/// What an `event_callback` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Slack's id of it: the same across retries, another one for each twin (platform-facts A5).
    pub event_id: Option<String>,
    /// What it is.
    pub what: What,
}

/// What an event, or an item of a conversation's history, is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// Somebody said something.
    Message {
        /// The message.
        message: Box<Message>,
        /// Which of the twins brought it.
        copy: Copy,
    },
    /// Something about a file is other than it was; Slack does not say what. A transcript may be ready (platform-facts B4).
    FileChanged(String),
    /// Not a message of a person.
    PassedOver(PassedOver),
}

/// The two events that bring a post that mentions usher, in either order, each perhaps without what the other has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Copy {
    /// The `message` event, or the post itself.
    Post,
    /// The `app_mention` event. It knows no kind of conversation, and may lack the files.
    Mention,
}

/// Why something is no message. For counting: it carries no text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PassedOver {
    /// An event of another type.
    NotAMessage,
    /// usher said it.
    Own,
    /// Another bot, or Slack itself, said it.
    Bot,
    /// A subtype that Slack writes into a conversation: joins, topics, pins.
    System,
    /// A subtype that is not known here.
    UnknownSubtype,
    /// Slack changed a message itself: a preview, the state of a file. Or it is the mention's copy of an edit.
    Edited,
    /// A message was deleted, and whose it was is not said.
    Deleted,
    /// It says to be a message, and lacks what every message has: a place, an author, a time stamp.
    Unreadable,
}

impl PassedOver {
    /// The greppable code, for logs and metrics.
    pub const fn code(self) -> &'static str {
        match self {
            Self::NotAMessage => "not-a-message",
            Self::Own => "own",
            Self::Bot => "bot",
            Self::System => "system",
            Self::UnknownSubtype => "unknown-subtype",
            Self::Edited => "edited",
            Self::Deleted => "deleted",
            Self::Unreadable => "unreadable",
        }
    }
}

/// The conversation that a post stands in, when the post itself does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PostedIn<'a> {
    /// Workspace id.
    pub team: &'a str,
    /// Conversation id.
    pub channel: &'a str,
    /// What kind of conversation it is.
    pub kind: ConversationKind,
}

/// Subtypes that Slack writes itself (platform-facts B1). Known by name only to be counted apart: what is neither here
/// nor a message is passed over as well, and a new subtype that carries people's words shows in the counts.
const SYSTEM_SUBTYPES: &[&str] = &[
    "app_conversation_leave",
    "assistant_app_thread",
    "bot_add",
    "bot_disable",
    "bot_enable",
    "bot_remove",
    "channel_archive",
    "channel_canvas_updated",
    "channel_convert_to_private",
    "channel_convert_to_public",
    "channel_join",
    "channel_leave",
    "channel_name",
    "channel_posting_permissions",
    "channel_purpose",
    "channel_topic",
    "channel_unarchive",
    "ekm_access_denied",
    "file_comment",
    "file_mention",
    "group_archive",
    "group_join",
    "group_leave",
    "group_name",
    "group_purpose",
    "group_topic",
    "group_unarchive",
    "huddle_thread",
    "joiner_notification",
    "message_replied",
    "pinned_item",
    "reminder_add",
    "reply_broadcast",
    "sh_room_created",
    "share_shortcut",
    "slackbot_response",
    "tabbed_canvas_updated",
    "tombstone",
    "unpinned_item",
];

/// Slack's own account. Its posts carry no `bot_id`.
const SLACKBOT: &str = "USLACKBOT";

/// Reads an `event_callback` body, as HTTP and Socket Mode bring it.
///
/// `own_user` is the bot's user id from `auth.test`; until it is known, the bot's authorization in the payload says it.
pub fn read(payload: &Value, own_user: Option<&str>, names: &Names) -> Event {
    let event_id = text(payload, "event_id").map(str::to_owned);
    let own = own_user.or_else(|| authorized_bot(payload));
    Event { event_id, what: read_event(payload, Reader { names, own }) }
}

/// Reads a post of `conversations.replies` or `conversations.history`. There, an edited post is the message as it is now.
pub fn read_post(post: &Value, place: PostedIn<'_>, own_user: Option<&str>, names: &Names) -> What {
    read_copy(post, Copy::Post, Some(place), Reader { names, own: own_user })
}

fn read_event(payload: &Value, reader: Reader<'_>) -> What {
    let event = field(payload, "event");
    let copy = match text(event, "type") {
        Some("message") => Copy::Post,
        Some("app_mention") => Copy::Mention,
        Some("file_change") => return file_changed(event),
        Some(_) => return What::PassedOver(PassedOver::NotAMessage),
        None => return What::PassedOver(PassedOver::Unreadable),
    };
    match text(event, "subtype").filter(|_| copy == Copy::Post) {
        Some("message_changed") => change::changed(event, posted_in(payload), reader),
        Some("message_deleted") => change::deleted(event, posted_in(payload), reader),
        _ => read_copy(event, copy, posted_in(payload), reader),
    }
}

fn file_changed(event: &Value) -> What {
    let file = id(event, "file_id").or_else(|| id(field(event, "file"), "id"));
    file.map_or(What::PassedOver(PassedOver::Unreadable), |file| What::FileChanged(file.to_owned()))
}

fn read_copy(post: &Value, copy: Copy, place: Option<PostedIn<'_>>, reader: Reader<'_>) -> What {
    if let Some(reason) = passed_over(post, copy, reader.own) {
        return What::PassedOver(reason);
    }
    match place.and_then(|place| message(post, copy, place, reader)) {
        Some(message) => What::Message { message: Box::new(message), copy },
        None => What::PassedOver(PassedOver::Unreadable),
    }
}

/// Why a post is not for usher, if it is not. Own posts first: they carry a `bot_id` too.
fn passed_over(post: &Value, copy: Copy, own: Option<&str>) -> Option<PassedOver> {
    let user = text(post, "user");
    if user.is_some() && user == own {
        return Some(PassedOver::Own);
    }
    let is_bot = text(post, "bot_id").is_some() || field(post, "bot_profile").is_object() || user == Some(SLACKBOT);
    by_subtype(post).or(is_bot.then_some(PassedOver::Bot)).or_else(|| re_mentioned(post, copy))
}

/// The verdict of the subtype. "Has a subtype, so it is none" cost others every upload (field report F7).
fn by_subtype(post: &Value) -> Option<PassedOver> {
    match text(post, "subtype")? {
        "file_share" | "thread_broadcast" | "me_message" => None,
        "bot_message" => Some(PassedOver::Bot),
        subtype if SYSTEM_SUBTYPES.contains(&subtype) => Some(PassedOver::System),
        _ => Some(PassedOver::UnknownSubtype),
    }
}

/// An edit of a message with a mention fires `app_mention` again, under the first time stamp (platform-facts A5).
fn re_mentioned(post: &Value, copy: Copy) -> Option<PassedOver> {
    (copy == Copy::Mention && field(post, "edited").is_object()).then_some(PassedOver::Edited)
}

/// The message in a post; `None` when it lacks an author or a time stamp.
fn message(post: &Value, copy: Copy, place: PostedIn<'_>, reader: Reader<'_>) -> Option<Message> {
    let user = id(post, "user")?;
    let ts = text(post, "ts")?;
    let sent_at = moment(ts)?;
    let raw = raw_words(post);
    let forwards: Vec<&Value> = forwards(post).collect();
    Some(Message {
        id: MessageId::slack(place.team, place.channel, ts),
        place: Place::Slack(SlackPlace {
            team: place.team.to_owned(),
            channel: place.channel.to_owned(),
            ts: ts.to_owned(),
            thread: text(post, "thread_ts").filter(|thread| *thread != ts && is_ts(thread)).map(str::to_owned),
            conversation: place.kind,
        }),
        author: Person::Slack(user.to_owned()),
        addressed: copy == Copy::Mention || reader.own.is_some_and(|own| mentions(&raw, own)),
        text: reader.plain(unaddressed(&raw, reader.own)),
        quotes: forwards.iter().map(|attachment| forward::quote(attachment, reader)).collect(),
        attachments: attachments(post, &forwards),
        permalink: None,
        sent_at,
        late: false,
        github: None,
        supplement: None,
    })
}

fn forwards(post: &Value) -> impl Iterator<Item = &Value> {
    items(field(post, "attachments")).iter().filter(|attachment| forward::is_forward(attachment))
}

/// The author's words as mrkdwn: `text`, else the blocks, else what the cards say when there is nothing else at all (field
/// report T19). A preview next to words or a forward is somebody else's text.
fn raw_words(post: &Value) -> String {
    if let Some(text) = words(post, "text") {
        return text.to_owned();
    }
    let blocks = as_mrkdwn(field(post, "blocks"));
    if !blocks.is_empty() || forwards(post).next().is_some() || !read_files(field(post, "files")).is_empty() {
        return blocks;
    }
    let cards = items(field(post, "attachments")).iter().map(forward::card);
    cards.filter(|card| !card.trim().is_empty()).collect::<Vec<_>>().join("\n")
}

/// All files, each once: the post's own, those that stand in its text only, the forwarded ones.
fn attachments(post: &Value, forwards: &[&Value]) -> Vec<AttachmentRef> {
    let own = read_files(field(post, "files")).into_iter().chain(forward::files_in_text(field(post, "blocks")));
    let forwarded = forwards.iter().flat_map(|attachment| forward::files(attachment));
    let mut files: Vec<AttachmentRef> = Vec::new();
    for file in own.chain(forwarded) {
        if !files.iter().any(|known| known.id == file.id) {
            files.push(file);
        }
    }
    files
}

/// The event's conversation. In a channel that is shared with another workspace, `team_id` may be that one's: the
/// authorization names the workspace that usher is installed in, which is the one that catch-up knows (bolt-python,
/// `slack_bolt/request/internals.py`).
fn posted_in(payload: &Value) -> Option<PostedIn<'_>> {
    let event = field(payload, "event");
    let channel = id(event, "channel")?;
    let authorized =
        items(field(payload, "authorizations")).iter().find_map(|authorization| id(authorization, "team_id"));
    let team = authorized.or_else(|| id(payload, "team_id")).or_else(|| id(event, "team"))?;
    Some(PostedIn { team, channel, kind: kind(event, channel) })
}

/// `app_mention` has no `channel_type`; a direct conversation still shows in its id.
fn kind(event: &Value, channel: &str) -> ConversationKind {
    match text(event, "channel_type") {
        Some("channel") => ConversationKind::Channel,
        Some("group") => ConversationKind::Private,
        Some("im" | "app_home") => ConversationKind::Direct,
        Some("mpim") => ConversationKind::GroupDirect,
        _ if channel.starts_with('D') => ConversationKind::Direct,
        _ => ConversationKind::Unknown,
    }
}

fn authorized_bot(payload: &Value) -> Option<&str> {
    let mut bots = items(field(payload, "authorizations")).iter().filter(|entry| flag(entry, "is_bot"));
    bots.find_map(|entry| id(entry, "user_id"))
}

/// Whether a text is a time stamp: digits, and perhaps a fraction. Older ones lack the dot (platform-facts B1).
fn is_ts(text: &str) -> bool {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    text.split_once('.').map_or_else(|| digits(text), |(seconds, fraction)| digits(seconds) && digits(fraction))
}

/// The moment that a time stamp names.
fn moment(ts: &str) -> Option<Timestamp> {
    let (seconds, fraction) = ts.split_once('.').unwrap_or((ts, "0"));
    let nanoseconds = format!("{fraction:0<9.9}").parse().ok()?;
    is_ts(ts).then(|| Timestamp::new(seconds.parse().ok()?, nanoseconds).ok()).flatten()
}
