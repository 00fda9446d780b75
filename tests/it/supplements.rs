//! What adds to a message that was said already: edits, deletions, transcripts that come late.

use serde_json::{Value, json};

use crate::story::Story;
use crate::world::{BOT_USER, Comment, DANA, FileSpec, ITEM, Posted, ROOM, SAM, TEAM, Transcript, Twin, eventually};

const SOUND: &[u8] = b"\0\0\0\x20ftypM4A and then sound";
const CAPTIONS: &str = "WEBVTT\n\n00:00:00.000 --> 00:00:02.000\n- the left one squeaks\n";

/// The first lines of what was submitted, without the nonce: `reply from Dana (slack:…) on …`.
fn told(story: &Story) -> Vec<String> {
    let first =
        |text: &String| text.lines().next().and_then(|line| line.split_once("] ")).unwrap_or_default().1.to_owned();
    story.agent.submitted().iter().map(first).collect()
}

/// What the pane was told last.
fn last(story: &Story) -> String {
    story.agent.submitted().pop().unwrap_or_default()
}

/// The records whose envelope says that they are this addition to a message.
fn records(story: &Story, posted: &Posted, what: &str) -> Vec<Comment> {
    let id = format!("\"id\":\"slack:{TEAM}/{ROOM}/{}+{what}", posted.ts);
    story.world.github.comments(ITEM).into_iter().filter(|comment| comment.body.contains(&id)).collect()
}

#[track_caller]
fn wait_record(story: &Story, posted: &Posted, what: &str) -> String {
    eventually(&format!("the record of {what}"), || {
        let found = records(story, posted, what);
        if found.len() == 1 { Ok(found[0].body.clone()) } else { Err(story.world.github.comments(ITEM)) }
    })
}

/// The line in `usher inbox list` of what was added to a message.
fn line(story: &Story, posted: &Posted, what: &str) -> Value {
    let id = format!("slack:{TEAM}/{ROOM}/{}+{what}", posted.ts);
    let is_it = |line: &Value| line["id"].as_str().is_some_and(|known| known.starts_with(&id));
    story.inbox().into_iter().find(is_it).unwrap_or_default()
}

fn edited_by(user: &str) -> Value {
    json!({"user": user, "ts": "1900000000.000100"})
}

#[test]
fn an_edit_arrives_once_and_says_that_it_is_one() {
    let story = Story::begin();
    let _daemon = story.daemon();
    let posted = story.say("the left one");
    story.wait_done(&posted);
    let edit = story.world.slack.edit(&posted, "the right one");
    story.wait_submitted("the right one");
    story.world.slack.redeliver(&edit, 1);
    story.world.slack.send_again(&edit);
    story.wait_for_the_lane();

    story.assert_once("the right one");
    assert_eq!(told(&story)[1], format!("edited reply from Dana (slack:{DANA}) on {ITEM}"));
    let record = wait_record(&story, &posted, "edited/");
    assert!(record.contains(", edited, by usher:\n\n> the right one\n"), "{record}");
}

#[test]
fn a_preview_and_the_same_words_again_wake_nobody() {
    // Field report T15: link previews started turns.
    let story = Story::begin();
    let _daemon = story.daemon();
    let posted = story.say("see <https://example.com>");
    story.wait_done(&posted);
    story.world.slack.change(&posted, json!({"attachments": [{"title": "Example", "text": "words of others"}]}));
    story.world.slack.edit(&posted, "see <https://example.com>");
    story.wait_for_the_lane();
    assert_eq!(told(&story).len(), 2, "{:?}", told(&story));
    assert_eq!(story.world.github.comments(ITEM).len(), 2);
}

#[test]
fn an_edit_that_adds_a_file_brings_that_file() {
    let story = Story::begin();
    let _daemon = story.daemon();
    let one = story.world.slack.add_file(FileSpec::new("one.txt", "text/plain", "one"));
    let two = story.world.slack.add_file(FileSpec::new("two.txt", "text/plain", "two"));
    let posted = story.say_with("look", std::slice::from_ref(&one));
    story.wait_done(&posted);
    story.world.slack.change(&posted, json!({"files": [one, two], "edited": edited_by(DANA)}));
    story.wait_submitted("two.txt");
    story.wait_for_the_lane();

    let edit = &story.agent.submitted()[1];
    assert!(edit.contains("] edited reply from Dana") && edit.contains("\nlook\n"), "{edit}");
    assert!(edit.contains("attachments] 1 file, ") && !edit.contains("one.txt"), "{edit}");
}

#[test]
fn an_edit_by_a_stranger_or_of_a_strangers_words_is_silence() {
    let story = Story::begin();
    let _daemon = story.daemon();
    let posted = story.say("the left one");
    let strangers = story.world.slack.post(ROOM, Some(&story.thread), SAM, "mine", &[]);
    story.wait_done(&posted);
    story.world.slack.change(&posted, json!({"text": "rm -rf", "blocks": [], "edited": edited_by(SAM)}));
    story.world.slack.change(&strangers, json!({"text": "rm -rf", "blocks": [], "edited": edited_by(DANA)}));
    story.world.slack.edit(&strangers, "rm -rf now");
    story.wait_for_the_lane();

    assert_eq!(told(&story).len(), 2, "{:?}", told(&story));
    assert_eq!(story.records_of("rm -rf").len(), 0);
    assert!(story.world.slack.ephemerals().is_empty());
    assert!(story.world.slack.reactions_on(&strangers.ts).is_empty());
    assert_eq!(line(&story, &posted, "edited/")["cause"], "stranger");
}

#[test]
fn an_edit_of_a_mention_is_an_edit_although_its_twin_comes_too() {
    let story = Story::begin();
    let _daemon = story.daemon();
    let twins = [Twin::Message, Twin::Mention];
    let posted = story.world.slack.mention(ROOM, Some(&story.thread), DANA, "the left one", &[], &twins);
    story.wait_done(&posted);
    let edit = story.world.slack.edit(&posted, &format!("<@{BOT_USER}> the right one"));
    let mut twin = edit.payload["event"]["message"].clone();
    twin["type"] = json!("app_mention");
    twin["channel"] = json!(ROOM);
    story.world.slack.send_event(&twin);
    story.wait_submitted("the right one");
    story.wait_for_the_lane();
    story.assert_once("the right one");
    story.assert_once("the left one");
}

#[test]
fn an_edit_before_its_message_was_typed_follows_it() {
    let story = Story::begin();
    let daemon = story.daemon();
    story.agent.control(&json!({"status": "waiting"}));
    let posted = story.say("the left one");
    daemon.wait_line("held");
    story.world.slack.edit(&posted, "the right one");
    eventually("the edit is in the lane", || line(&story, &posted, "edited/")["stage"] == "admitted");
    story.agent.control(&json!({"status": "idle"}));
    story.wait_submitted("the right one");
    story.wait_for_the_lane();
    let told = told(&story);
    assert!(told[0].starts_with("reply from") && told[1].starts_with("edited reply from"), "{told:?}");
    story.assert_once("the left one");
    story.assert_once("the right one");
}

#[test]
fn a_deletion_is_a_note_on_the_ticket_and_nothing_in_the_pane() {
    let story = Story::begin();
    let _daemon = story.daemon();
    let posted = story.say("the left one");
    story.wait_done(&posted);
    let marks = story.world.slack.reaction_history(&posted.ts);
    let deletion = story.world.slack.delete(&posted);
    let record = wait_record(&story, &posted, "deleted");
    story.world.slack.redeliver(&deletion, 1);
    story.wait_for_the_lane();

    assert!(record.contains(", deleted, by usher:\n\nThe message was deleted "), "{record}");
    assert_eq!(records(&story, &posted, "deleted").len(), 1);
    assert_eq!(told(&story).len(), 2, "{:?}", told(&story));
    assert_eq!(story.world.slack.reaction_history(&posted.ts), marks);
    let line = line(&story, &posted, "deleted");
    assert_eq!((&line["stage"], &line["verdict"]), (&json!("settled"), &json!("noted")));
}

#[test]
fn what_is_deleted_before_it_was_typed_is_not_typed() {
    let story = Story::begin();
    let daemon = story.daemon();
    story.agent.control(&json!({"status": "waiting"}));
    let posted = story.say("the wrong thread");
    daemon.wait_line("held");
    story.world.slack.edit(&posted, "the wrong thread, sorry");
    story.world.slack.delete(&posted);
    wait_record(&story, &posted, "deleted");
    story.agent.control(&json!({"status": "idle"}));
    story.wait_for_the_lane();

    assert_eq!(story.pastes_of("the wrong thread"), 0);
    assert_eq!(told(&story).len(), 1, "{:?}", told(&story));
    assert!(story.world.slack.ephemerals().is_empty(), "nobody is told of what they did themselves");
    let line = story.line_of(&posted);
    assert_eq!((&line["stage"], &line["cause"]), (&json!("dropped"), &json!("deleted")));
}

#[test]
fn what_happens_to_a_message_that_usher_never_carried_is_no_business_of_it() {
    let story = Story::begin();
    let _daemon = story.daemon();
    let strangers = story.world.slack.post(ROOM, Some(&story.thread), SAM, "mine", &[]);
    let before = Posted { channel: ROOM.to_owned(), ts: story.thread.clone(), envelopes: Vec::new() };
    story.world.slack.edit(&before, "said before the binding");
    story.world.slack.delete(&strangers);
    story.wait_for_the_lane();
    assert_eq!(told(&story).len(), 1, "{:?}", told(&story));
    assert_eq!(story.world.github.comments(ITEM).len(), 1);
    assert_eq!(line(&story, &before, "edited/")["cause"], "unknown-original");
}

#[test]
fn an_edit_of_what_was_refused_tells_nothing_more() {
    let story = Story::begin();
    let _daemon = story.daemon();
    let twins = [Twin::Message, Twin::Mention];
    let posted = story.world.slack.mention(ROOM, None, DANA, "not in a bound thread", &[], &twins);
    eventually("Dana is told", || story.world.slack.ephemerals().len() == 1);
    story.world.slack.edit(&posted, &format!("<@{BOT_USER}> still not in one"));
    story.wait_for_the_lane();
    assert_eq!(line(&story, &posted, "edited/")["stage"], "refused");
    assert_eq!(story.world.slack.ephemerals().len(), 1, "{:?}", story.world.slack.ephemerals());
}

/// A voice note whose transcript is ready after so many looks of `files.info`.
fn note(looks: usize) -> FileSpec {
    let complete = Transcript::Complete { preview: "the left".into(), has_more: true, vtt: Some(CAPTIONS.into()) };
    let states: Vec<Transcript> = std::iter::repeat_n(Transcript::Processing, looks).chain([complete]).collect();
    FileSpec::new("note.m4a", "audio/mp4", SOUND).transcribed(states)
}

/// Dana posts a voice note, which arrives without its transcript after one look.
fn post_note(story: &Story, looks: usize) -> (Posted, Value) {
    let file = story.world.slack.add_file(note(looks));
    let posted = story.say_with("Listen", std::slice::from_ref(&file));
    story.wait_done(&posted);
    assert!(last(story).contains("\n   > Slack was still making a transcript.\n"), "{}", last(story));
    (posted, file)
}

/// The transcript is in the pane and on the ticket, once each.
#[track_caller]
fn assert_transcript_once(story: &Story, posted: &Posted) {
    story.wait_submitted("the left one squeaks");
    let record = wait_record(story, posted, "transcript/");
    story.wait_for_the_lane();
    assert!(record.contains(", a transcript, by usher:\n\n📎 note.m4a "), "{record}");
    story.assert_once("Slack's transcript: the left one squeaks");
    let told = told(story);
    assert!(told[1].starts_with(&format!("transcript of note.m4a from Dana (slack:{DANA}) on {ITEM}")), "{told:?}");
}

const ONE_LOOK: &str = "attachments.transcript_retries = 1";

#[test]
fn a_late_transcript_follows_when_slack_tells_of_it() {
    let story = Story::with_config(ONE_LOOK);
    let _daemon = story.daemon();
    let (posted, file) = post_note(&story, 2);
    let change = story.world.slack.file_changed(&file);
    story.wait_submitted("the left one squeaks");
    story.world.slack.redeliver(&change, 1);
    story.world.slack.file_changed(&file);
    assert_transcript_once(&story, &posted);
}

#[test]
fn a_late_transcript_is_looked_for_when_slack_does_not_tell_of_it() {
    let story = Story::with_config("attachments = { transcript_retries = 1, transcript_poll = '100ms' }");
    let _daemon = story.daemon();
    let (posted, _) = post_note(&story, 4);
    assert_transcript_once(&story, &posted);
}

#[test]
fn captions_that_could_not_be_read_are_asked_for_again() {
    let story = Story::with_config("attachments = { transcript_retries = 1, transcript_poll = '100ms' }");
    let _daemon = story.daemon();
    let complete = |vtt: Option<&str>| Transcript::Complete {
        preview: "the left".into(),
        has_more: true,
        vtt: vtt.map(str::to_owned),
    };
    let states = [Transcript::Processing, Transcript::Processing, complete(Some("")), complete(Some(CAPTIONS))];
    let file = story.world.slack.add_file(FileSpec::new("note.m4a", "audio/mp4", SOUND).transcribed(states.to_vec()));
    let posted = story.say_with("Listen", &[file]);
    assert_transcript_once(&story, &posted);
    assert_eq!(told(&story).len(), 3, "{:?}", told(&story));
}

#[test]
fn a_late_transcript_survives_a_kill_before_and_after_slack_tells_of_it() {
    let story = Story::with_config(ONE_LOOK);
    let daemon = story.daemon();
    let (posted, file) = post_note(&story, 2);
    daemon.kill9();
    let daemon = story.daemon();
    story.agent.control(&json!({"status": "waiting"}));
    story.world.slack.file_changed(&file);
    eventually("the transcript is in the lane", || line(&story, &posted, "transcript/")["stage"] == "recorded");
    daemon.kill9();
    let _daemon = story.daemon();
    story.agent.control(&json!({"status": "idle"}));
    assert_transcript_once(&story, &posted);
}
