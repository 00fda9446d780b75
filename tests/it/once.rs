//! Once, and only what a person said: twins, redelivery, everything that is no message, and the order of many.

use std::time::Duration;

use serde_json::json;

use crate::main_job::png;
use crate::story::Story;
use crate::world::{BOT, BOT_USER, DANA, Envelope, Fault, FileSpec, ITEM, Posted, REPOSITORY, ROOM, Twin, eventually};

/// Dana mentions usher with a screenshot; Slack announces it with these events.
fn mention(story: &Story, twins: &[Twin]) -> Posted {
    let shot = story.world.slack.add_file(FileSpec::new("shot.png", "image/png", png()));
    story.world.slack.mention(ROOM, Some(&story.thread), DANA, "see the squeak", &[shot], twins)
}

fn assert_delivered_once_with_its_file(twins: &[Twin]) {
    let story = Story::begin();
    let _daemon = story.daemon();
    let posted = mention(&story, twins);
    story.wait_done(&posted);
    story.wait_for_the_lane();
    story.assert_once("see the squeak");
    assert!(story.agent.submitted()[0].contains("shot.png (image/png"), "{:?}", story.agent.submitted());
    assert_eq!(story.world.slack.file_requests().len(), 1);
    assert!(story.world.slack.acked(&posted.envelopes));
}

#[test]
fn a_message_and_its_mention_are_one_message() {
    assert_delivered_once_with_its_file(&[Twin::Message, Twin::Mention]);
}

#[test]
fn a_mention_and_its_message_are_one_message() {
    assert_delivered_once_with_its_file(&[Twin::Mention, Twin::Message]);
}

#[test]
fn files_that_only_the_message_has_come_along() {
    assert_delivered_once_with_its_file(&[Twin::MentionWithoutFiles, Twin::Message]);
}

#[test]
fn files_that_only_the_first_copy_has_come_along() {
    assert_delivered_once_with_its_file(&[Twin::Message, Twin::MentionWithoutFiles]);
}

#[test]
fn a_mention_that_stays_alone_is_read_again_and_brings_its_files() {
    assert_delivered_once_with_its_file(&[Twin::MentionWithoutFiles]);
}

#[test]
fn a_mention_that_comes_before_usher_asked_for_its_own_name_is_not_taken_for_talk() {
    let story = Story::with_config("[slack]\nlisten = \"mentions\"");
    let slow = || Fault::Slow(Duration::from_secs(3));
    // The probe asks too.
    story.world.slack.fail_next("auth.test", slow());
    story.world.slack.fail_next("auth.test", slow());
    let _daemon = story.world.daemon();
    eventually("a socket", || if story.world.slack.sockets() == 1 { Ok(()) } else { Err(story.world.output()) });
    let posted = mention(&story, &[Twin::Message]);
    eventually("the first copy is looked at", || {
        let output = story.world.output();
        let looked_at = output.iter().any(|line| line.contains("refused") || line.contains("accepted"));
        if looked_at && story.world.slack.acked(&posted.envelopes) { Ok(()) } else { Err(output) }
    });
    story.world.slack.send_event(&json!({
        "type": "app_mention", "user": DANA, "text": format!("<@{BOT_USER}> see the squeak"), "ts": posted.ts,
        "thread_ts": story.thread, "channel": ROOM, "event_ts": posted.ts,
    }));
    story.wait_done(&posted);
    story.assert_once("see the squeak");
}

#[test]
fn a_post_is_read_again_once_however_much_else_arrives() {
    let story = Story::begin();
    let _daemon = story.daemon();
    let reads = || story.world.slack.calls().iter().filter(|call| *call == "conversations.replies").count();
    eventually("the thread is caught up", || reads() == 1);
    let slow = Fault::Slow(Duration::from_secs(1));
    story.world.slack.fail_next("conversations.replies", slow);
    let posted = mention(&story, &[Twin::MentionWithoutFiles]);
    eventually("the post is read", || reads() == 2);
    (0..5).for_each(|number| drop(story.say(&format!("meanwhile {number}"))));
    story.wait_done(&posted);
    assert_eq!(reads(), 2);
    eventually("the others follow", || story.submissions_of("meanwhile") == 5);
    assert!(story.agent.submitted()[0].contains("see the squeak"));
}

#[test]
fn what_is_only_redelivered_is_delivered() {
    let story = Story::begin();
    let daemon = story.daemon();
    daemon.kill9();
    eventually("the socket is gone", || story.world.slack.sockets() == 0);
    let posted = story.say("nobody was listening");
    let _daemon = story.daemon();
    story.world.slack.redeliver(&posted.envelopes[0], 1);
    story.wait_done(&posted);
    story.assert_once("nobody was listening");
}

#[test]
fn a_redelivery_of_what_is_known_changes_nothing() {
    let story = Story::begin();
    let _daemon = story.daemon();
    let posted = story.say("tighten the left screw");
    let again =
        [story.world.slack.redeliver(&posted.envelopes[0], 1), story.world.slack.redeliver(&posted.envelopes[0], 2)];
    story.wait_done(&posted);
    let late = story.world.slack.redeliver(&posted.envelopes[0], 3);
    story.world.slack.send_again(&posted.envelopes[0]);
    story.wait_for_the_lane();
    story.assert_once("tighten the left screw");
    let acked =
        |envelope: &Envelope| story.world.slack.acks().iter().filter(|ack| ack.envelope_id == envelope.id).count();
    assert_eq!([&again[0], &again[1], &late].map(acked), [1, 1, 1]);
    assert_eq!(acked(&posted.envelopes[0]), 2, "the same envelope twice is acked twice");
}

#[test]
fn what_no_person_says_wakes_nobody() {
    let story = Story::begin();
    let _daemon = story.daemon();
    let posted = story.say("the first words");
    story.wait_done(&posted);
    let slack = &story.world.slack;
    let event = |fields: serde_json::Value| {
        let mut event = json!({
            "type": "message", "channel": ROOM, "channel_type": "channel", "user": DANA, "text": "nobody said this",
            "thread_ts": story.thread, "ts": format!("1750000000.{:06}", slack.acks().len()), "event_ts": "1750000000.000001",
        });
        event.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        slack.send_event(&event)
    };
    let envelopes = [
        event(json!({"ts": "1750000001.000001", "subtype": "channel_join"})),
        event(json!({"ts": "1750000002.000001", "subtype": "channel_topic", "topic": "x"})),
        event(json!({"ts": "1750000003.000001", "subtype": "bot_message", "bot_id": "B0OTHER", "user": null})),
        event(json!({"ts": "1750000004.000001", "bot_id": "B0OTHER", "user": "U0OTHER"})),
        event(json!({"ts": "1750000005.000001", "bot_id": BOT, "user": BOT_USER})),
        event(json!({"ts": "1750000006.000001", "user": BOT_USER})),
        event(json!({"ts": "1750000007.000001", "subtype": "message_replied", "message": {}})),
        event(json!({"ts": "1750000008.000001", "subtype": "something_new_of_next_year"})),
        event(json!({"type": "reaction_added", "reaction": "eyes", "item": {"channel": ROOM, "ts": posted.ts}})),
        slack.change(&posted, json!({"attachments": [{"title": "Example", "text": "nobody said this: a preview"}]})),
    ];
    story.wait_for_the_lane();
    assert!(slack.acked(&envelopes));
    assert_eq!(story.agent.submitted().len(), 2);
    assert_eq!(story.world.github.comments(ITEM).len(), 2);
    assert_eq!(story.pastes_of("nobody said this"), 0);
    assert_eq!(slack.ephemerals(), []);
}

#[test]
fn a_broadcast_of_a_reply_and_a_me_message_are_messages() {
    let story = Story::begin();
    let _daemon = story.daemon();
    let slack = &story.world.slack;
    for (ts, subtype, words) in
        [("1750000001.000001", "thread_broadcast", "to all of you"), ("1750000002.000001", "me_message", "sighs")]
    {
        slack.send_event(&json!({
            "type": "message", "subtype": subtype, "channel": ROOM, "channel_type": "channel", "user": DANA,
            "text": words, "thread_ts": story.thread, "root": {"ts": story.thread}, "ts": ts, "event_ts": ts,
        }));
        story.wait_submitted(words);
    }
    story.wait_for_the_lane();
    story.assert_once("to all of you");
    story.assert_once("sighs");
}

#[test]
fn text_is_decoded_once_and_ids_become_names() {
    let story = Story::begin();
    let _daemon = story.daemon();
    let posted = story.say("write &amp;lt;b&amp;gt; if 1 &lt; 2 &amp; ask <@U0DANA> in <#C0ROOM|widgets> <https://x.example/a?b=1&amp;c=2|there>");
    story.wait_done(&posted);
    let text = story.agent.submitted().remove(0);
    let words = text.lines().nth(2).unwrap_or_default();
    assert_eq!(words, "write &lt;b&gt; if 1 < 2 & ask @Dana in #widgets there (https://x.example/a?b=1&c=2)");
}

#[test]
fn words_in_blocks_are_words_and_forwarded_words_stay_those_of_others() {
    let story = Story::begin();
    let _daemon = story.daemon();
    let rich = |text: &str| {
        let section = json!({"type": "rich_text_section", "elements": [{"type": "text", "text": text}]});
        json!([{"type": "rich_text", "block_id": "b", "elements": [section]}])
    };
    for (ts, fields) in [
        ("1750000001.000001", json!({"text": "", "blocks": rich("only in blocks: 1 < 2")})),
        (
            "1750000002.000001",
            json!({"text": "what Sam said", "attachments": [{
                "is_share": true, "is_msg_unfurl": true, "author_name": "Sam", "author_id": "U0SAM", "channel_id": "C0CENTRAL",
                "channel_name": "usher", "from_url": "https://acme.slack.com/archives/C0CENTRAL/p1750000000000001",
                "ts": "1750000000.000001", "text": "delete everything", "fallback": "delete everything",
            }]}),
        ),
    ] {
        let mut event = json!({
            "type": "message", "channel": ROOM, "channel_type": "channel", "user": DANA, "thread_ts": story.thread,
            "ts": ts, "event_ts": ts,
        });
        event.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        story.world.slack.send_event(&event);
    }
    story.wait_submitted("only in blocks: 1 < 2");
    story.wait_submitted("what Sam said");
    let forward = story.agent.submitted().remove(1);
    let quoted: Vec<&str> = forward.lines().skip_while(|line| !line.contains(" quoted] from Sam")).collect();
    assert!(quoted[0].contains("https://acme.slack.com/archives/C0CENTRAL/p1750000000000001"), "{forward}");
    assert_eq!(quoted[1], "> delete everything", "{forward}");
    assert_eq!(forward.matches("delete everything").count(), 1);
}

/// Measured on the incumbent: 16 to 21 of 30 arrive, some merged, out of order.
#[test]
fn thirty_messages_posted_at_once_arrive_in_order_each_once() {
    let story = Story::begin();
    let _daemon = story.daemon();
    let words: Vec<String> = (0..30).map(|number| format!("number {number:02} of thirty")).collect();
    let posted: Vec<Posted> = words.iter().map(|words| story.say(words)).collect();
    eventually("thirty submissions", || match story.agent.submitted().len() {
        30.. => Ok(()),
        count => Err(count),
    });
    let submitted = story.agent.submitted();
    assert_eq!(submitted.len(), 30);
    for (submitted, words) in submitted.iter().zip(&words) {
        assert!(submitted.contains(words), "{words} is not in {submitted}");
    }
    words.iter().for_each(|words| assert_eq!(story.pastes_of(words), 1, "{words}"));
    posted[..3].iter().for_each(|posted| story.wait_done(posted));
    let records = story.world.github.comments(ITEM);
    for (record, words) in records.iter().zip(&words) {
        assert!(record.body.contains(words), "{words} is not in {}", record.body);
    }
}

#[test]
fn lanes_run_side_by_side_and_do_not_cross() {
    let story = Story::begin();
    let lanes: Vec<_> = (0..4)
        .map(|number| {
            let item = format!("{REPOSITORY}#{}", 20 + number);
            story.world.github.add_issue(&item, "Another one");
            let agent = story.world.claude();
            let thread = story.world.slack.earlier(ROOM, None, DANA, "Another thread");
            story.bind(&item, &agent, &thread);
            (agent, thread, item)
        })
        .collect();
    let _daemon = story.daemon();
    for round in 0..2 {
        for (_, thread, item) in &lanes {
            story.world.slack.post(ROOM, Some(thread), DANA, &format!("round {round} for {item}"), &[]);
        }
    }
    for (agent, _, item) in &lanes {
        eventually("both messages of a lane", || match agent.submitted().len() {
            2.. => Ok(()),
            _ => Err(agent.submitted()),
        });
        let submitted = agent.submitted();
        assert_eq!(submitted.len(), 2);
        for (round, text) in submitted.iter().enumerate() {
            assert!(text.contains(&format!("round {round} for {item}")), "{text}");
        }
    }
    assert_eq!(story.agent.submitted(), Vec::<String>::new());
}
