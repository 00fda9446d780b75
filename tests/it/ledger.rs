//! Point 8 of the first issue: the ticket has the record, once, in order, and nothing that it must not have.

use std::time::Duration;

use serde_json::json;

use crate::bound::{Bound, CHECK, done};
use crate::main_job::{USHER, png};
use crate::world::{Comment, DANA, DANA_DM, FileSpec, ITEM, PRIVATE_ROOM, Posted, REPOSITORY, ROOM, World, eventually};

/// The comments of the ticket, when there are so many.
#[track_caller]
fn comments(world: &World, count: usize) -> Vec<Comment> {
    eventually(&format!("{count} comments"), || {
        let comments = world.github.comments(ITEM);
        if comments.len() == count { Ok(comments) } else { Err((comments, world.output())) }
    })
}

#[track_caller]
fn only_comment(world: &World) -> String {
    comments(world, 1).remove(0).body
}

/// The envelope's JSON of a comment: its last line.
fn envelope(body: &str) -> serde_json::Value {
    let last = body.lines().last().unwrap();
    let json = last.strip_prefix("<!-- usher:record ").and_then(|rest| rest.strip_suffix(" -->")).unwrap();
    serde_json::from_str(json.rsplit_once(' ').unwrap().0).unwrap()
}

#[test]
fn the_record_quotes_the_words_links_the_message_and_ends_in_its_envelope() {
    let bound = Bound::claude("");
    let posted = bound.say("to the left\n\nand down");
    bound.wait_done(&posted);
    let body = only_comment(&bound.world);
    let (link, thread) = (bound.world.slack.permalink(ROOM, &posted.ts), &bound.thread);
    assert!(body.starts_with("💬 **Dana** (`slack:U0DANA`) on [Slack]("), "{body}");
    assert!(body.contains(&format!("]({link}?thread_ts={thread}&cid={ROOM})")), "{body}");
    assert!(body.contains("\n> to the left\n> \n> and down\n\n<!-- usher:record "), "{body}");
    let envelope = envelope(&body);
    assert_eq!(envelope["id"], bound.id_of(&posted));
    assert_eq!((&envelope["act"], &envelope["actor"]), (&json!("work-item.reply"), &json!("slack:U0DANA")));
}

#[test]
fn a_swallowed_answer_leaves_one_comment() {
    let bound = Bound::claude("");
    bound.world.github.swallow_answer();
    let posted = bound.say("to the left");
    bound.wait_done(&posted);
    only_comment(&bound.world);
    assert_eq!(bound.world.github.writes().len(), 1);
}

/// What GitHub answers a few times, and the least time after which it is asked again.
#[track_caller]
fn waits_and_lands(config: &str, status: u16, headers: &[(&str, &str)], message: &str, least: Duration) {
    let bound = Bound::claude(config);
    bound.world.github.fail_next(1, status, headers, &json!({"message": message}));
    let begun = std::time::Instant::now();
    let posted = bound.say("to the left");
    bound.daemon().wait_line("the record waits");
    eventually("the pane has it meanwhile", || bound.agent.submitted().len() == 1);
    bound.wait_done(&posted);
    only_comment(&bound.world);
    let written = bound.world.github.writes()[0].at;
    assert!(written - begun >= least, "{status} {headers:?}: asked again after {:?}", written - begun);
    assert_eq!(bound.world.slack.ephemerals(), []);
}

#[test]
fn a_server_error_is_waited_out() {
    waits_and_lands("", 502, &[], "Server Error", Duration::from_millis(900));
}

#[test]
fn a_rate_limit_is_obeyed() {
    waits_and_lands("", 429, &[("retry-after", "2")], "too many", Duration::from_millis(1900));
}

#[test]
fn a_spent_budget_waits_for_its_reset() {
    let reset = (jiff::Timestamp::now().as_second() + 3).to_string();
    let headers = [("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", reset.as_str())];
    waits_and_lands("", 403, &headers, "API rate limit exceeded", Duration::from_millis(500));
}

#[test]
fn a_secondary_limit_that_names_no_time_waits_as_configured() {
    let words = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.";
    waits_and_lands("[github]\nlimit_wait = \"2s\"", 403, &[], words, Duration::from_millis(1900));
}

#[test]
fn a_slow_ticket_holds_no_delivery_up() {
    let bound = Bound::claude("[ledger]\npatience = \"100ms\"");
    bound.world.github.hold(Duration::from_secs(2));
    let posted = bound.say("to the left");
    bound.wait_done(&posted);
    let lines = bound.daemon().lines();
    let place = |words: &str| lines.iter().position(|line| line.contains(words)).unwrap();
    assert!(place("delivery: delivered ") < place("ledger: recorded "), "{lines:#?}");
    only_comment(&bound.world);
}

#[test]
fn a_ticket_that_refuses_is_told_and_takes_the_record_when_the_operator_asks_again() {
    let missing = json!({"message": "Not Found"});
    let locked = json!({"message": "Unable to create comment because issue is locked."});
    let invalid = json!({"message": "Validation Failed"});
    for (status, body, words) in [(404, missing, "HTTP 404"), (403, locked, "is locked"), (422, invalid, "HTTP 422")] {
        let bound = Bound::claude("");
        bound.world.github.fail_next(1, status, &[], &body);
        let posted = bound.say("to the left");
        bound.wait_marks(&posted, &["eyes", "warning"]);
        assert!(bound.only_submission().contains("to the left"));
        let told = eventually("the notice", || bound.world.slack.ephemerals().into_iter().next());
        assert!(told.text.contains("the ticket refused the record") && told.text.contains(words), "{told:?}");
        assert_eq!(bound.world.github.comments(ITEM), []);

        bound.cli(&["inbox", "retry", &bound.id_of(&posted)]);
        bound.wait_done(&posted);
        only_comment(&bound.world);
        assert_eq!(bound.agent.submitted().len(), 1);
    }
}

#[test]
fn without_a_token_the_agent_has_it_and_the_record_waits_for_one() {
    let mut world = World::new(USHER);
    let token = world.github.token();
    world.unset_env("GH_TOKEN");
    let agent = world.claude();
    let thread = world.slack.earlier(ROOM, None, DANA, "The widgets squeak");
    let link = world.slack.permalink(ROOM, &thread);
    done(&world.cli(&["bind", ITEM, "--pane", &agent.pane, "--slack", &link]));
    let daemon = world.daemon();
    daemon.wait_line("slack=up github=");
    let posted = world.slack.post(ROOM, Some(&thread), DANA, "to the left", &[]);
    eventually("the pane has it", || agent.submitted().len() == 1);
    daemon.wait_line("the record waits");
    assert_eq!(world.github.calls(), [] as [String; 0]);
    assert!(!world.slack.reactions_on(&posted.ts).contains(CHECK));
    daemon.kill9();

    world.set_env("GH_TOKEN", &token);
    let daemon = world.daemon();
    daemon.wait_line("slack=up github=");
    done(&world.cli(&["inbox", "retry", "1"]));
    only_comment(&world);
    eventually("the check mark", || world.slack.reactions_on(&posted.ts).contains(CHECK));
    assert_eq!(agent.submitted().len(), 1);
}

#[test]
fn the_outbox_keeps_the_order_of_what_was_said() {
    let bound = Bound::claude("");
    bound.world.github.fail_next(1, 500, &[], &json!({}));
    let posts: Vec<Posted> = ["one", "two", "three"].map(|words| bound.say(words)).into();
    posts.iter().for_each(|posted| bound.wait_done(posted));
    let bodies: Vec<String> = comments(&bound.world, 3).into_iter().map(|comment| comment.body).collect();
    for (body, words) in bodies.iter().zip(["> one\n", "> two\n", "> three\n"]) {
        assert!(body.contains(words), "{bodies:#?}");
    }
}

/// The only comment about what Dana said in a conversation, on a public repository.
fn on_a_public_repository(channel: &str, config: &str) -> String {
    let world = World::new(USHER);
    world.config(config);
    world.github.add_repository(REPOSITORY, false);
    let agent = world.claude();
    done(&world.cli(&["bind", ITEM, "--pane", &agent.pane, "--slack", channel, "--listen", "all"]));
    let daemon = world.daemon();
    daemon.wait_line("slack=up github=");
    world.slack.post(channel, None, DANA, "the customer is Initech", &[]);
    eventually("the pane has it", || agent.submitted().len() == 1);
    assert!(agent.submitted()[0].contains("the customer is Initech"));
    only_comment(&world)
}

// Field report L4: the words of a private channel on a public issue.
#[test]
fn private_words_leave_a_stub_on_a_public_repository_unless_switched_on() {
    for channel in [PRIVATE_ROOM, DANA_DM] {
        let stub = on_a_public_repository(channel, "");
        assert!(!stub.contains("Initech"), "{stub}");
        assert!(stub.contains(&format!("/archives/{channel}/p")), "{stub}");
    }
    let words = on_a_public_repository(PRIVATE_ROOM, "[slack]\nledger_private_channels = true");
    assert!(words.contains("> the customer is Initech\n"), "{words}");
    let words = on_a_public_repository(ROOM, "");
    assert!(words.contains("> the customer is Initech\n"), "{words}");
}

#[test]
fn a_token_that_a_person_typed_reaches_the_pane_and_not_the_ticket() {
    let bound = Bound::claude("");
    let tokens = [
        format!("xoxb-{}-{}", "1234567890", "abcdefghijklmnopqrstuvwx"),
        format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"),
        format!("https://s3.amazonaws.com/b/k?X-Amz-Signature={}", "0123456789abcdef".repeat(4)),
    ];
    let posted = bound.say(&format!("use\n{}\nplease", tokens.join("\n")));
    bound.wait_done(&posted);
    let (text, body) = (bound.only_submission(), only_comment(&bound.world));
    for token in &tokens {
        assert!(text.contains(token.as_str()), "{token}: {text}");
        assert!(!body.contains(&token[token.len() - 20..]), "{token}: {body}");
    }
    assert!(body.contains("https://s3.amazonaws.com/b/k"), "{body}");
}

#[test]
fn what_would_act_on_the_ticket_is_inert() {
    let bound = Bound::claude("");
    let forged = r#"<!-- usher:record {"id":"slack:T0ACME/C0ROOM/1.2","part":1} 00 -->"#;
    let posted =
        bound.say(&format!("fixes #1, closes acme/widgets#2\n@octocat @acme/team look\n{forged}\n<!-- hidden"));
    bound.wait_done(&posted);
    let body = only_comment(&bound.world);
    assert_eq!(body.matches("<!--").count(), 1, "{body}");
    for active in ["fixes #1", "closes acme/widgets#2", "@octocat", "@acme/team"] {
        assert!(!body.contains(active), "{active}: {body}");
    }
    assert!(body.contains("octocat") && body.contains("hidden"), "{body}");
}

#[test]
fn a_record_has_no_path_and_no_private_url() {
    let bound = Bound::claude("");
    let shot = bound.world.slack.add_file(FileSpec::new("shot.png", "image/png", png()));
    let posted = bound.world.slack.post(ROOM, Some(&bound.thread), DANA, "look", std::slice::from_ref(&shot));
    bound.wait_done(&posted);
    let body = only_comment(&bound.world);
    let state = bound.world.dir().display().to_string();
    assert!(bound.only_submission().contains(&state));
    assert!(!body.contains(&state) && !body.contains("attachments/") && !body.contains("files-pri"), "{body}");
    assert!(
        body.contains(&format!("📎 shot.png (image/png, 533 B) — {}", shot["permalink"].as_str().unwrap())),
        "{body}"
    );
}

#[test]
fn what_is_too_long_for_one_comment_is_cut_into_numbered_parts() {
    let bound = Bound::claude("");
    let lines: Vec<String> = (0..700).map(|number| format!("{number:03} {}", "x".repeat(95))).collect();
    let posted = bound.say(&lines.join("\n"));
    bound.wait_done(&posted);
    let bodies: Vec<String> = comments(&bound.world, 2).into_iter().map(|comment| comment.body).collect();
    for (number, body) in (1..).zip(&bodies) {
        assert!(body.contains(&format!("(part {number} of 2):")), "{}", &body[..200]);
        assert_eq!((&envelope(body)["part"], &envelope(body)["parts"]), (&json!(number), &json!(2)));
    }
    let quoted =
        |body: &String| body.lines().filter_map(|line| line.strip_prefix("> ").map(str::to_owned)).collect::<Vec<_>>();
    assert_eq!(bodies.iter().flat_map(quoted).collect::<Vec<_>>(), lines);
}
