//! Point 5 of the first issue, and what the operator types: every verb, its exit code, and that the daemon sees it at once.

use std::process::Output;

use serde_json::{Value, json};

use crate::bound::{Bound, done};
use crate::main_job::USHER;
use crate::world::{DANA, ITEM, ROOM, World, eventually};

/// A world without a daemon.
fn quiet() -> World {
    World::new(USHER)
}

/// What a verb said on standard error, when it ended with this code.
#[track_caller]
fn refused(output: &Output, code: i32) -> String {
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{}{error}", String::from_utf8_lossy(&output.stdout));
    error
}

/// What a verb printed, when it ended with 1: it was asked for, and there is something to say.
#[track_caller]
fn with_findings(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[track_caller]
fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn what_is_bound_is_shown_and_what_is_unbound_is_gone() {
    let world = quiet();
    let agent = world.claude();
    let thread = world.slack.earlier(ROOM, None, DANA, "The widgets squeak");
    let link = world.slack.permalink(ROOM, &thread);
    let said = done(&world.cli(&["bind", ITEM, "--pane", &agent.pane, "--slack", &link]));
    assert_eq!(said, format!("{ITEM} is bound to pane {} (claude), thread {ROOM}/{thread}\n", agent.pane));
    assert_eq!(done(&world.cli(&["sessions"])), format!("{ITEM}\t{} claude\t{ROOM}\tready\n", agent.pane));
    let sessions = json_of(&done(&world.cli(&["sessions", "--json"])));
    assert_eq!(
        (&sessions[0]["work_item"], &sessions[0]["session"]["pane"], &sessions[0]["state"]),
        (&json!(ITEM), &json!(agent.pane), &json!("ready"))
    );
    agent.control(&json!({"status": "waiting"}));
    let waiting = done(&world.cli(&["sessions"]));
    assert!(waiting.ends_with("\tmessages wait: the agent waits on a dialog (permission prompt)\n"), "{waiting}");

    let unbound = json_of(&done(&world.cli(&["unbind", ITEM, "--json"])));
    assert_eq!(unbound, json!({"work_item": ITEM, "was_bound": true}));
    assert_eq!(with_findings(&world.cli(&["unbind", ITEM])), format!("{ITEM} was not bound\n"));
    assert!(done(&world.cli(&["sessions"])).starts_with("nothing is bound: usher bind "));
    assert_eq!(json_of(&done(&world.cli(&["sessions", "--json"]))), json!([]));
}

#[test]
fn a_room_is_bound_by_its_id_and_a_thread_by_channel_and_ts() {
    let world = quiet();
    let room = json_of(&done(&world.cli(&["bind", ITEM, "--slack", ROOM, "--listen", "all", "--json"])));
    assert_eq!(room["conversations"][0]["channel"], ROOM);
    assert_eq!(
        (&room["conversations"][0]["thread"], &room["conversations"][0]["listen"]),
        (&json!(null), &json!("all"))
    );
    let thread = json_of(&done(&world.cli(&["bind", ITEM, "--slack", "C0ROOM/1700000000.000100", "--json"])));
    assert_eq!(thread["conversations"][1]["thread"], "1700000000.000100");
    let reply = "https://acme.slack.com/archives/C0ROOM/p1700000000000300?thread_ts=1700000000.000200&cid=C0ROOM";
    let bound = json_of(&done(&world.cli(&["bind", ITEM, "--slack", reply, "--json"])));
    assert_eq!(bound["conversations"][2]["thread"], "1700000000.000200");
}

#[test]
fn what_belongs_to_another_work_item_is_refused_with_its_owner() {
    let world = quiet();
    let (agent, other) = (world.claude(), world.claude());
    done(&world.cli(&["bind", ITEM, "--pane", &agent.pane, "--slack", ROOM]));
    let taken = refused(&world.cli(&["bind", "acme/widgets#13", "--pane", &agent.pane]), 1);
    assert_eq!(taken, format!("usher: that pane belongs to {ITEM}: usher unbind {ITEM} first\n"));
    let taken = refused(&world.cli(&["bind", "acme/widgets#13", "--pane", &other.pane, "--slack", ROOM]), 1);
    assert_eq!(taken, format!("usher: that conversation belongs to {ITEM}: usher unbind {ITEM} first\n"));
    let sessions = json_of(&done(&world.cli(&["sessions", "--json"])));
    assert_eq!(sessions.as_array().unwrap().len(), 1, "half of a refused bind stayed: {sessions}");
    done(&world.cli(&["bind", ITEM, "--pane", &other.pane]));
    done(&world.cli(&["bind", "acme/widgets#13", "--pane", &agent.pane]));
}

#[test]
fn what_cannot_be_bound_is_refused_with_the_remedy() {
    let world = quiet();
    let agent = world.claude();
    let shell = world.tmux.new_pane(&["sh", "-i"]);
    let bind = |arguments: &[&str]| world.cli(&[&["bind"], arguments].concat());
    for (arguments, code, words) in [
        (&["widgets#12", "--pane", &agent.pane] as &[&str], 2, "owner/repo#12"),
        (&[ITEM], 2, "--pane"),
        (&[ITEM, "--pane", "3"], 2, "is not a pane id"),
        (&[ITEM, "--slack", "https://example.com/archives/C0ROOM/p1700000000000100"], 1, "this is no place in Slack"),
        (&[ITEM, "--slack", "general"], 1, "this is no place in Slack"),
        (&[ITEM, "--pane", "%99"], 1, "there is no pane %99 on this tmux server"),
        (&[ITEM, "--pane", &agent.pane, "--socket", "/nonexistent"], 1, "no tmux server answers on this socket"),
        (&[ITEM, "--pane", &shell], 1, "no agent is recognised in pane"),
        (&[ITEM, "--pane", &agent.pane, "--agent", "cladue"], 1, "there is no agent profile `cladue`: use one of"),
        (&[ITEM, "--listen", "all", "--pane", &agent.pane], 2, "--slack"),
    ] {
        let error = refused(&bind(arguments), code);
        assert!(error.contains(words), "{arguments:?}: {error}");
    }
    assert_eq!(json_of(&done(&world.cli(&["sessions", "--json"]))), json!([]));
    assert!(done(&bind(&[ITEM, "--pane", &shell, "--agent", "claude"])).contains("(claude)"));
}

#[test]
fn status_tells_whether_usher_runs_and_what_is_under_way() {
    let mut bound = Bound::claude("");
    bound.agent.control(&json!({"status": "waiting"}));
    let posted = bound.say("to the left");
    bound.wait_held(&posted, "dialog");
    let status = json_of(&bound.cli(&["status", "--json"]));
    assert_eq!((&status["running"], &status["pid"]), (&json!(true), &json!(bound.daemon().pid())));
    assert_eq!((&status["open"], &status["held"], &status["settled"]), (&json!(1), &json!(1), &json!(0)));
    let text = bound.cli(&["status"]);
    assert!(
        text.starts_with(&format!("usher runs (pid {})\nunder way       1 (1 held)\n", bound.daemon().pid())),
        "{text}"
    );
    bound.kill9();
    let text = with_findings(&bound.world.cli(&["status"]));
    assert!(text.starts_with("usher does not run\nunder way       1 (1 held)\n"), "{text}");
}

#[test]
fn the_inbox_shows_words_only_when_asked_for_one_message() {
    let bound = Bound::claude("");
    let posted = bound.say("the left squeaks");
    bound.wait_done(&posted);
    let id = bound.id_of(&posted);
    let list = bound.cli(&["inbox"]);
    assert!(list.contains(&format!("\t{ITEM}\tsettled (submitted)\t{id}\t")), "{list}");
    assert!(!list.contains("squeaks") && !bound.cli(&["inbox", "list", "--json"]).contains("squeaks"), "{list}");
    assert_eq!(bound.cli(&["inbox", "list", "--open"]), "no messages\n");
    let shown = bound.cli(&["inbox", "show", &id]);
    assert!(shown.contains("\nfrom slack:U0DANA at ") && shown.contains("\n  the left squeaks\n"), "{shown}");
    assert!(shown.contains("record 1: landed https://github.com/acme/widgets/issues/12#issuecomment-"), "{shown}");
    let whole = json_of(&bound.cli(&["inbox", "show", "1", "--json"]));
    assert_eq!((&whole["id"], &whole["message"]["text"]), (&json!(id), &json!("the left squeaks")));
    assert_eq!(whole["records"][0]["state"], "landed");

    for verb in ["show", "retry"] {
        let unknown = refused(&bound.world.cli(&["inbox", verb, "slack:T/C/1.2"]), 1);
        assert_eq!(unknown, "usher: there is no message `slack:T/C/1.2`: see usher inbox list\n");
    }
    assert!(with_findings(&bound.world.cli(&["inbox", "retry", &id])).starts_with("there is nothing to try again"));
    assert!(with_findings(&bound.world.cli(&["inbox", "drop", &id])).starts_with("there is nothing to drop"));
    assert!(with_findings(&bound.world.cli(&["inbox", "drop", "99"])).starts_with("there is nothing to drop"));
}

#[test]
fn a_dropped_message_is_never_typed_and_its_lane_goes_on_at_once() {
    let bound = Bound::claude("[pane]\nretry_min = \"10m\"\nretry_max = \"10m\"");
    bound.agent.control(&json!({"status": "waiting"}));
    let (first, second) = (bound.say("to the left"), bound.say("to the right"));
    bound.wait_held(&first, "dialog");
    let id = bound.id_of(&first);
    assert_eq!(bound.cli(&["inbox", "retry", &id]), "it is on its way; its pane is looked at now\n");
    bound.agent.control(&json!({}));
    assert_eq!(bound.cli(&["inbox", "drop", &id]), "dropped; its sender is told\n");
    bound.wait_done(&second);
    bound.wait_marks(&first, &["eyes", "warning"]);
    let told = eventually("the notice", || bound.world.slack.ephemerals().into_iter().next());
    assert_eq!(told.text, "not delivered: the operator dropped it.");
    assert!(bound.only_submission().contains("to the right"));

    assert_eq!(bound.cli(&["inbox", "retry", &id]), "it is delivered anew\n");
    bound.wait_done(&first);
    assert!(bound.agent.submitted()[1].contains("to the left"));
}

#[test]
fn retry_makes_a_held_pane_be_looked_at_now() {
    let bound = Bound::claude("[pane]\nretry_min = \"10m\"\nretry_max = \"10m\"");
    bound.agent.control(&json!({"status": "waiting"}));
    let posted = bound.say("to the left");
    bound.wait_held(&posted, "dialog");
    bound.agent.control(&json!({}));
    bound.cli(&["inbox", "retry", &bound.id_of(&posted)]);
    bound.wait_done(&posted);
}

#[test]
fn the_configuration_is_checked_and_shown_without_secrets() {
    let mut world = quiet();
    assert_eq!(done(&world.cli(&["config", "check"])), "the configuration is valid\n");
    let shown = done(&world.cli(&["config", "show"]));
    for secret in [world.slack.app_token(), world.slack.bot_token(), world.github.token()] {
        assert!(!shown.contains(&secret[..12]), "{shown}");
    }
    assert!(shown.contains("twin_wait = \"300ms\"") && shown.contains("name = \"Dana\""), "{shown}");

    world.config("[slack]\nsilense = \"3s\"\n[pain]\ntimeout = \"-1s\"");
    for verb in [&["config", "check"] as &[&str], &["run"], &["probe"], &["status"]] {
        let error = refused(&world.cli(verb), 2);
        assert!(error.contains("slack.silense is not a key of usher: the nearest is slack.silence"), "{error}");
        assert!(error.contains("pain"), "{error}");
    }
    world.config("");
    world.set_env("USHER__PANE__TIMEUOT", "1s");
    let error = refused(&world.cli(&["config", "check"]), 2);
    assert!(error.contains("USHER__PANE__TIMEUOT is not a key of usher: the nearest is pane.timeout"), "{error}");
}

#[test]
fn a_secret_in_the_configuration_is_refused_and_not_repeated() {
    let world = quiet();
    let token = "xoxb-0123456789-not-a-real-one";
    world.config(&format!("[slack]\nbot_token = \"{token}\""));
    let error = refused(&world.cli(&["run"]), 2);
    assert!(error.contains("slack.bot_token") && !error.contains(token), "{error}");
}

#[test]
fn the_verbs_that_need_no_world_say_what_they_know() {
    let world = quiet();
    let state = done(&world.cli(&["state"]));
    assert!(state.contains("local/usher.db ") && state.contains("portable/<slug>.json"), "{state}");
    let manifest = done(&world.cli(&["manifest"]));
    assert!(manifest.contains("socket_mode_enabled: true") && manifest.contains("- files:read"), "{manifest}");
    for shell in ["bash", "zsh", "fish"] {
        assert!(done(&world.cli(&["completions", shell])).contains("unbind"), "{shell}");
    }
    let help = done(&world.cli(&["--help"]));
    for verb in ["run", "probe", "bind", "unbind", "sessions", "inbox", "status", "manifest", "config", "state"] {
        assert!(help.contains(&format!("\n  {verb} ")), "{verb}: {help}");
    }
    assert!(done(&world.cli(&["--version"])).starts_with("usher "));
    assert!(refused(&world.cli(&["bnid"]), 2).contains("bind"));
}

#[test]
fn a_second_daemon_is_refused_and_names_the_first() {
    let bound = Bound::claude("");
    let error = refused(&bound.world.cli(&["run"]), 1);
    assert!(error.contains(&format!("another usher (process {}) has the state root", bound.daemon().pid())), "{error}");
}
