//! Socket Mode from the real binary: every way in which a connection goes wrong, and the end on SIGTERM.

use std::time::{Duration, Instant};

use rusqlite::Connection;
use serde_json::json;

use crate::main_job::png;
use crate::story::Story;
use crate::world::{Behaviour, Fault, FileSpec, ITEM, Posted, disconnect_frame, eventually, hello_frame};

/// Says something and waits until it is acknowledged: the socket serves.
#[track_caller]
fn say_and_hear_the_ack(story: &Story, words: &str) -> Posted {
    let posted = story.say(words);
    eventually(&format!("`{words}` is acknowledged"), || story.world.slack.acked(&posted.envelopes));
    posted
}

#[track_caller]
fn wait_sockets_opened(story: &Story, count: usize) {
    eventually(&format!("{count} sockets were opened"), || match story.world.slack.sockets_opened() {
        opened if opened >= count && story.world.slack.sockets() == 1 => Ok(()),
        opened => Err((opened, story.world.slack.sockets())),
    });
}

fn opens(story: &Story) -> usize {
    story.world.slack.calls().iter().filter(|call| *call == "apps.connections.open").count()
}

#[test]
fn everything_goes_through_the_proxy_and_every_connection_has_a_fresh_url() {
    let story = Story::begin();
    let daemon = story.daemon();
    story.world.slack.abort_tcp();
    wait_sockets_opened(&story, 2);
    say_and_hear_the_ack(&story, "after the abort");
    let asked = story.world.proxy.asked();
    assert!(asked.iter().any(|host| host == "slack.com:443"), "{asked:?}");
    // A ticket is good for one socket: the world complains of a second use.
    let sockets = asked.iter().filter(|host| *host == "wss-primary.slack.com:443").count();
    assert_eq!((sockets, opens(&story)), (2, 2));
    assert!(daemon.sigterm().success());
}

#[test]
fn an_authority_that_is_not_trusted_gets_nothing() {
    let mut story = Story::begin();
    story.world.unset_env("SSL_CERT_FILE");
    let daemon = story.world.daemon();
    daemon.wait_line("slack socket down");
    daemon.wait_line("ready webhook=off slack=");
    assert_eq!((story.world.slack.calls(), story.world.github.calls()), (vec![], vec![]));
    assert!(daemon.sigterm().success());
}

#[test]
fn a_network_that_is_gone_at_the_start_is_waited_for() {
    let story = Story::begin();
    story.world.proxy.go_down();
    let daemon = story.world.daemon();
    daemon.wait_line("slack socket down");
    story.world.proxy.come_back();
    wait_sockets_opened(&story, 1);
    let posted = say_and_hear_the_ack(&story, "at last");
    story.wait_done(&posted);
}

#[test]
fn an_event_is_acknowledged_only_after_it_is_durable() {
    let story = Story::begin();
    let _daemon = story.daemon();
    let lock = Connection::open(story.world.dir().join("state/local/usher.db")).unwrap();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    let posted = story.say("not before it is written");
    // Slack's ping comes behind the event: once that is answered, the event was read.
    let pongs = story.world.slack.frames().pongs.len();
    eventually("later pings are answered", || story.world.slack.frames().pongs.len() >= pongs + 3);
    assert!(!story.world.slack.acked(&posted.envelopes));
    lock.execute_batch("COMMIT").unwrap();
    story.wait_done(&posted);
    assert!(story.world.slack.acked(&posted.envelopes));
}

#[test]
fn pings_are_answered_with_their_payload() {
    let story = Story::begin();
    let _daemon = story.daemon();
    eventually("a pong", || !story.world.slack.frames().pongs.is_empty());
    assert!(story.world.slack.frames().pongs.iter().all(|payload| payload.as_ref() == b"slack is here"));
}

/// Field report T6: open, but deaf. It takes the ten seconds that Slack is given for its hello.
#[test]
fn a_connection_without_a_hello_is_replaced() {
    let story = Story::begin();
    story.world.slack.greet_next(vec![]);
    let daemon = story.world.daemon();
    daemon.wait_line("Slack said no hello within 10 seconds");
    wait_sockets_opened(&story, 2);
    let posted = say_and_hear_the_ack(&story, "at last");
    story.wait_done(&posted);
}

/// Hand-over: the old connection serves until the new one has said hello, and nothing is lost or doubled.
fn assert_hands_over(reason: &str) {
    let story = Story::begin();
    let daemon = story.daemon();
    let before: Vec<Posted> = (0..3).map(|number| story.say(&format!("before {number}"))).collect();
    story.world.slack.disconnect(reason);
    let during: Vec<Posted> = (0..3).map(|number| story.say(&format!("during {number}"))).collect();
    eventually("the new connection is up", || {
        story.world.slack.sockets_opened() == 2 && story.world.slack.sockets() >= 1
    });
    let after: Vec<Posted> = (0..3).map(|number| story.say(&format!("after {number}"))).collect();
    let all: Vec<Posted> = [before, during, after].concat();
    eventually("all are acknowledged", || all.iter().all(|posted| story.world.slack.acked(&posted.envelopes)));
    eventually("all are submitted", || match story.agent.submitted().len() {
        9.. => Ok(()),
        _ => Err(story.agent.submitted()),
    });
    assert_eq!(story.agent.submitted().len(), 9);
    daemon.wait_line(&format!("slack socket is being replaced reason={reason}"));
    assert_eq!(opens(&story), 2);
}

#[test]
fn a_warned_connection_hands_over_without_losing_or_doubling_anything() {
    assert_hands_over("warning");
}

#[test]
fn a_connection_to_be_refreshed_hands_over_without_losing_or_doubling_anything() {
    assert_hands_over("refresh_requested");
}

#[test]
fn a_reason_of_next_year_hands_over_too() {
    assert_hands_over("maintenance_of_next_year");
}

#[test]
fn too_many_connections_as_the_first_frame_back_off_and_say_so() {
    let story = Story::begin();
    story.world.slack.greet_next(vec![disconnect_frame("too_many_websockets")]);
    let started = Instant::now();
    let daemon = story.world.daemon();
    daemon.wait_line("Slack counts too many open connections of this app: another consumer may be running");
    let up = daemon.wait_line("slack socket up");
    assert!(started.elapsed() >= Duration::from_secs(1), "{up}");
    assert_eq!(story.world.slack.frames().closes, 1, "the refused connection is closed");
    say_and_hear_the_ack(&story, "at last");
}

#[test]
fn an_abort_is_mended_at_once() {
    let story = Story::begin();
    let _daemon = story.daemon();
    let aborted = Instant::now();
    story.world.slack.abort_tcp();
    wait_sockets_opened(&story, 2);
    assert!(aborted.elapsed() < Duration::from_secs(5), "{:?}", aborted.elapsed());
    let posted = say_and_hear_the_ack(&story, "after the abort");
    story.wait_done(&posted);
}

#[test]
fn an_abort_in_the_middle_of_a_frame_is_mended_at_once() {
    let story = Story::begin();
    let _daemon = story.daemon();
    story.world.slack.abort_in_frame();
    wait_sockets_opened(&story, 2);
    let posted = say_and_hear_the_ack(&story, "after the abort");
    story.wait_done(&posted);
}

#[test]
fn a_close_is_mended_at_once() {
    let story = Story::begin();
    let _daemon = story.daemon();
    story.world.slack.close(1001);
    wait_sockets_opened(&story, 2);
    let posted = say_and_hear_the_ack(&story, "after the close");
    story.wait_done(&posted);
}

#[test]
fn a_silent_stall_is_noticed_after_the_configured_silence_and_what_it_swallowed_comes_again() {
    let story = Story::with_config("slack.silence = '1s'");
    let daemon = story.daemon();
    story.world.slack.stall();
    let swallowed = story.say("into the void");
    daemon.wait_line("Slack was silent for too long");
    wait_sockets_opened(&story, 2);
    story.world.slack.redeliver(&swallowed.envelopes[0], 1);
    story.wait_done(&swallowed);
    story.assert_once("into the void");
}

#[test]
fn frames_that_mean_nothing_are_passed_over() {
    let story = Story::begin();
    let daemon = story.daemon();
    for frame in ["", "  ", "not json", "[]", "7", "null", "{}", "{\"type\":7}", "{\"type\":\"from_next_year\"}"] {
        story.world.slack.send_raw(frame);
    }
    story.world.slack.send_raw("{\"type\":\"events_api\"}");
    story.world.slack.send_raw("{\"type\":\"events_api\",\"envelope_id\":\"e1\",\"payload\":[]}");
    story.world.slack.send_raw("{\"type\":\"events_api\",\"payload\":{\"type\":\"event_callback\"}}");
    story.world.slack.send_binary(&[0, 159, 146, 150]);
    let posted = say_and_hear_the_ack(&story, "still here");
    story.wait_done(&posted);
    assert_eq!(story.world.slack.sockets_opened(), 1);
    assert_eq!(story.world.slack.ack_count(), 1, "what cannot be named is not acknowledged");
    assert!(daemon.sigterm().success());
}

#[test]
fn another_consumer_of_the_app_is_a_finding() {
    let story = Story::begin();
    story.world.slack.greet_next(vec![hello_frame(3)]);
    let daemon = story.daemon();
    daemon.wait_line("probe slack.sockets finding 2 other connection(s) use this app's token");
}

/// Field report O3: what only a person can mend does not take the rest of usher down, and needs no restart once mended.
/// The slow retry of half a minute to a minute is what makes this story long.
#[test]
fn trouble_that_a_person_must_mend_needs_attention_and_leaves_the_rest_alive() {
    let disabled = Story::begin();
    let revoked = Story::begin();
    revoked.world.slack.refuse_open(Fault::Error("token_revoked"));
    let for_disabled = disabled.daemon();
    let for_revoked = revoked.world.daemon();
    for_revoked.wait_line("probe slack.app_token finding");
    for_revoked.wait_line("token_revoked");
    for_revoked.wait_line("ready webhook=off slack=");
    assert!(revoked.world.cli(&["inbox"]).status.success());

    disabled.world.github.fail_next(1, 502, &[], &json!({"message": "Bad Gateway"}));
    let posted = say_and_hear_the_ack(&disabled, "before the link went");
    for_disabled.wait_line("the record waits");
    disabled.world.slack.disconnect("link_disabled");
    for_disabled.wait_line("Socket Mode is switched off for this Slack app");
    disabled.wait_done(&posted);
    assert_eq!(disabled.world.github.comments(ITEM).len(), 1);
    assert_eq!(disabled.line_of(&posted)["stage"], "settled");

    for story in [&disabled, &revoked] {
        let until = Instant::now() + Duration::from_secs(75);
        while story.world.slack.sockets() == 0 && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(100));
        }
        let posted = say_and_hear_the_ack(story, "mended");
        story.wait_done(&posted);
    }
}

#[test]
fn sigterm_ends_it_within_ten_seconds_while_a_download_stalls() {
    let story = Story::with_config("attachments.timeout = '30s'");
    let daemon = story.daemon();
    let shot = FileSpec::new("shot.png", "image/png", png()).behaving([Behaviour::Stall, Behaviour::Normal]);
    let posted = story.say_with("look at this", &[story.world.slack.add_file(shot)]);
    eventually("the download begins", || story.world.slack.file_requests().len() == 1);
    let asked = Instant::now();
    let status = daemon.sigterm();
    assert_eq!(status.code(), Some(0));
    assert!(asked.elapsed() < Duration::from_secs(10), "{:?}", asked.elapsed());
    assert_eq!(story.world.slack.frames().closes, 1);
    let _daemon = story.daemon();
    story.wait_done(&posted);
    story.assert_once("look at this");
}

#[test]
fn sigterm_ends_it_within_ten_seconds_while_the_pane_is_held() {
    let story = Story::begin();
    let daemon = story.daemon();
    story.agent.control(&json!({"status": "waiting"}));
    let posted = story.say("when you have time");
    eventually("it waits", || story.mark(&posted).contains("hourglass_flowing_sand"));
    let asked = Instant::now();
    let status = daemon.sigterm();
    assert_eq!(status.code(), Some(0));
    assert!(asked.elapsed() < Duration::from_secs(10), "{:?}", asked.elapsed());
    assert_eq!(story.world.slack.frames().closes, 1);
    story.agent.control(&json!({"status": "idle"}));
    let _daemon = story.daemon();
    story.wait_done(&posted);
    story.assert_once("when you have time");
}

#[test]
fn sigterm_during_the_probe_ends_it_in_order() {
    let story = Story::begin();
    for _ in 0..2 {
        story.world.slack.fail_next("auth.test", Fault::Slow(Duration::from_secs(60)));
    }
    let daemon = story.world.daemon();
    daemon.wait_line("slack socket up");
    let asked = Instant::now();
    let status = daemon.sigterm();
    assert_eq!(status.code(), Some(0), "{status}");
    assert!(asked.elapsed() < Duration::from_secs(10), "{:?}", asked.elapsed());
    assert_eq!(story.world.slack.frames().closes, 1);
}

#[test]
fn what_comes_after_sigterm_is_neither_acknowledged_nor_begun_and_what_is_under_way_is_finished() {
    let story = Story::begin();
    let daemon = story.daemon();
    story.world.github.hold(Duration::from_secs(2));
    let first = say_and_hear_the_ack(&story, "just in time");
    eventually("its record is being written", || story.records_of("just in time").len() == 1);
    daemon.ask_to_end();
    eventually("the socket is closed", || story.world.slack.frames().closes == 1);
    let second = story.say("too late");
    assert_eq!(daemon.wait_end().code(), Some(0));
    assert!(!story.world.slack.acked(&second.envelopes));
    assert_eq!(story.line_of(&second), serde_json::Value::Null);
    let is_write = |call: &&String| call.starts_with("POST ") && call.ends_with("/comments");
    let writes = |story: &Story| story.world.github.calls().iter().filter(is_write).count();
    let before = writes(&story);
    let _daemon = story.daemon();
    story.world.slack.redeliver(&second.envelopes[0], 1);
    story.wait_done(&first);
    story.wait_done(&second);
    story.assert_once("just in time");
    story.assert_once("too late");
    assert_eq!(writes(&story) - before, 1, "only the second record is written: the first one was finished and known");
}

#[test]
fn a_second_daemon_on_the_same_root_is_refused_by_the_name_of_the_first() {
    let story = Story::begin();
    let daemon = story.daemon();
    let refused = story.world.cli(&["run"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1));
    assert!(said.contains(&format!("another usher (process {}) has the state root", daemon.pid())), "{said}");
    assert_eq!(story.world.slack.sockets_opened(), 1);
    let posted = say_and_hear_the_ack(&story, "undisturbed");
    story.wait_done(&posted);
}
