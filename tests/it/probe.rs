//! Point 2 of the first issue: what usher finds out about its world at start, and says the same way when asked.

use serde_json::Value;

use crate::bound::{Bound, CHECK, done};
use crate::main_job::USHER;
use crate::world::{Agent, DANA, Fault, ITEM, REPOSITORY, ROOM, Twin, World, eventually};

/// The checks of a world in which one pane is bound and one repository declared, in their order.
const CHECKS: [&str; 12] = [
    "config",
    "state",
    "tmux",
    "sessions",
    "slack.app_token",
    "slack.auth",
    "slack.scopes",
    "github.token",
    "github.token",
    "github.webhook",
    "github.assets",
    "people",
];

/// A world with a bound agent.
fn bound() -> (World, Agent) {
    let world = World::new(USHER);
    let agent = world.claude();
    done(&world.cli(&["bind", ITEM, "--pane", &agent.pane, "--slack", ROOM]));
    (world, agent)
}

/// The probe's lines in some output, without the time and level of a log and without what is measured anew each time.
fn probe_lines<'a>(lines: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let probe = |line: &'a str| line.find("probe ").and_then(|at| line.get(at..));
    let steady =
        |line: &str| [" free_mb=", ": error sending "].iter().fold(line, |line, end| before(line, end)).to_owned();
    let lines = lines.into_iter().filter_map(probe).filter(|line| !line.starts_with("probe clock ok "));
    lines.map(steady).collect()
}

fn before<'a>(line: &'a str, end: &str) -> &'a str {
    line.split(end).next().unwrap_or_default()
}

/// The lines of a start and the lines of `usher probe`, which must be the same, and the exit code.
#[track_caller]
fn probed(world: &World) -> (Vec<String>, Option<i32>) {
    let daemon = world.daemon();
    daemon.wait_line(" ready webhook=off slack=");
    let log = daemon.lines();
    let at_start = probe_lines(log.iter().map(String::as_str));
    drop(daemon);
    let asked = world.cli(&["probe"]);
    let text = String::from_utf8_lossy(&asked.stdout);
    assert_eq!(probe_lines(text.lines()), at_start);
    (at_start, asked.status.code())
}

/// A world that this changes has one finding, which begins so.
#[track_caller]
fn finds(change: impl FnOnce(&mut World, &Agent), finding: &str) {
    let (mut world, agent) = bound();
    change(&mut world, &agent);
    let (lines, code) = probed(&world);
    let findings: Vec<_> = lines.iter().filter(|line| line.contains(" finding ")).collect();
    assert!(findings.first().is_some_and(|line| line.starts_with(finding)), "{finding}: {lines:#?}");
    assert_eq!((findings.len(), code), (1, Some(1)), "{findings:#?}");
}

#[test]
fn a_world_as_it_should_be_has_no_findings_at_start_and_when_asked() {
    let (world, _agent) = bound();
    let (lines, code) = probed(&world);
    let checks: Vec<&str> = lines.iter().filter_map(|line| line.split(' ').nth(1)).collect();
    assert_eq!(checks, CHECKS, "{lines:#?}");
    assert!(lines.iter().all(|line| line.contains(" ok ")), "{lines:#?}");
    assert_eq!(code, Some(0));
    let json: Value = serde_json::from_str(&done(&world.cli(&["probe", "--json"]))).unwrap();
    let checks: Vec<&str> = json.as_array().unwrap().iter().filter_map(|line| line["check"].as_str()).collect();
    assert_eq!(checks, [&CHECKS[..], &["clock"]].concat());
    assert!(json.as_array().unwrap().iter().all(|line| line["status"] == "ok" && line["sentence"].is_string()));
}

#[test]
fn ready_comes_after_every_line_of_the_probe() {
    let bound = Bound::claude("");
    let lines = bound.daemon().lines();
    let ready =
        lines.iter().position(|line| line.ends_with(" ready webhook=off slack=up github=up sessions=1")).unwrap();
    let last = lines.iter().rposition(|line| line.contains("probe ")).unwrap();
    assert!(last < ready && lines[last].contains("probe clock ok within "), "{lines:#?}");
}

#[test]
fn a_missing_scope_is_one_finding_with_what_follows_and_the_remedy() {
    finds(
        |world, _| world.slack.revoke_scope("files:read"),
        "probe slack.scopes finding the app lacks files:read, so files are named and linked, never fetched: re-import",
    );
    finds(
        |world, _| world.slack.revoke_scope("reactions:write"),
        "probe slack.scopes finding the app lacks reactions:write, so messages carry no marks: re-import",
    );
}

#[test]
fn tokens_that_are_not_there_or_do_not_work_are_findings() {
    finds(
        |world, _| world.unset_env("GH_TOKEN"),
        "probe github.token finding records cannot be written, so they wait: usher holds no GitHub token: set GH_TOKEN",
    );
    finds(
        |world, _| world.unset_env("USHER_SLACK_APP_TOKEN"),
        "probe slack.app_token finding Socket Mode does not connect, so nothing arrives from Slack: ",
    );
    finds(
        |world, _| world.unset_env("USHER_SLACK_BOT_TOKEN"),
        "probe slack.auth finding the bot token does not work, so no file, mark or notice does: ",
    );
    finds(
        |world, _| (0..9).for_each(|_| world.slack.refuse_open(Fault::Error("invalid_auth"))),
        "probe slack.app_token finding Socket Mode does not connect, so nothing arrives from Slack: Slack does not accept",
    );
    finds(
        |world, _| (0..9).for_each(|_| world.slack.fail_next("auth.test", Fault::Error("token_revoked"))),
        "probe slack.auth finding the bot token does not work, so no file, mark or notice does: Slack does not accept the \
         token or the app (token_revoked)",
    );
}

#[test]
fn a_revoked_github_token_is_a_finding() {
    let (world, _agent) = bound();
    world.github.revoke_token(true);
    let (lines, code) = probed(&world);
    let words = "probe github.token finding records cannot be written, so they wait: GitHub does not accept the token";
    assert!(lines.iter().any(|line| line.starts_with(words)), "{lines:#?}");
    assert_eq!(code, Some(1));
}

#[test]
fn repositories_that_take_no_records_are_findings() {
    finds(
        |world, _| world.github.archive(REPOSITORY),
        "probe github.token finding acme/widgets is archived, so its tickets take no records: unarchive it",
    );
    finds(
        |world, _| world.config("[github]\nrepositories = [\"acme/widgets\", \"acme/hidden\"]"),
        "probe github.token finding acme/hidden cannot be read, so its tickets take no records: GitHub shows no repository",
    );
}

#[test]
fn nobody_who_may_speak_and_no_pane_are_findings() {
    finds(
        |world, _| world.config("people = []"),
        "probe people finding [[people]] is empty, so nobody may do anything: add",
    );
    finds(
        |world, _| drop(done(&world.cli(&["unbind", ITEM]))),
        "probe sessions finding no pane is bound, so messages wait: usher bind owner/repo#12 --pane %N",
    );
    finds(
        |world, agent| {
            world.tmux.new_pane(&["cat"]);
            world.tmux.run(&["kill-pane", "-t", &agent.pane]);
        },
        "probe sessions finding acme/widgets#12 in pane %0 cannot be reached, so its messages wait: the pane is gone: bind again",
    );
    finds(
        |world, agent| {
            world.tmux.run(&["set-option", "-p", "-t", &agent.pane, "remain-on-exit", "on"]);
            world.tmux.run(&["respawn-pane", "-k", "-t", &agent.pane, "true"]);
            let is_dead = || world.tmux.run(&["display-message", "-p", "-t", &agent.pane, "#{pane_dead}"]) == "1";
            eventually("the pane is dead", is_dead);
        },
        "probe sessions finding acme/widgets#12 in pane %0 cannot be reached, so its messages wait: the pane's process has exited: start",
    );
    finds(
        |world, _| drop(world.tmux.run(&["kill-server"])),
        "probe sessions finding acme/widgets#12 in pane %0 cannot be reached, so its messages wait: the tmux server is gone",
    );
}

#[test]
fn another_consumer_of_the_app_is_a_finding_of_the_daemon() {
    let bound = Bound::claude("");
    let elsewhere = bound.world.dir().join("elsewhere");
    bound.world.config(&format!("[state]\nroot = \"{}\"", elsewhere.display()));
    let second = bound.world.daemon();
    second.wait_line(
        "probe slack.sockets finding 1 other connection(s) use this app's token and take a share of the messages: ",
    );
}

#[test]
fn what_cannot_be_reached_is_no_finding_and_is_used_when_it_comes_back() {
    let (world, agent) = bound();
    world.proxy.go_down();
    let (lines, code) = probed(&world);
    assert_eq!(code, Some(0), "{lines:#?}");
    let skipped: Vec<&str> =
        lines.iter().filter(|line| line.contains(" skipped ")).filter_map(|line| line.split(' ').nth(1)).collect();
    assert_eq!(skipped, ["slack.app_token", "slack.auth", "github.token", "github.token", "clock"]);

    let daemon = world.daemon();
    daemon.wait_line("ready webhook=off slack=down github=down sessions=1");
    world.proxy.come_back();
    eventually("the socket is up", || world.slack.sockets() == 1);
    daemon.wait_line("slack workspace known");
    let posted = world.slack.mention(ROOM, None, DANA, "to the left", &[], &[Twin::Message]);
    eventually("the check mark", || world.slack.reactions_on(&posted.ts).contains(CHECK));
    assert_eq!(agent.submitted().len(), 1);
}
