//! kill -9 between each pair of stages, and at random moments: nothing is lost, nothing is done twice.
//!
//! What a message's stage is, is read in usher's own database: the only place that tells, between two steps, how far
//! they came.

use std::collections::BTreeSet;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use serde_json::{Value, json};

use crate::main_job::{USHER, png};
use crate::story::Story;
use crate::world::{Agent, Behaviour, DANA, Fault, FileSpec, ITEM, Posted, ROOM, Twin, World, eventually};

const WORDS: &str = "mind the gap";

/// The stages as the database names them: the message's, and the paste's.
fn stages(story: &Story, posted: &Posted) -> (String, String) {
    let path = story.world.dir().join("state/local/usher.db");
    let read = || {
        let db = Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let sql = "SELECT stage, paste FROM message WHERE id LIKE '%' || ?1";
        db.query_row(sql, [&posted.ts], |row| Ok((row.get(0)?, row.get(1)?)))
    };
    read().unwrap_or_default()
}

#[track_caller]
fn wait_stage(story: &Story, posted: &Posted, stage: &str, paste: &str) {
    eventually(&format!("stage {stage}, paste `{paste}`"), || {
        let now = stages(story, posted);
        if now == (stage.to_owned(), paste.to_owned()) { Ok(()) } else { Err(now) }
    });
}

/// Waits until the whole text has come to the terminal of an agent that hangs.
#[track_caller]
fn wait_pasted(agent: &Agent) {
    eventually("the whole paste is in the terminal", || String::from_utf8_lossy(&agent.raw()).contains(" end]"));
}

/// Carried to its end exactly once, by the daemon that runs now.
#[track_caller]
fn assert_carried_once(story: &Story, posted: &Posted) {
    story.wait_done(posted);
    story.wait_for_the_lane();
    story.assert_once(WORDS);
}

#[test]
fn killed_after_accepted() {
    let story = Story::begin();
    let daemon = story.daemon();
    story.world.slack.fail_next("conversations.replies", Fault::Slow(Duration::from_secs(60)));
    let twins = [Twin::MentionWithoutFiles];
    let posted = story.world.slack.mention(ROOM, Some(&story.thread), DANA, WORDS, &[], &twins);
    eventually("the post is read", || story.world.slack.calls().iter().any(|call| call == "conversations.replies"));
    wait_stage(&story, &posted, "accepted", "");
    daemon.kill9();
    let _daemon = story.daemon();
    assert_carried_once(&story, &posted);
}

#[test]
fn killed_after_admitted_while_a_file_downloads() {
    let story = Story::with_config("attachments.timeout = '30s'");
    let daemon = story.daemon();
    let shot = FileSpec::new("shot.png", "image/png", png()).behaving([Behaviour::Stall, Behaviour::Normal]);
    let posted = story.say_with(WORDS, &[story.world.slack.add_file(shot)]);
    eventually("the download begins", || story.world.slack.file_requests().len() == 1);
    wait_stage(&story, &posted, "admitted", "");
    daemon.kill9();
    let _daemon = story.daemon();
    assert_carried_once(&story, &posted);
    assert!(story.agent.submitted()[0].contains("— saved at `"), "{:?}", story.agent.submitted());
}

#[test]
fn killed_after_fetched() {
    let story = Story::begin();
    let daemon = story.daemon();
    // A mention does not say what kind of conversation it stands in; the record waits for the answer.
    story.world.slack.fail_next("conversations.info", Fault::Slow(Duration::from_secs(60)));
    let shot = story.world.slack.add_file(FileSpec::new("shot.png", "image/png", png()));
    let posted = story.world.slack.mention(ROOM, Some(&story.thread), DANA, WORDS, &[shot], &[Twin::Mention]);
    wait_stage(&story, &posted, "fetched", "");
    daemon.kill9();
    let _daemon = story.daemon();
    assert_carried_once(&story, &posted);
    assert_eq!(story.world.slack.file_requests().len(), 1, "the file is not fetched again");
}

#[test]
fn killed_while_the_ticket_takes_the_record_and_does_not_say_so() {
    let story = Story::with_config("ledger.patience = '60s'");
    let daemon = story.daemon();
    story.world.github.hold(Duration::from_secs(60));
    let posted = story.say(WORDS);
    eventually("the record is on the ticket", || story.records_of(WORDS).len() == 1);
    wait_stage(&story, &posted, "recorded", "");
    daemon.kill9();
    let _daemon = story.daemon();
    assert_carried_once(&story, &posted);
}

#[test]
fn killed_after_an_answer_of_the_ticket_was_lost() {
    let story = Story::begin();
    let daemon = story.daemon();
    story.world.github.swallow_answer();
    let posted = story.say(WORDS);
    daemon.wait_line("the record waits");
    daemon.kill9();
    let _daemon = story.daemon();
    assert_carried_once(&story, &posted);
}

#[test]
fn killed_while_the_ticket_refuses_for_now() {
    let story = Story::begin();
    let daemon = story.daemon();
    story.world.github.fail_next(1, 502, &[], &json!({"message": "Bad Gateway"}));
    let posted = story.say(WORDS);
    daemon.wait_line("the record waits");
    story.wait_submitted(WORDS);
    wait_stage(&story, &posted, "delivered", "submitted");
    daemon.kill9();
    let _daemon = story.daemon();
    assert_carried_once(&story, &posted);
}

#[test]
fn killed_while_the_pane_is_held() {
    let story = Story::begin();
    let daemon = story.daemon();
    story.agent.control(&json!({"status": "waiting"}));
    let posted = story.say(WORDS);
    eventually("it is marked as waiting", || story.mark(&posted).contains("hourglass_flowing_sand"));
    daemon.kill9();
    let daemon = story.daemon();
    assert_eq!(story.pastes_of(WORDS), 0);
    daemon.kill9();
    story.agent.control(&json!({"status": "idle"}));
    let _daemon = story.daemon();
    assert_carried_once(&story, &posted);
    assert_eq!(story.agent.approvals(), 0);
}

#[test]
fn killed_while_the_paste_is_not_seen_yet() {
    let story = Story::begin();
    let daemon = story.daemon();
    story.agent.control(&json!({"hung": true}));
    let posted = story.say(WORDS);
    wait_pasted(&story.agent);
    wait_stage(&story, &posted, "recorded", "pasting");
    daemon.kill9();
    story.agent.control(&json!({}));
    let _daemon = story.daemon();
    assert_carried_once(&story, &posted);
}

/// The terminal has taken the paste, the agent shows it only after the restart: an empty composer proves nothing yet.
#[test]
fn killed_while_the_agent_hangs_and_the_paste_shows_after_the_restart() {
    let story = Story::begin();
    let daemon = story.daemon();
    story.agent.control(&json!({"hung": true}));
    let posted = story.say(WORDS);
    wait_pasted(&story.agent);
    wait_stage(&story, &posted, "recorded", "pasting");
    daemon.kill9();
    let _daemon = story.daemon();
    story.agent.control(&json!({}));
    assert_carried_once(&story, &posted);
}

#[test]
fn killed_between_the_paste_and_the_submit() {
    let story = Story::begin();
    let daemon = story.daemon();
    story.agent.control(&json!({"typed_behind": "x"}));
    let posted = story.say(WORDS);
    wait_stage(&story, &posted, "recorded", "pasted");
    eventually("it waits for the typist", || story.mark(&posted).contains("hourglass_flowing_sand"));
    daemon.kill9();
    let _daemon = story.daemon();
    story.world.tmux.run(&["send-keys", "-t", &story.agent.pane, "BSpace"]);
    assert_carried_once(&story, &posted);
}

/// What was typed into one pane is looked for in that pane, though another one is bound by now.
#[test]
fn killed_between_the_paste_and_the_submit_and_bound_to_another_pane() {
    let story = Story::begin();
    let daemon = story.daemon();
    story.agent.control(&json!({"typed_behind": "x"}));
    let posted = story.say(WORDS);
    wait_stage(&story, &posted, "recorded", "pasted");
    daemon.kill9();
    let other = story.world.claude();
    story.bind(ITEM, &other, &story.thread);
    let _daemon = story.daemon();
    story.world.tmux.run(&["send-keys", "-t", &story.agent.pane, "BSpace"]);
    assert_carried_once(&story, &posted);
    assert!(!String::from_utf8_lossy(&other.raw()).contains(WORDS));
}

#[test]
fn killed_after_a_submit_key_without_effect() {
    let story = Story::begin();
    let daemon = story.daemon();
    story.agent.control(&json!({"swallow_enters": 1000}));
    let posted = story.say(WORDS);
    wait_stage(&story, &posted, "recorded", "submitted");
    daemon.kill9();
    story.agent.control(&json!({}));
    let _daemon = story.daemon();
    assert_carried_once(&story, &posted);
}

#[test]
fn asked_to_end_between_the_key_and_its_proof() {
    let story = Story::begin();
    let daemon = story.daemon();
    story.agent.control(&json!({"swallow_enters": 1000}));
    let posted = story.say(WORDS);
    wait_stage(&story, &posted, "recorded", "submitted");
    assert_eq!(daemon.sigterm().code(), Some(0));
    story.agent.control(&json!({}));
    let _daemon = story.daemon();
    assert_carried_once(&story, &posted);
}

/// The transcript names a submission only after up to 261 ms (agents-in-tmux 12); a restart can be faster.
#[test]
fn killed_after_the_submit_and_before_its_proof() {
    let story = Story::begin();
    let daemon = story.daemon();
    story.agent.control(&json!({"transcript_delay_ms": 1500}));
    let posted = story.say(WORDS);
    story.wait_submitted(WORDS);
    daemon.kill9();
    let _daemon = story.daemon();
    assert_carried_once(&story, &posted);
}

#[test]
fn killed_before_the_check_mark_is_shown() {
    let story = Story::begin();
    let daemon = story.daemon();
    story.agent.control(&json!({"status": "waiting"}));
    let posted = story.say(WORDS);
    let held = BTreeSet::from(["eyes".to_owned(), "hourglass_flowing_sand".to_owned()]);
    eventually("it is marked as waiting", || story.mark(&posted) == held);
    story.world.slack.fail_next("reactions.add", Fault::Slow(Duration::from_secs(60)));
    let marks = || story.world.slack.calls().iter().filter(|call| *call == "reactions.add").count();
    let before = marks();
    story.agent.control(&json!({"status": "idle"}));
    wait_stage(&story, &posted, "settled", "submitted");
    eventually("the check mark is being put", || marks() > before);
    daemon.kill9();
    assert!(!story.mark(&posted).contains("white_check_mark"));
    let _daemon = story.daemon();
    assert_carried_once(&story, &posted);
}

/// An agent that leaves no proof, killed between paste and proof: never a second paste, and its sender is told.
#[test]
fn an_interrupted_delivery_that_nothing_can_prove_is_unsure_and_never_typed_again() {
    let story = Story::begin();
    let agent = story.world.agent("opencode");
    let thread = story.world.slack.earlier(ROOM, None, DANA, "Another thread");
    story.world.github.add_issue("acme/widgets#13", "Another one");
    story.bind("acme/widgets#13", &agent, &thread);
    let daemon = story.daemon();
    agent.control(&json!({"hung": true}));
    let posted = story.world.slack.post(ROOM, Some(&thread), DANA, WORDS, &[]);
    wait_pasted(&agent);
    wait_stage(&story, &posted, "recorded", "pasting");
    daemon.kill9();
    agent.control(&json!({}));
    let _daemon = story.daemon();
    eventually("its sender sees that it is unsure", || story.mark(&posted).contains("grey_question"));
    eventually("its sender is told why", || match story.world.slack.ephemerals() {
        told if told.iter().any(|told| told.text.contains("nothing that would tell")) => Ok(()),
        told => Err(told),
    });
    assert_eq!(String::from_utf8_lossy(&agent.raw()).matches(WORDS).count(), 1);
    assert_eq!(agent.submitted(), Vec::<String>::new());
    assert_eq!(story.line_of(&posted)["verdict"], "unsure");
}

/// Numbers that look random and are the same in every run (splitmix64).
struct Seeded(u64);

impl Seeded {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}

/// Kills the daemon so long after each of five posts; what was not acknowledged comes again, as Slack does it.
fn killed_at_random_moments(seed: u64) {
    let story = Story::with_config("pane.evidence = '2s'");
    story.agent.control(&json!({"transcript_delay_ms": 150}));
    let mut random = Seeded(seed);
    let mut posted: Vec<(String, Posted)> = Vec::new();
    for round in 0..5 {
        let daemon = story.daemon();
        redeliver_what_is_not_acked(&story, &posted);
        let words = format!("round {round} of {seed}");
        posted.push((words.clone(), story.say(&words)));
        let moment = Duration::from_millis(random.below(400));
        // The one sleep there is: the moment of the kill is the subject.
        std::thread::sleep(moment);
        daemon.kill9();
        eventually("the socket is gone", || story.world.slack.sockets() == 0);
    }
    let _daemon = story.daemon();
    redeliver_what_is_not_acked(&story, &posted);
    for (_, posted) in &posted {
        eventually("it is settled", || match stages(&story, posted) {
            (stage, _) if stage == "settled" => Ok(()),
            stages => Err(stages),
        });
    }
    for (words, posted) in &posted {
        assert_eq!(story.records_of(words).len(), 1, "records of `{words}`");
        if story.line_of(posted)["verdict"] == "submitted" {
            story.wait_done(posted);
            story.assert_once(words);
        } else {
            eventually("its sender sees that it is unsure", || story.mark(posted).contains("grey_question"));
            // Only a paste that the crash cut into two leaves nothing that tells: its end never came, and no key.
            assert!(story.pastes_of(words) <= 1, "pastes of `{words}`");
            assert!(
                !String::from_utf8_lossy(&story.agent.raw()).contains(&end_line(&story, posted)),
                "`{words}` came whole"
            );
            assert_eq!(story.submissions_of(words), 0, "submissions of `{words}`");
        }
    }
}

/// The last line of a message's frame.
fn end_line(story: &Story, posted: &Posted) -> String {
    let id = story.line_of(posted)["id"].as_str().unwrap_or_default().to_owned();
    let shown = story.world.cli(&["inbox", "show", &id, "--json"]);
    let whole: Value = serde_json::from_slice(&shown.stdout).unwrap();
    format!("[usher {} end]", whole["nonce"].as_str().unwrap())
}

fn redeliver_what_is_not_acked(story: &Story, posted: &[(String, Posted)]) {
    for (_, posted) in posted.iter().filter(|(_, posted)| !story.world.slack.acked(&posted.envelopes)) {
        story.world.slack.redeliver(&posted.envelopes[0], 1);
    }
}

#[test]
fn killed_at_random_moments_nothing_is_lost_and_nothing_is_typed_twice_1() {
    killed_at_random_moments(1);
}

#[test]
fn killed_at_random_moments_nothing_is_lost_and_nothing_is_typed_twice_2() {
    killed_at_random_moments(2);
}

#[test]
fn killed_at_random_moments_nothing_is_lost_and_nothing_is_typed_twice_3() {
    killed_at_random_moments(3);
}

#[test]
fn killed_at_random_moments_nothing_is_lost_and_nothing_is_typed_twice_4() {
    killed_at_random_moments(4);
}

#[test]
fn what_was_acknowledged_is_in_the_database_after_a_kill() {
    let story = Story::begin();
    let daemon = story.daemon();
    let posted: Vec<Posted> = (0..40).map(|number| story.say(&format!("number {number}"))).collect();
    eventually("some are acknowledged", || story.world.slack.ack_count() > 0);
    daemon.kill9();
    let acked: Vec<&Posted> = posted.iter().filter(|posted| story.world.slack.acked(&posted.envelopes)).collect();
    assert!(!acked.is_empty());
    for posted in acked {
        assert_ne!(story.line_of(posted), Value::Null, "an acknowledged message is lost");
    }
}

#[test]
fn a_database_of_a_newer_usher_is_refused_and_left_alone() {
    let world = World::new(USHER);
    assert!(world.cli(&["inbox", "list"]).status.success());
    let path = world.dir().join("state/local/usher.db");
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let before = std::fs::read(&path).unwrap();
    for verb in ["run", "inbox"] {
        let refused = world.cli(&[verb]);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(1), "{said}");
        for part in ["the database has version 99", "it was written by a newer usher, so start that one"] {
            assert!(said.contains(part), "{said}");
        }
    }
    assert_eq!(std::fs::read(&path).unwrap(), before);
    assert_eq!(world.proxy.asked(), Vec::<String>::new());
}
