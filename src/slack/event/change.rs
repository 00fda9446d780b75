//! Changes of a message: what somebody wrote anew, and what was taken back.
//!
//! Owns telling a person's edit from Slack's own changes. `message_changed` also comes for link previews, for the state of
//! files and for metadata (platform-facts B1), and each of those once started a turn of an agent (field report T15): only
//! other words or further files are an edit. It must not know what becomes of one.

use serde_json::Value;

use super::{Copy, PassedOver, PostedIn, What, is_ts, message, moment, passed_over, raw_words};
use crate::core::attachment::AttachmentRef;
use crate::core::loose::{field, id, text};
use crate::core::message::{Message, Person, Supplement};
use crate::slack::event::forward;
use crate::slack::file::read_files;
use crate::slack::mrkdwn::{Reader, unaddressed};

/// What a `message_changed` event says.
pub(super) fn changed(event: &Value, place: Option<PostedIn<'_>>, reader: Reader<'_>) -> What {
    let (now, before) = (field(event, "message"), field(event, "previous_message"));
    // A deleted post that had replies stays as a tombstone, and arrives as a change (platform-facts B1).
    if text(now, "subtype") == Some("tombstone") {
        return taken_back(event, text(now, "ts"), place, reader);
    }
    if let Some(reason) = passed_over(now, Copy::Post, reader.own) {
        return What::PassedOver(reason);
    }
    if !is_edit(now, before, reader) {
        return What::PassedOver(PassedOver::Edited);
    }
    found(place.and_then(|place| edit(event, place, reader)))
}

/// What a `message_deleted` event says.
pub(super) fn deleted(event: &Value, place: Option<PostedIn<'_>>, reader: Reader<'_>) -> What {
    taken_back(event, text(event, "deleted_ts"), place, reader)
}

/// Who took it back is not said; the note names whose it was. Nobody knows that when the previous message is missing.
fn taken_back(event: &Value, ts: Option<&str>, place: Option<PostedIn<'_>>, reader: Reader<'_>) -> What {
    let before = field(event, "previous_message");
    if let Some(reason) = passed_over(before, Copy::Post, reader.own) {
        return What::PassedOver(reason);
    }
    if id(before, "user").is_none() || text(before, "ts") != ts {
        return What::PassedOver(PassedOver::Deleted);
    }
    let taken_back = || {
        let original = message(before, Copy::Post, place?, reader)?;
        Some(Message {
            id: original.id.followed_by("deleted"),
            text: String::new(),
            quotes: Vec::new(),
            attachments: Vec::new(),
            sent_at: text(event, "event_ts").and_then(moment).unwrap_or(original.sent_at),
            supplement: Some(Supplement::Deleted { of: original.id.clone() }),
            ..original
        })
    };
    found(taken_back())
}

fn found(message: Option<Message>) -> What {
    match message {
        Some(message) => What::Message { message: Box::new(message), copy: Copy::Post },
        None => What::PassedOver(PassedOver::Unreadable),
    }
}

/// Whether the words are others now, or files were added. Without the previous message (it may be `[]`), Slack's mark of
/// a person's edit has to do.
fn is_edit(now: &Value, before: &Value, reader: Reader<'_>) -> bool {
    if text(before, "ts").is_none() {
        return field(now, "edited").is_object();
    }
    words(now, reader) != words(before, reader) || !added_files(now, before).is_empty()
}

/// The message as it reads now, with the files that were not in it before; judged by who edited it.
fn edit(event: &Value, place: PostedIn<'_>, reader: Reader<'_>) -> Option<Message> {
    let (now, before) = (field(event, "message"), field(event, "previous_message"));
    let original = message(now, Copy::Post, place, reader)?;
    let edited = field(now, "edited");
    let ts =
        [text(edited, "ts"), text(event, "event_ts"), text(event, "ts")].into_iter().flatten().find(|ts| is_ts(ts))?;
    let editor = id(edited, "user").map(|user| Person::Slack(user.to_owned()));
    Some(Message {
        id: original.id.followed_by(&format!("edited/{ts}")),
        author: editor.unwrap_or(original.author),
        quotes: Vec::new(),
        attachments: added_files(now, before),
        sent_at: moment(ts)?,
        supplement: Some(Supplement::Edited { of: original.id }),
        ..original
    })
}

/// What the agent reads of a post.
fn words(post: &Value, reader: Reader<'_>) -> String {
    reader.plain(unaddressed(&raw_words(post), reader.own))
}

/// The post's own files that it had not before. Those of forwards do not count: the preview of a link to a message brings
/// that message's files along.
fn added_files(now: &Value, before: &Value) -> Vec<AttachmentRef> {
    let had = own_files(before);
    let mut added: Vec<AttachmentRef> = Vec::new();
    for file in own_files(now) {
        if !had.iter().chain(&added).any(|known| known.id == file.id) {
            added.push(file);
        }
    }
    added
}

fn own_files(post: &Value) -> Vec<AttachmentRef> {
    read_files(field(post, "files")).into_iter().chain(forward::files_in_text(field(post, "blocks"))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::core::message::{MessageId, Place};
    use crate::slack::event::{Names, read};

    const TS: &str = "1700000000.000100";
    const LATER: &str = "1700000060.000200";

    /// A post of Dana in a thread, with these fields over it.
    fn post(over: &Value) -> Value {
        let mut post =
            json!({"type": "message", "user": "U1", "ts": TS, "thread_ts": "1699999999.000001", "text": "left"});
        post.as_object_mut().unwrap().extend(over.as_object().unwrap().clone());
        post
    }

    fn edited() -> Value {
        json!({"user": "U1", "ts": LATER})
    }

    fn event(fields: &Value) -> What {
        let mut event = json!({
            "type": "message", "hidden": true, "channel": "C1", "channel_type": "channel", "ts": LATER, "event_ts": LATER
        });
        event.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let authorizations = json!([{"team_id": "T1", "user_id": "UBOT", "is_bot": true}]);
        let payload = json!({"team_id": "T1", "event_id": "Ev1", "event": event, "authorizations": authorizations});
        read(&payload, None, &Names::default()).what
    }

    fn change(before: &Value, now: &Value) -> What {
        event(&json!({"subtype": "message_changed", "message": now, "previous_message": before}))
    }

    fn message_of(what: What) -> Message {
        match what {
            What::Message { message, .. } => *message,
            other => panic!("no message: {other:?}"),
        }
    }

    fn original() -> MessageId {
        MessageId::slack("T1", "C1", TS)
    }

    #[test]
    fn other_words_are_an_edit_by_its_editor_in_the_place_of_the_message() {
        let now = post(&json!({"text": "<@UBOT> right &amp; proper", "edited": {"user": "U2", "ts": LATER}}));
        let message = message_of(change(&post(&json!({})), &now));
        assert_eq!(message.id, original().followed_by(&format!("edited/{LATER}")));
        assert_eq!(message.supplement, Some(Supplement::Edited { of: original() }));
        assert_eq!((message.author, message.text.as_str()), (Person::Slack("U2".into()), "right & proper"));
        assert_eq!(message.sent_at, "2023-11-14T22:14:20.0002Z".parse().unwrap());
        let Place::Slack(place) = message.place else { panic!("not in Slack") };
        assert_eq!((place.ts.as_str(), place.thread.as_deref()), (TS, Some("1699999999.000001")));
    }

    #[test]
    fn an_added_file_is_an_edit_that_brings_that_file_only() {
        let (one, two) = (json!({"id": "F1", "mode": "hosted"}), json!({"id": "F2", "mode": "hosted"}));
        let before = post(&json!({"files": [one]}));
        let message = message_of(change(&before, &post(&json!({"files": [one, two], "edited": edited()}))));
        assert_eq!(message.attachments.iter().map(|file| file.id.as_str()).collect::<Vec<_>>(), ["F2"]);
        assert_eq!(message.text, "left");
    }

    #[test]
    fn t15_what_slack_changes_itself_is_no_edit() {
        let file = json!({"id": "F1", "mode": "hosted", "transcription": {"status": "processing"}});
        let transcribed = json!({"id": "F1", "mode": "hosted", "transcription": {"status": "complete"}});
        let linked =
            json!({"is_msg_unfurl": true, "text": "words of others", "files": [{"id": "F9", "mode": "hosted"}]});
        for (before, now) in [
            (json!({}), json!({"attachments": [{"title": "Example", "text": "words of others"}]})),
            (json!({}), json!({"attachments": [linked]})),
            (json!({"files": [file]}), json!({"files": [transcribed]})),
            (json!({"files": [file]}), json!({"files": [{"id": "F1", "mode": "tombstone"}]})),
            (json!({"files": [file]}), json!({"files": []})),
            (json!({"text": "a &amp; b"}), json!({"text": "a & b"})),
            (json!({}), json!({"metadata": {"event_type": "x"}, "reply_count": 2, "edited": edited()})),
        ] {
            let what = change(&post(&before), &post(&now));
            assert_eq!(what, What::PassedOver(PassedOver::Edited), "{before} -> {now}");
        }
    }

    #[test]
    fn without_the_previous_message_slacks_mark_of_an_edit_decides() {
        let now = post(&json!({"text": "right"}));
        assert_eq!(change(&json!([]), &now), What::PassedOver(PassedOver::Edited));
        let message = message_of(change(&json!([]), &post(&json!({"text": "right", "edited": edited()}))));
        assert_eq!(message.text, "right");
    }

    #[test]
    fn an_edit_of_a_bot_or_of_usher_is_passed_over() {
        for (who, reason) in [(json!({"bot_id": "B1"}), PassedOver::Bot), (json!({"user": "UBOT"}), PassedOver::Own)] {
            let mut now = who.clone();
            now["text"] = json!("right");
            assert_eq!(change(&post(&who), &post(&now)), What::PassedOver(reason), "{who}");
        }
    }

    #[test]
    fn a_deletion_and_a_tombstone_are_the_same_note_without_words() {
        let before = post(&json!({"files": [{"id": "F1", "mode": "hosted"}]}));
        let tombstone =
            json!({"type": "message", "subtype": "tombstone", "user": "USLACKBOT", "ts": TS, "text": "gone"});
        let deletion = event(&json!({"subtype": "message_deleted", "deleted_ts": TS, "previous_message": before}));
        assert_eq!(change(&before, &tombstone), deletion);
        let message = message_of(deletion);
        assert_eq!(message.id, original().followed_by("deleted"));
        assert_eq!(message.supplement, Some(Supplement::Deleted { of: original() }));
        assert_eq!((message.author, message.text.as_str()), (Person::Slack("U1".into()), ""));
        assert!(message.attachments.is_empty());
    }

    #[test]
    fn a_deletion_that_does_not_say_whose_message_it_was_is_passed_over() {
        let bot = post(&json!({"bot_id": "B1"}));
        let others = post(&json!({"ts": LATER}));
        for (before, reason) in [
            (json!([]), PassedOver::Deleted),
            (json!(null), PassedOver::Deleted),
            (others, PassedOver::Deleted),
            (bot, PassedOver::Bot),
        ] {
            let what = event(&json!({"subtype": "message_deleted", "deleted_ts": TS, "previous_message": before}));
            assert_eq!(what, What::PassedOver(reason), "{before}");
        }
    }
}
