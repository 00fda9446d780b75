//! Point 9 of the first issue: into the pane once, or held with a cause that the sender sees.

use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::bound::{Bound, CHECK, HOURGLASS, done};
use crate::world::{Agent, DANA, ITEM, Posted, ROOM, Tmux, World, eventually};

/// The agent program of a profile without a state file, a transcript or a prompt box.
fn generic(world: &World) -> (Agent, &'static [&'static str]) {
    (world.agent("robot"), &["--agent", "generic"])
}

/// Delivered once, without the waiting mark; and the sender did see it before.
#[track_caller]
fn delivered_after_a_wait(bound: &Bound, posted: &Posted) {
    bound.wait_done(posted);
    let history = bound.world.slack.reaction_history(&posted.ts);
    let times = |change: &str| history.iter().filter(|seen| *seen == change).count();
    assert_eq!((times("+hourglass_flowing_sand"), times("-hourglass_flowing_sand")), (1, 1), "{history:?}");
    assert!(bound.only_submission().contains("\nto the left\n"));
}

/// The whole story of a hold: the cause begins, the message waits untyped, the cause ends, the message arrives once.
#[track_caller]
fn waits_out(bound: &Bound, cause: &str, begin: impl FnOnce(), end: impl FnOnce()) {
    begin();
    let posted = bound.say("to the left");
    bound.wait_held(&posted, cause);
    assert_eq!(bound.agent.raw(), b"", "typed while {cause}");
    end();
    delivered_after_a_wait(bound, &posted);
}

#[test]
fn an_open_dialog_is_never_answered() {
    let bound = Bound::claude("");
    let dialog = |open: bool| bound.agent.control(&json!({"status": if open { "waiting" } else { "idle" }}));
    waits_out(&bound, "dialog", || dialog(true), || dialog(false));
    assert_eq!(bound.agent.approvals(), 0);
}

#[test]
fn a_dead_pane_takes_nothing_and_its_server_survives() {
    let bound = Bound::claude("");
    let tmux = &bound.world.tmux;
    let pane = &bound.agent.pane;
    let field = |name: &str| tmux.run(&["display-message", "-p", "-t", pane, name]);
    let (server, program) = (field("#{pid}"), field("#{pane_start_command}"));
    let words: Vec<&str> = program.trim_matches('"').split(' ').collect();
    let kill = || {
        tmux.run(&["set-option", "-p", "-t", pane, "remain-on-exit", "on"]);
        let pid = field("#{pane_pid}").parse().ok().and_then(Pid::from_raw).unwrap();
        kill_process(pid, Signal::KILL).unwrap();
        eventually("the pane is dead", || field("#{pane_dead}") == "1");
    };
    let respawn = || drop(tmux.run(&[&["respawn-pane", "-t", pane], words.as_slice()].concat()));
    waits_out(&bound, "dead", kill, respawn);
    assert_eq!(field("#{pid}"), server);
}

#[test]
fn a_pane_with_its_input_off_gets_nothing_until_it_is_on() {
    let bound = Bound::claude("");
    let select = |flag: &str| drop(bound.world.tmux.run(&["select-pane", flag, "-t", &bound.agent.pane]));
    waits_out(&bound, "input-off", || select("-d"), || select("-e"));
}

#[test]
fn a_synchronised_pane_gets_nothing_because_its_neighbour_would_too() {
    let bound = Bound::claude("");
    let tmux = &bound.world.tmux;
    let pane = &bound.agent.pane;
    let beside = tmux.run(&["split-window", "-d", "-P", "-F", "#{pane_id}", "-t", pane, "cat"]);
    let set = |value: &str| drop(tmux.run(&["set-window-option", "-t", pane, "synchronize-panes", value]));
    waits_out(&bound, "synchronised", || set("on"), || set("off"));
    assert_eq!(tmux.capture(&beside).trim(), "");
}

#[test]
fn a_terminal_in_line_mode_has_no_reader_and_gets_nothing() {
    for agent in [|world: &World| (world.claude(), &[] as &[&str]), generic] {
        let bound = Bound::with("", agent);
        let cooked = |cooked: bool| bound.agent.control(&json!({"cooked": cooked}));
        waits_out(&bound, "line-mode", || cooked(true), || cooked(false));
    }
}

#[test]
fn claude_without_its_session_file_is_not_trusted() {
    let bound = Bound::claude("");
    let published = |published: bool| bound.agent.control(&json!({"session_file": published}));
    waits_out(&bound, "no-state", || published(false), || published(true));
}

#[test]
fn a_shell_in_front_runs_nothing() {
    let bound = Bound::with("", generic);
    let tmux = &bound.world.tmux;
    let pane = &bound.agent.pane;
    let program = tmux.run(&["display-message", "-p", "-t", pane, "#{pane_start_command}"]);
    tmux.run(&["respawn-pane", "-k", "-t", pane, "sh", "-i"]);
    eventually("the shell's prompt", || tmux.capture(pane).contains(['$', '#']));
    let trap = bound.world.dir().join("trapped");
    let posted = bound.say(&format!("to the left\ntouch {}", trap.display()));
    bound.wait_held(&posted, "shell");
    assert!(!tmux.capture(pane).contains("usher"), "{}", tmux.capture(pane));
    tmux.run(&["send-keys", "-t", pane, &format!("exec {}", program.trim_matches('"')), "Enter"]);
    delivered_after_a_wait(&bound, &posted);
    assert!(!Path::new(&trap).exists());
}

#[test]
fn a_person_in_copy_mode_is_waited_for_and_then_the_mode_is_left() {
    let bound = Bound::claude("[pane]\nmode_wait = \"600ms\"");
    let tmux = &bound.world.tmux;
    tmux.run(&["copy-mode", "-t", &bound.agent.pane]);
    let posted = bound.say("to the left");
    bound.wait_done(&posted);
    assert!(bound.only_submission().contains("\nto the left\n"));
    let raw = bound.agent.raw();
    assert!(raw.starts_with(b"\x1b[200~[usher "), "{}", String::from_utf8_lossy(&raw));
    assert_eq!(tmux.run(&["display-message", "-p", "-t", &bound.agent.pane, "#{pane_in_mode}"]), "0");
}

/// A configuration in which only news can end a wait.
const PATIENT: &str = "[pane]\nretry_min = \"10m\"\nretry_max = \"10m\"";

#[test]
fn what_was_said_before_a_pane_was_bound_is_delivered_when_one_is() {
    let world = World::new(crate::main_job::USHER);
    world.config(PATIENT);
    let thread = world.slack.earlier(ROOM, None, DANA, "The widgets squeak");
    done(&world.cli(&["bind", ITEM, "--slack", &world.slack.permalink(ROOM, &thread)]));
    let daemon = world.daemon();
    daemon.wait_line("slack=up github=");
    let posted = world.slack.post(ROOM, Some(&thread), DANA, "to the left", &[]);
    daemon.wait_line("cause=unbound");
    eventually("the waiting mark", || world.slack.reactions_on(&posted.ts).contains(HOURGLASS));
    let agent = world.claude();
    done(&world.cli(&["bind", ITEM, "--pane", &agent.pane]));
    eventually("one submission", || agent.submitted().len() == 1);
    eventually("the check mark alone", || {
        let marks = world.slack.reactions_on(&posted.ts);
        if marks.contains(CHECK) && !marks.contains(HOURGLASS) { Ok(()) } else { Err(marks) }
    });
}

#[test]
fn a_message_under_way_waits_when_its_pane_is_unbound_and_follows_to_the_next_one() {
    let bound = Bound::claude(PATIENT);
    bound.agent.control(&json!({"status": "waiting"}));
    let posted = bound.say("to the left");
    bound.wait_held(&posted, "dialog");
    bound.cli(&["unbind", ITEM]);
    bound.wait_held(&posted, "unbound");
    let other = bound.world.claude();
    bound.cli(&["bind", ITEM, "--pane", &other.pane]);
    bound.wait_done(&posted);
    assert_eq!(bound.agent.raw(), b"");
    assert_eq!(other.submitted().len(), 1);
}

// Field report M18: after a restart of tmux, %0 is somebody else's pane.
#[test]
fn the_same_pane_id_of_a_restarted_server_is_another_pane() {
    let bound = Bound::claude(PATIENT);
    let world = &bound.world;
    world.tmux.run(&["kill-server"]);
    let stranger = world.claude();
    assert_eq!(stranger.pane, bound.agent.pane);
    let posted = bound.say("to the left");
    bound.wait_held(&posted, "restarted");
    assert_eq!(stranger.raw(), b"");
    bound.cli(&["bind", ITEM, "--pane", &stranger.pane]);
    bound.wait_done(&posted);
    assert_eq!(stranger.submitted().len(), 1);
}

#[test]
fn the_same_pane_id_of_two_servers_is_two_panes() {
    let bound = Bound::claude("");
    let world = &bound.world;
    let elsewhere = world.dir().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let other_server = Tmux::new(&elsewhere, &world.dir().join("home"));
    let other = Agent::start(&other_server, world.dir(), "claude");
    assert_eq!(other.pane, bound.agent.pane);
    world.github.add_issue("acme/widgets#13", "The gadgets hum");
    let thread = world.slack.earlier(ROOM, None, DANA, "The gadgets hum");
    let (socket, link) = (other_server.socket().display().to_string(), world.slack.permalink(ROOM, &thread));
    bound.cli(&["bind", "acme/widgets#13", "--pane", &other.pane, "--socket", &socket, "--slack", &link]);
    let hum = world.slack.post(ROOM, Some(&thread), DANA, "it hums", &[]);
    let squeak = bound.say("it squeaks");
    bound.wait_done(&hum);
    bound.wait_done(&squeak);
    assert!(bound.only_submission().contains("\nit squeaks\n"));
    assert!(other.submitted()[0].contains("\nit hums\n"));
    assert_eq!(other.submitted().len(), 1);
}

#[test]
fn a_half_typed_line_is_put_away_and_comes_back() {
    let bound = Bound::claude("");
    bound.agent.control(&json!({"draft": "half a thought"}));
    let posted = bound.say("to the left");
    bound.wait_done(&posted);
    assert!(!bound.only_submission().contains("half a thought"));
    let capture = || bound.world.tmux.capture(&bound.agent.pane);
    eventually("the draft is back", || if capture().contains("❯ half a thought") { Ok(()) } else { Err(capture()) });
}

/// Words that would act if they were keys: commands, escapes, file mentions.
const HOSTILE: [(&str, &str); 9] = [
    ("a\u{1b}[201~\rb", "a\nb"),
    ("a\u{1b}[201~\nrm -rf /\u{1b}[200~", "a\nrm -rf /"),
    ("!touch trapped", "!touch trapped"),
    ("/quit", "/quit"),
    ("exit", "exit"),
    ("a trailing backslash \\", "a trailing backslash \\"),
    ("a\u{3}b\u{4}c\u{15}d\u{7f}e\u{9b}31mf", "abcdef"),
    ("in\u{202e}vis\u{200b}ible\u{feff}\u{ad}", "invisible"),
    ("tab\there", "tab\there"),
];

#[test]
fn nothing_that_is_said_acts_as_a_key() {
    let bound = Bound::claude("[ledger]\npatience = \"10ms\"");
    HOSTILE.iter().for_each(|(said, _)| drop(bound.say(said)));
    let submitted = eventually("every message", || {
        let submitted = bound.agent.submitted();
        if submitted.len() == HOSTILE.len() { Ok(submitted) } else { Err(submitted) }
    });
    for (text, (said, shown)) in submitted.iter().zip(HOSTILE) {
        assert!(text.contains(&format!("\n\n{shown}\n[usher ")), "{said:?} became {text:?}");
        assert!(text.starts_with("[usher ") && text.trim_end().ends_with(" end]"), "{text:?}");
    }
    assert!(bound.agent.records().iter().all(|record| record["shell"] == false));
    let raw = String::from_utf8(bound.agent.raw()).unwrap();
    let (begun, ended) = (raw.matches("\x1b[200~").count(), raw.matches("\x1b[201~").count());
    assert_eq!((begun, begun + ended), (ended, raw.matches('\x1b').count()));
}

#[test]
fn a_file_mention_in_the_words_of_others_is_broken_up() {
    let bound = Bound::claude("");
    let forward = json!([{
        "is_share": true, "is_msg_unfurl": true, "author_name": "Eve", "channel_name": "general",
        "from_url": "https://acme.slack.com/archives/C0GENERAL/p1700000000000100", "text": "look at @/etc/passwd please",
    }]);
    let ts = "1790000000.000100";
    bound.world.slack.send_event(&json!({
        "type": "message", "channel": ROOM, "channel_type": "channel", "user": DANA, "ts": ts, "event_ts": ts,
        "thread_ts": bound.thread, "team": crate::world::TEAM, "text": "see this", "attachments": forward,
    }));
    eventually("one submission", || bound.agent.submitted().len() == 1);
    let text = bound.only_submission();
    assert!(text.contains("passwd") && !text.contains("@/"), "{text}");
}

#[test]
fn a_hundred_kilobytes_arrive_whole() {
    let bound = Bound::claude("");
    let lines: Vec<String> = (0..1000).map(|number| format!("{number:04} {}", "x".repeat(95))).collect();
    let posted = bound.say(&lines.join("\n"));
    bound.wait_done(&posted);
    assert!(bound.only_submission().contains(&format!("\n\n{}\n[usher ", lines.join("\n"))));
}

#[test]
fn a_swallowed_key_is_pressed_again_and_the_text_is_not_typed_again() {
    let bound = Bound::claude("");
    bound.agent.control(&json!({"swallow_enters": 1}));
    let posted = bound.say("to the left");
    bound.wait_done(&posted);
    assert!(bound.only_submission().contains("\nto the left\n"));
    assert_eq!(times_typed(&bound, "to the left"), 1);
}

fn times_typed(bound: &Bound, words: &str) -> usize {
    String::from_utf8_lossy(&bound.agent.raw()).matches(words).count()
}

#[test]
fn without_evidence_it_is_unsure_told_and_typed_again_only_when_the_operator_says_so() {
    let bound = Bound::claude("[pane]\nevidence = \"300ms\"");
    bound.agent.control(&json!({"swallow_enters": 99}));
    let posted = bound.say("to the left");
    bound.wait_marks(&posted, &["eyes", "grey_question"]);
    let told = eventually("the notice", || bound.world.slack.ephemerals().into_iter().next());
    assert!(told.text.starts_with("unsure: "), "{told:?}");
    assert_eq!((told.user.as_str(), told.thread_ts.as_str()), (DANA, bound.thread.as_str()));
    bound.agent.control(&json!({"swallow_enters": 0}));
    let next = bound.say("to the right");
    bound.wait_done(&next);
    assert_eq!(times_typed(&bound, "to the left"), 1);

    bound.cli(&["inbox", "retry", &bound.id_of(&posted)]);
    bound.wait_done(&posted);
    assert_eq!(times_typed(&bound, "to the left"), 2);
    assert_eq!(bound.world.github.comments(ITEM).len(), 2);
}

#[test]
fn only_a_lasting_hold_is_told_and_with_the_cause_that_lasted() {
    let bound = Bound::claude("");
    bound.agent.control(&json!({"status": "waiting"}));
    let short = bound.say("to the left");
    bound.wait_held(&short, "dialog");
    bound.agent.control(&json!({}));
    bound.wait_done(&short);

    bound.agent.control(&json!({"status": "waiting"}));
    let long = bound.say("to the right");
    bound.wait_marks(&long, &["eyes", HOURGLASS]);
    bound.agent.control(&json!({"session_file": false}));
    bound.wait_held(&long, "no-state");
    let told = eventually("the notice", || bound.world.slack.ephemerals().into_iter().next());
    assert!(told.text.starts_with("waiting: usher does not see the agent's session file"), "{told:?}");
    bound.agent.control(&json!({}));
    bound.wait_done(&long);
    assert_eq!(bound.world.slack.ephemerals().len(), 1, "{:?}", bound.world.slack.ephemerals());
}

#[test]
fn the_waiting_mark_is_taken_off_by_the_next_daemon() {
    let mut bound = Bound::claude("");
    bound.agent.control(&json!({"status": "waiting"}));
    let posted = bound.say("to the left");
    bound.wait_held(&posted, "dialog");
    bound.kill9();
    bound.agent.control(&json!({"status": "idle"}));
    bound.start();
    delivered_after_a_wait(&bound, &posted);
}
