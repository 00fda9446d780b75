//! What usher does on GitHub besides writing records: it shows what became of what was said there.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;

use crate::main_job::USHER;
use crate::world::{Agent, Comment, Daemon, ITEM, REPOSITORY, World, eventually};

/// A world in which an agent's pane is bound to the ticket and GitHub delivers to usher.
struct Ticket {
    world: World,
    agent: Agent,
    secret: String,
}

/// A daemon that listens.
struct Listening {
    daemon: Daemon,
    address: String,
    secret: String,
}

impl Ticket {
    fn new() -> Self {
        let mut world = World::new(USHER);
        let secret = world.secret("webhook secret", "hook-");
        world.set_env("USHER_GITHUB_WEBHOOK_SECRET", &secret);
        let agent = world.claude();
        let ticket = Self { world, agent, secret };
        ticket.config("");
        ticket.bind(ITEM);
        ticket
    }

    fn config(&self, overrides: &str) {
        self.world.config(&format!("{overrides}\n[webhook]\nlisten = \"127.0.0.1:0\""));
    }

    fn bind(&self, item: &str) {
        let bound = self.world.cli(&["bind", item, "--pane", &self.agent.pane]);
        assert!(bound.status.success(), "{}", String::from_utf8_lossy(&bound.stderr));
    }

    fn daemon(&self) -> Listening {
        let daemon = self.world.daemon();
        let line = daemon.wait_line("accepting webhook=");
        daemon.wait_line("ready ");
        let address = line.split("webhook=").nth(1).unwrap().trim().to_owned();
        Listening { daemon, address, secret: self.secret.clone() }
    }

    fn reactions(&self, comment: &Comment) -> BTreeSet<String> {
        self.world.github.reactions_on(REPOSITORY, comment.id)
    }

    /// Waits until a comment carries these reactions and no other.
    #[track_caller]
    fn wait_reactions(&self, comment: &Comment, expected: &[&str]) {
        let expected: BTreeSet<String> = expected.iter().map(ToString::to_string).collect();
        eventually(&format!("the reactions are {expected:?}"), || {
            let shown = self.reactions(comment);
            if shown == expected { Ok(()) } else { Err(shown) }
        });
    }
}

impl Listening {
    /// Delivers that somebody commented, as GitHub does.
    fn commented(&self, item: &str, comment: &Comment) -> u16 {
        self.deliver("issue_comment", &comment.id.to_string(), &created(item, comment))
    }

    fn deliver(&self, event: &str, guid: &str, payload: &Value) -> u16 {
        let body = payload.to_string();
        let mut mac = Hmac::<Sha256>::new_from_slice(self.secret.as_bytes()).unwrap();
        mac.update(body.as_bytes());
        let signature = hex::encode(mac.finalize().into_bytes());
        let head = format!(
            "POST /gh-webhook HTTP/1.1\r\nhost: usher\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
             x-github-event: {event}\r\nx-github-delivery: {guid}\r\nx-hub-signature-256: sha256={signature}\r\n\
             connection: close\r\n\r\n",
            body.len()
        );
        self.ask(&format!("{head}{body}")).0
    }

    /// The status and the body of a request to the listener.
    fn get(&self, path: &str) -> (u16, String) {
        self.ask(&format!("GET {path} HTTP/1.1\r\nhost: usher\r\nconnection: close\r\n\r\n"))
    }

    fn ask(&self, request: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        let (head, body) = reply.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }
}

fn created(item: &str, comment: &Comment) -> Value {
    let (repository, number) = item.split_once('#').unwrap();
    json!({
        "action": "created",
        "issue": {"number": number.parse::<u64>().unwrap(), "title": "The widgets squeak", "state": "open"},
        "comment": {
            "id": comment.id, "body": comment.body, "user": {"login": comment.author, "type": "User"},
            "created_at": comment.created_at, "updated_at": comment.updated_at,
            "html_url": format!("https://github.com/{repository}/issues/{number}#issuecomment-{}", comment.id),
        },
        "repository": {"full_name": repository},
        "sender": {"login": comment.author, "type": "User"},
    })
}

#[test]
fn what_became_of_a_comment_shows_as_reactions_on_it() {
    let ticket = Ticket::new();
    let usher = ticket.daemon();
    let comment = ticket.world.github.comment(ITEM, "dana", "Oil the hinge");
    assert_eq!(usher.commented(ITEM, &comment), 202);
    ticket.wait_reactions(&comment, &["eyes", "rocket"]);
    assert!(ticket.agent.submitted()[0].contains("Oil the hinge"));
    let stranger = ticket.world.github.comment(ITEM, "mallory", "Oil the hinge");
    assert_eq!(usher.commented(ITEM, &stranger), 202);
    let last = ticket.world.github.comment(ITEM, "dana", "Thanks");
    usher.commented(ITEM, &last);
    ticket.wait_reactions(&last, &["eyes", "rocket"]);
    assert_eq!(ticket.reactions(&stranger), BTreeSet::new());
    assert_eq!(ticket.world.github.comments(ITEM).len(), 3, "nothing is written on the ticket");
}

#[test]
fn a_refusal_is_one_comment_that_does_not_come_back_as_a_message() {
    // Field report W10: a bot answered itself without end.
    let ticket = Ticket::new();
    ticket.config("[github]\npublish = []\n");
    let usher = ticket.daemon();
    let comment = ticket.world.github.comment(ITEM, "dana", "Oil the hinge");
    usher.commented(ITEM, &comment);
    let notice = eventually("the refusal is told", || ticket.world.github.comments(ITEM).get(1).cloned());
    assert!(notice.body.contains("does not take work-item.reply from GitHub"), "{}", notice.body);
    assert!(notice.body.contains("github.publish"), "{}", notice.body);
    ticket.wait_reactions(&comment, &["eyes", "confused"]);
    // Under whatever name it comes: usher knows what it signed.
    assert_eq!(usher.commented(ITEM, &Comment { author: "dana".to_owned(), ..notice }), 202);
    usher.daemon.kill9();
    let usher = ticket.daemon();
    let last = ticket.world.github.comment(ITEM, "mallory", "Me too");
    usher.commented(ITEM, &last);
    eventually("the stranger's comment is passed by", || {
        let listed = ticket.world.cli(&["inbox", "list", "--json"]);
        String::from_utf8_lossy(&listed.stdout).contains(&last.id.to_string())
    });
    assert_eq!(ticket.world.github.comments(ITEM).len(), 3);
    assert_eq!(ticket.agent.submitted(), Vec::<String>::new());
}

#[test]
fn two_programs_that_answer_each_other_are_stopped_and_a_restart_does_not_begin_anew() {
    // Field report W10: hundreds of comments before anybody noticed.
    let ticket = Ticket::new();
    let usher = ticket.daemon();
    for turn in 0..29 {
        let comment = ticket.world.github.comment(ITEM, "dana", &format!("turn {turn}"));
        assert_eq!(usher.commented(ITEM, &comment), 202);
    }
    usher.daemon.wait_line(&format!("admitted id=github:{ITEM}/comment/{}", 3_000_000_029_u64));
    usher.daemon.kill9();
    let usher = ticket.daemon();
    let [last, first_refused, refused] = ["the last", "one more", "and more"].map(|words| {
        let comment = ticket.world.github.comment(ITEM, "dana", words);
        assert_eq!(usher.commented(ITEM, &comment), 202);
        comment
    });
    for comment in [&first_refused, &refused] {
        usher.daemon.wait_line(&format!("refused id=github:{ITEM}/comment/{} reason=\"too-fast\"", comment.id));
    }
    usher.daemon.wait_line(&format!("admitted id=github:{ITEM}/comment/{}", last.id));
    let warned = |line: &&String| line.contains("more is said on GitHub than people say");
    assert_eq!(usher.daemon.lines().iter().filter(warned).count(), 1);
    assert_eq!(ticket.world.github.comments(ITEM).len(), 32, "no comment of usher's feeds the loop");
}

#[test]
fn a_token_that_was_renewed_in_its_file_is_taken_up_while_usher_runs() {
    let mut ticket = Ticket::new();
    let file = ticket.world.dir().parent().unwrap().join(format!("usher-token-{}", std::process::id()));
    std::fs::write(&file, ticket.world.github.token()).unwrap();
    ticket.world.unset_env("GH_TOKEN");
    ticket.world.set_env("GH_TOKEN_FILE", file.to_str().unwrap());
    let usher = ticket.daemon();
    std::fs::write(&file, ticket.world.github.renew_token()).unwrap();
    let comment = ticket.world.github.comment(ITEM, "dana", "Oil the hinge");
    usher.commented(ITEM, &comment);
    ticket.wait_reactions(&comment, &["eyes", "rocket"]);
    std::fs::remove_file(&file).unwrap();
}

#[test]
fn an_app_asks_for_one_token_and_for_another_when_github_no_longer_takes_it() {
    // Field report L3: works for an hour, then 401.
    let mut ticket = Ticket::new();
    let key = ticket.world.github.add_app(7, Duration::from_secs(3_600));
    ticket.world.unset_env("GH_TOKEN");
    ticket.world.set_env("USHER_GITHUB_APP_KEY", &key);
    ticket.config("[github]\napp_id = 7\n");
    let usher = ticket.daemon();
    usher.daemon.wait_line("github login known login=usher-app[bot]");
    let comment = ticket.world.github.comment(ITEM, "dana", "Oil the hinge");
    usher.commented(ITEM, &comment);
    ticket.wait_reactions(&comment, &["eyes", "rocket"]);
    assert_eq!(ticket.world.github.tokens_asked(), 1);
    ticket.world.github.revoke_installation_tokens();
    let comment = ticket.world.github.comment(ITEM, "dana", "And the other one");
    usher.commented(ITEM, &comment);
    ticket.wait_reactions(&comment, &["eyes", "rocket"]);
    assert_eq!(ticket.world.github.tokens_asked(), 2);
}

#[test]
fn an_apps_token_is_renewed_before_it_ends() {
    let mut ticket = Ticket::new();
    // Four minutes are less than the five that usher keeps.
    let key = ticket.world.github.add_app(7, Duration::from_secs(240));
    ticket.world.unset_env("GH_TOKEN");
    ticket.world.set_env("USHER_GITHUB_APP_KEY", &key.replace('\n', "\\n"));
    ticket.config("[github]\napp_id = 7\n");
    let usher = ticket.daemon();
    let before = ticket.world.github.tokens_asked();
    let comment = ticket.world.github.comment(ITEM, "dana", "Oil the hinge");
    usher.commented(ITEM, &comment);
    ticket.wait_reactions(&comment, &["eyes", "rocket"]);
    assert!(ticket.world.github.tokens_asked() > before);
}

#[test]
fn what_was_said_on_the_ticket_while_usher_was_away_arrives_late_in_order_and_once() {
    // Field report W6: GitHub never delivers again by itself.
    let ticket = Ticket::new();
    ticket.world.github.add_issue("acme/widgets#13", "Bound to nothing");
    let usher = ticket.daemon();
    usher.daemon.wait_line("what is said from now on is caught up");
    usher.daemon.kill9();
    let missed: Vec<Comment> =
        (0..120).map(|index| ticket.world.github.comment(ITEM, "mallory", &format!("noise {index}"))).collect();
    let first = ticket.world.github.comment(ITEM, "dana", "Oil the hinge");
    ticket.world.github.comment("acme/widgets#13", "dana", "not for any agent");
    let second = ticket.world.github.comment(ITEM, "dana", "And the other one");
    assert_eq!(missed.len(), 120, "more than one page");

    let usher = ticket.daemon();
    usher.daemon.wait_line("caught up repository=acme/widgets found=122");
    ticket.wait_reactions(&second, &["eyes", "rocket"]);
    for comment in [&first, &second] {
        assert_eq!(usher.commented(ITEM, comment), 200, "its delivery is known already");
    }
    let last = ticket.world.github.comment(ITEM, "dana", "live");
    assert_eq!(usher.commented(ITEM, &last), 202);
    ticket.wait_reactions(&last, &["eyes", "rocket"]);
    let submitted = ticket.agent.submitted();
    let order = ["Oil the hinge", "And the other one", "live"];
    assert_eq!(submitted.len(), order.len(), "{submitted:?}");
    assert!(submitted.iter().zip(order).all(|(text, words)| text.contains(words)), "{submitted:?}");
}

#[test]
fn without_a_webhook_the_tickets_are_read_on_schedule() {
    let mut ticket = Ticket::new();
    ticket.world.unset_env("USHER_GITHUB_WEBHOOK_SECRET");
    ticket.config("[github]\ncatch_up = \"200ms\"\n");
    let daemon = ticket.world.daemon();
    daemon.wait_line("what is said from now on is caught up");
    let comment = ticket.world.github.comment(ITEM, "dana", "Oil the hinge");
    ticket.wait_reactions(&comment, &["eyes", "rocket"]);
    assert_eq!(ticket.agent.submitted().len(), 1);
}

#[test]
fn readiness_tells_what_is_missing_and_the_process_turns_all_the_same() {
    // Field report O3: a revoked token must not take everything else down.
    let ticket = Ticket::new();
    let usher = ticket.daemon();
    usher.daemon.wait_line(&format!("ready webhook={} slack=up github=up sessions=1", usher.address));
    assert_eq!(usher.get("/healthz"), (200, "ok\n".to_owned()));
    assert_eq!(usher.get("/readyz"), (200, "slack up\ngithub up\nstore up\ndisk up\n".to_owned()));
    ticket.world.github.revoke_token(true);
    let comment = ticket.world.github.comment(ITEM, "dana", "Oil the hinge");
    assert_eq!(usher.commented(ITEM, &comment), 202);
    let (status, body) =
        eventually("the trouble is told", || Some(usher.get("/readyz")).filter(|(status, _)| *status == 503));
    assert_eq!(status, 503);
    assert!(body.contains("github down: GitHub does not accept the token"), "{body}");
    assert_eq!(usher.get("/healthz").0, 200);
    eventually("the agent has it all the same", || ticket.agent.submitted().len() == 1);
}

#[test]
fn the_manifest_of_the_app_asks_for_what_usher_uses_and_says_why() {
    let manifest: Value = serde_json::from_str(include_str!("../../manifest/github-app.json")).unwrap();
    let documented = include_str!("../../docs/configuration.md");
    let permissions = manifest["default_permissions"].as_object().unwrap();
    assert_eq!(permissions.keys().collect::<Vec<_>>(), ["issues", "metadata", "pull_requests"]);
    for (name, level) in permissions {
        let row = format!("| `{name}` | {} |", level.as_str().unwrap());
        assert!(documented.contains(&row), "{row}");
    }
    let events: Vec<&str> = manifest["default_events"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let heard = ["issues", "issue_comment", "pull_request", "pull_request_review", "pull_request_review_comment"];
    assert_eq!(events, heard);
    assert_eq!(manifest["public"], false);
}
