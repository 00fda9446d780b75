//! The shapes of Slack's JSON, full as they come from the real one (platform-facts A4, B1, B2), with this world's ids.

use serde_json::{Value, json};

use super::super::shared::{random_hex, random_uuid};
use super::{ChannelKind, Twin};

pub const TEAM: &str = "T0ACME";
pub const APP: &str = "A0USHER";
pub const BOT: &str = "B0USHER";
pub const BOT_USER: &str = "U0USHER";
/// The one person whom `World::config` lets act.
pub const DANA: &str = "U0DANA";
/// A colleague of whom the configuration knows nothing.
pub const SAM: &str = "U0SAM";
/// The central channel, for kickoffs.
pub const CENTRAL: &str = "C0CENTRAL";
pub const ROOM: &str = "C0ROOM";
pub const PRIVATE_ROOM: &str = "C0PRIVATE";
pub const DANA_DM: &str = "D0DANA";

impl ChannelKind {
    /// The `channel_type` of an event.
    pub fn channel_type(self) -> &'static str {
        match self {
            Self::Public => "channel",
            Self::Private => "group",
            Self::Direct => "im",
        }
    }

    /// What stands before `:history` and `:read` in the scope for such a channel.
    pub fn scope_family(self) -> &'static str {
        match self {
            Self::Public => "channels",
            Self::Private => "groups",
            Self::Direct => "im",
        }
    }
}

pub fn user(id: &str, name: &str, display_name: &str) -> Value {
    json!({
        "id": id, "team_id": TEAM, "name": name, "deleted": false, "real_name": display_name, "tz": "Europe/Vienna",
        "profile": {"real_name": display_name, "display_name": display_name, "team": TEAM},
        "is_admin": false, "is_bot": false, "is_app_user": false, "updated": 1_700_000_000,
    })
}

/// A message as it is stored: an event without its place.
pub fn message(user: &str, text: &str, ts: &str, thread: Option<(&str, Value)>, files: &[Value]) -> Value {
    let mut message = json!({
        "type": "message", "user": user, "ts": ts, "team": TEAM, "text": text, "blocks": [rich_text(text)],
    });
    if files.is_empty() {
        message["client_msg_id"] = json!(random_uuid());
    } else {
        merge(&mut message, json!({"subtype": "file_share", "files": files, "upload": true, "display_as_bot": false}));
    }
    if let Some((thread_ts, parent_user)) = thread {
        merge(&mut message, json!({"thread_ts": thread_ts, "parent_user_id": parent_user}));
    }
    message
}

/// The event that announces a message; `app_mention` has no `channel_type` and no subtype for its files.
pub fn event(twin: Twin, message: &Value, channel: &str, kind: ChannelKind) -> Value {
    let mut event = message.clone();
    merge(&mut event, json!({"channel": channel, "event_ts": message["ts"]}));
    match twin {
        Twin::Message | Twin::MessageWithoutFiles => event["channel_type"] = json!(kind.channel_type()),
        Twin::Mention | Twin::MentionWithoutFiles => {
            event["type"] = json!("app_mention");
            remove(&mut event, &["subtype"]);
        }
    }
    if matches!(twin, Twin::MessageWithoutFiles | Twin::MentionWithoutFiles) {
        remove(&mut event, &["subtype", "files", "upload", "display_as_bot"]);
    }
    event
}

/// Changes a stored message as its author's edit does.
pub fn edit(message: &mut Value, text: &str, at: &str) {
    let edited = json!({"user": message["user"], "ts": at});
    merge(message, json!({"text": text, "blocks": [rich_text(text)], "edited": edited}));
}

pub fn changed(message: &Value, previous: &Value, channel: &str, kind: ChannelKind, event_ts: &str) -> Value {
    json!({
        "type": "message", "subtype": "message_changed", "hidden": true, "message": message,
        "previous_message": previous, "channel": channel, "channel_type": kind.channel_type(), "ts": event_ts,
        "event_ts": event_ts,
    })
}

pub fn deleted(previous: &Value, channel: &str, kind: ChannelKind, event_ts: &str) -> Value {
    json!({
        "type": "message", "subtype": "message_deleted", "hidden": true, "deleted_ts": previous["ts"],
        "previous_message": previous, "channel": channel, "channel_type": kind.channel_type(), "ts": event_ts,
        "event_ts": event_ts,
    })
}

/// The `event_callback` around an event; a retry repeats it byte for byte.
pub fn payload(event: &Value) -> Value {
    let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
    let (kind, channel, event_ts) = (text(&event["type"]), text(&event["channel"]), text(&event["event_ts"]));
    let event_time: u64 = event_ts.split('.').next().and_then(|seconds| seconds.parse().ok()).unwrap_or(0);
    json!({
        "token": "verification-token-not-used-here", "team_id": TEAM, "context_team_id": TEAM,
        "context_enterprise_id": null, "api_app_id": APP, "event": event, "type": "event_callback",
        "event_id": format!("Ev0{}", random_hex(5).to_uppercase()), "event_time": event_time,
        "authorizations": [{
            "enterprise_id": null, "team_id": TEAM, "user_id": BOT_USER, "is_bot": true,
            "is_enterprise_install": false,
        }],
        "is_ext_shared_channel": false, "event_context": format!("4-{kind}-{TEAM}-{APP}-{channel}"),
    })
}

pub fn permalink(channel: &str, ts: &str) -> String {
    format!("https://acme.slack.com/archives/{channel}/p{}", ts.replace('.', ""))
}

/// Lays the fields of one object over another.
pub fn merge(onto: &mut Value, fields: Value) {
    if let (Value::Object(onto), Value::Object(fields)) = (onto, fields) {
        onto.extend(fields);
    }
}

fn remove(from: &mut Value, names: &[&str]) {
    if let Some(from) = from.as_object_mut() {
        names.iter().for_each(|name| drop(from.remove(*name)));
    }
}

/// The block that Slack's own clients send beside the text: mentions as elements, words unescaped.
fn rich_text(text: &str) -> Value {
    let mut elements = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("<@") {
        let Some((user, after)) = after.split_once('>') else { break };
        elements.extend(words(before));
        elements.push(json!({"type": "user", "user_id": user}));
        rest = after;
    }
    elements.extend(words(rest));
    let section = json!({"type": "rich_text_section", "elements": elements});
    json!({"type": "rich_text", "block_id": random_hex(2), "elements": [section]})
}

fn words(text: &str) -> Option<Value> {
    let plain = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    (!plain.is_empty()).then(|| json!({"type": "text", "text": plain}))
}
