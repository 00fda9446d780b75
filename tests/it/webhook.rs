//! The endpoint: every answer that GitHub, or anybody else who finds the port, can get (design 5.4).

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::endpoint::Endpoint;
use crate::main_job::USHER;
use crate::world::{Delivery, REPOSITORY, Response, World, signed, with};

fn is(response: &Response, status: u16, body: &str) {
    assert_eq!((response.status, response.body.as_str()), (status, body));
}

#[test]
fn a_comment_is_stored_and_its_redelivery_is_known() {
    let endpoint = Endpoint::begin();
    let first = endpoint.hook.deliver("issue_comment", &endpoint.said("It squeaks"));
    is(&first, 202, "stored\n");
    is(&endpoint.hook.redeliver(&first.guid), 200, "known already\n");
    endpoint.wait_submitted("It squeaks");
    is(&endpoint.hook.redeliver(&first.guid), 200, "known already\n");
    assert_eq!(endpoint.stored(), 1);
}

#[test]
fn the_same_comment_through_another_hook_is_the_same_comment() {
    let endpoint = Endpoint::begin();
    let event = endpoint.said("It squeaks");
    is(&endpoint.hook.deliver("issue_comment", &event), 202, "stored\n");
    let other = endpoint.hook.delivery("issue_comment", &event).header("X-GitHub-Hook-ID", "7");
    is(&endpoint.hook.send(&other), 200, "known already\n");
    assert_eq!(endpoint.stored(), 1);
}

#[test]
fn two_comments_are_two_messages() {
    // Field report W12: a constant was the key, and everything after the first event was a duplicate.
    let endpoint = Endpoint::begin();
    is(&endpoint.hook.deliver("issue_comment", &endpoint.said("The first")), 202, "stored\n");
    is(&endpoint.hook.deliver("issue_comment", &endpoint.said("The second")), 202, "stored\n");
    endpoint.wait_submitted("The second");
    assert_eq!(endpoint.agent.submitted().len(), 2);
}

#[test]
fn a_ping_is_answered() {
    let endpoint = Endpoint::begin();
    let ping = json!({"zen": "Keep it logically awesome.", "hook_id": 292_430_182, "hook": {"type": "Repository"}});
    is(&endpoint.hook.deliver("ping", &ping), 200, "pong\n");
    is(&endpoint.hook.deliver_form("ping", &ping), 200, "pong\n");
    endpoint.assert_nothing_stored();
}

#[test]
fn a_form_encoded_delivery_is_taken_as_well() {
    // Field reports W1 and W2: form bodies refused, and signatures over text that was written anew.
    let endpoint = Endpoint::begin();
    let response = endpoint.hook.deliver_form("issue_comment", &endpoint.said("100 % & more + ünïcödé 🦆"));
    is(&response, 202, "stored\n");
    endpoint.wait_submitted("100 % & more + ünïcödé 🦆");
}

#[test]
fn what_is_not_signed_with_the_secret_gets_one_fixed_answer() {
    // Field report W3: the answer of a peer told the signature that it had expected.
    let endpoint = Endpoint::begin();
    let delivery = endpoint.delivery("forged words");
    let signature = signed(delivery.secret.as_deref().unwrap(), &delivery.body);
    let unsigned = Delivery { secret: None, ..delivery.clone() };
    let tampered = Delivery {
        body: String::from_utf8_lossy(&delivery.body).replace("forged", "forget").into(),
        ..unsigned.clone()
    };
    for forged in [
        unsigned.clone(),
        Delivery { secret: Some(String::new()), ..delivery.clone() },
        Delivery { secret: Some("another secret".into()), ..delivery.clone() },
        tampered.header("X-Hub-Signature-256", &signature),
        unsigned.clone().header("X-Hub-Signature-256", ""),
        unsigned.clone().header("X-Hub-Signature-256", "sha256="),
        unsigned.clone().header("X-Hub-Signature-256", &signature.to_uppercase()),
        unsigned.clone().header("X-Hub-Signature-256", &signature[..signature.len() - 2]),
        unsigned.header("X-Hub-Signature-256", &signature.replace("sha256", "sha1")),
    ] {
        is(&endpoint.hook.send(&forged), 401, "the signature is missing or wrong\n");
    }
    endpoint.assert_nothing_stored();
    is(&endpoint.hook.send(&delivery), 202, "stored\n");
}

#[test]
fn a_signed_body_that_is_no_delivery_is_malformed() {
    let endpoint = Endpoint::begin();
    let delivery = endpoint.delivery("fine");
    for (bytes, content_type) in [
        (&b"not json"[..], "application/json"),
        (b"", "application/json"),
        (b"{\"action\": \"created\"", "application/json"),
        (b"\xff\xfe", "application/json"),
        (b"other=1", "application/x-www-form-urlencoded"),
        (b"payload=%7B", "application/x-www-form-urlencoded"),
    ] {
        let malformed = Delivery { body: bytes.to_vec(), ..delivery.clone() };
        let malformed = malformed.header("Content-Length", &bytes.len().to_string());
        is(&endpoint.hook.send(&malformed.header("Content-Type", content_type)), 400, "the delivery cannot be read\n");
    }
    for header in ["X-GitHub-Event", "X-GitHub-Delivery"] {
        is(&endpoint.hook.send(&delivery.clone().without(header)), 400, "the delivery cannot be read\n");
    }
    endpoint.assert_nothing_stored();
}

#[test]
fn another_path_method_or_content_type_is_refused() {
    let endpoint = Endpoint::begin();
    let delivery = endpoint.delivery("fine");
    let elsewhere = Delivery { path: "/elsewhere".into(), ..delivery.clone() };
    assert_eq!(endpoint.hook.send(&elsewhere).status, 404);
    for method in ["GET", "PUT", "DELETE"] {
        assert_eq!(endpoint.hook.send(&Delivery { method: method.into(), ..delivery.clone() }).status, 405, "{method}");
    }
    for content_type in ["text/plain", "application/jsonp", "multipart/form-data; boundary=x", ""] {
        let other = delivery.clone().header("Content-Type", content_type);
        is(&endpoint.hook.send(&other), 415, "send application/json or a form\n");
    }
    let unnamed = delivery.clone().without("Content-Type");
    is(&endpoint.hook.send(&unnamed), 415, "send application/json or a form\n");
    endpoint.assert_nothing_stored();
    let with_charset = delivery.header("Content-Type", "Application/JSON; charset=utf-8");
    is(&endpoint.hook.send(&with_charset), 202, "stored\n");
}

#[test]
fn a_delivery_over_the_cap_is_refused_declared_or_not() {
    let endpoint = Endpoint::with_config("[webhook]\nmax_body = \"64KiB\"");
    let large = endpoint.delivery(&"x".repeat(65 * 1024));
    is(&endpoint.hook.send(&large.clone()), 413, "the delivery is too large\n");
    let (length, signature) = (large.body.len(), signed(large.secret.as_deref().unwrap(), &large.body));
    let chunked = [format!("{length:x}\r\n").as_bytes(), &large.body, b"\r\n0\r\n\r\n"].concat();
    let streamed = Delivery { secret: None, body: chunked, ..large.without("Content-Length") };
    let streamed = streamed.header("Transfer-Encoding", "chunked").header("X-Hub-Signature-256", &signature);
    is(&endpoint.hook.send(&streamed), 413, "the delivery is too large\n");
    endpoint.assert_nothing_stored();
    is(&endpoint.hook.deliver("issue_comment", &endpoint.said("small enough")), 202, "stored\n");
}

#[test]
fn a_delivery_of_twenty_megabytes_is_taken() {
    // Field report W8: 413 from a parser whose default was 100 KB.
    let endpoint = Endpoint::begin();
    let padded = with(endpoint.said("A large push"), json!({"padding": "x".repeat(20 * 1024 * 1024)}));
    is(&endpoint.hook.deliver("issue_comment", &padded), 202, "stored\n");
}

#[test]
fn what_cannot_be_stored_is_refused_and_its_redelivery_is_not_a_duplicate() {
    // Field reports W4 and W7.
    let endpoint = Endpoint::begin();
    endpoint.daemon().wait_line("slack=up github=");
    let database = endpoint.database();
    database.execute_batch("BEGIN IMMEDIATE").unwrap();
    let refused = endpoint.hook.deliver("issue_comment", &endpoint.said("Once more"));
    is(&refused, 503, "the delivery could not be stored: deliver it again\n");
    database.execute_batch("ROLLBACK").unwrap();
    is(&endpoint.hook.redeliver(&refused.guid), 202, "stored\n");
    endpoint.wait_submitted("Once more");
}

#[test]
fn both_secrets_of_a_rotation_are_good() {
    let mut world = World::new(USHER);
    let new = world.with_webhook();
    let old = world.secret("old webhook secret", "whs-");
    world.set_env("USHER_GITHUB_WEBHOOK_SECRET_PREVIOUS", &old);
    let endpoint = Endpoint::of(world);
    for (secret, words) in [(new, "with the new one"), (old, "with the old one")] {
        let delivery = Delivery { secret: Some(secret), ..endpoint.delivery(words) };
        is(&endpoint.hook.send(&delivery), 202, "stored\n");
    }
}

#[test]
fn without_a_secret_nothing_listens() {
    let world = World::new(USHER);
    let daemon = world.daemon();
    daemon.wait_line("slack=up github=");
    assert!(!daemon.lines().iter().any(|line| line.contains("accepting webhook=")), "{:#?}", daemon.lines());
}

#[test]
fn a_half_sent_head_is_closed_and_holds_nobody_up() {
    let endpoint = Endpoint::begin();
    let begun = Instant::now();
    let slow = endpoint.hook.clone();
    let silent = TcpStream::connect(endpoint.hook.address).unwrap();
    let closing = std::thread::spawn(move || slow.exchange(b"POST /gh-webhook HTTP/1.1\r\nHost: x\r\nX-Half"));
    is(&endpoint.hook.deliver("issue_comment", &endpoint.said("Meanwhile")), 202, "stored\n");
    closing.join().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    drop(silent);
}

#[test]
fn what_was_answered_with_202_survives_the_power_going_off() {
    let mut endpoint = Endpoint::begin();
    is(&endpoint.hook.deliver("issue_comment", &endpoint.said("Do not lose me")), 202, "stored\n");
    endpoint.kill9_and_start();
    endpoint.wait_submitted("Do not lose me");
    is(&endpoint.hook.deliver("issue_comment", &endpoint.said("And then")), 202, "stored\n");
    endpoint.wait_submitted("And then");
    assert_eq!(endpoint.agent.submitted().len(), 2, "{:?}", endpoint.agent.submitted());
}

#[test]
fn a_delivery_under_way_is_answered_when_usher_is_told_to_stop() {
    let endpoint = Endpoint::begin();
    let bytes = endpoint.delivery("Just in time").bytes();
    let (first, rest) = bytes.split_at(bytes.len() - 10);
    let mut stream = TcpStream::connect(endpoint.hook.address).unwrap();
    stream.write_all(first).unwrap();
    // A second delivery on another connection is answered only after the first one's head was read.
    is(&endpoint.hook.deliver("issue_comment", &endpoint.said("Meanwhile")), 202, "stored\n");
    endpoint.daemon().ask_to_end();
    endpoint.daemon().wait_line("SIGTERM: stopping");
    stream.write_all(rest).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 202"), "{answer:?}");
}

#[test]
fn a_verified_delivery_that_is_not_for_usher_is_taken_and_forgotten() {
    let endpoint = Endpoint::begin();
    endpoint.world.github.add_repository("acme/others", true);
    endpoint.world.github.add_issue("acme/others#1", "Somebody else's");
    let elsewhere = endpoint.world.github.comment("acme/others#1", "dana", "not here");
    let elsewhere = endpoint.world.github.comment_event("acme/others#1", "created", &elsewhere);
    is(&endpoint.hook.deliver("issue_comment", &elsewhere), 202, "not for usher\n");
    let repository = json!({"full_name": REPOSITORY});
    is(&endpoint.hook.deliver("push", &json!({"ref": "x", "repository": repository})), 202, "not for usher\n");
    is(&endpoint.hook.deliver("issue_comment", &json!({})), 202, "not for usher\n");
    is(&endpoint.hook.deliver("issue_comment", &json!([1, 2])), 202, "not for usher\n");
    is(&endpoint.hook.deliver("event_of_2031", &json!({"action": "created"})), 202, "not for usher\n");
    endpoint.assert_nothing_stored();
}
