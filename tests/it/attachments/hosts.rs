//! Where a request goes, and how far the token goes with it.

use serde_json::json;

use super::Desk;
use crate::main_job::png;
use crate::world::{Behaviour, DANA, FileSpec, ROOM, SAM};

const NO_SCOPE: &str = "the Slack app lacks files:read, or was not reinstalled after it was added";

fn shot() -> FileSpec {
    FileSpec::new("shot.png", "image/png", png())
}

/// No request to this host, not even a connection.
fn assert_never_asked(desk: &Desk, host: &str) {
    let asked = desk.world.proxy.asked();
    assert!(!asked.iter().any(|asked| asked.contains(host)), "{asked:?}");
    let requests = desk.world.slack.file_requests();
    assert!(!requests.iter().any(|request| request.host == host), "{requests:?}");
}

/// A file that must not be saved: pane, record, store and sender say why in the same words, and the words of the
/// message arrive.
fn assert_refused(file: FileSpec, code: &str, words: &str) -> Desk {
    let desk = Desk::new();
    let told = desk.send(file);
    told.assert_refused(0, code, words);
    assert!(told.pane.contains("Look at this"), "{}", told.pane);
    assert!(desk.sender_told().contains(&format!("shot.png: {words}. ")), "{}", desk.sender_told());
    assert_eq!(desk.on_disk(), [].into());
    desk
}

#[test]
fn the_token_goes_along_from_one_of_slacks_file_hosts_to_the_other() {
    let desk = Desk::new();
    let told = desk.send(shot().behaving([Behaviour::Grid]));
    assert!(told.path(0).exists());
    let requests = desk.world.slack.file_requests();
    let hosts: Vec<(&str, bool)> = requests.iter().map(|it| (it.host.as_str(), it.with_authorization)).collect();
    assert_eq!(hosts, [("files.slack.com", true), ("files-origin.slack.com", true)]);
}

#[test]
fn a_redirect_off_the_table_is_not_followed() {
    let elsewhere = "files.evil.example";
    let words = format!("its URL is not on the file host ({elsewhere})");
    let desk = assert_refused(shot().behaving([Behaviour::RedirectOff(elsewhere)]), "off-host", &words);
    assert_never_asked(&desk, elsewhere);
    assert_eq!(desk.asked().len(), 1, "{:?}", desk.asked());
}

#[test]
fn a_file_that_is_not_on_slacks_host_gets_no_request_and_no_token() {
    let urls = [
        ("https://files.evil.example/files-pri/T0ACME-F1/shot.png", "files.evil.example"),
        ("https://files.slack.com.evil.example/shot.png", "files.slack.com.evil.example"),
        ("https://files.slack.com@evil.example/shot.png", "***@evil.example"),
        ("https://files.slack.com:8443/files-pri/T0ACME-F1/shot.png", "files.slack.com:8443"),
        ("http://files.slack.com/files-pri/T0ACME-F1/shot.png", "http://files.slack.com"),
    ];
    let desk = Desk::new();
    let files = urls.map(|(url, _)| shot().with(json!({"url_private": url, "url_private_download": url})));
    let told = desk.told(&desk.post("Look at these", files));
    assert!(told.pane.contains("Look at these"), "{}", told.pane);
    let sender = desk.sender_told();
    for (index, (_, shown)) in urls.iter().enumerate() {
        let words = format!("its URL is not on the file host ({shown})");
        told.assert_refused(index, "off-host", &words);
        assert!(sender.contains(&format!("shot.png: {words}. ")), "{sender}");
    }
    assert_never_asked(&desk, "evil.example");
    assert_never_asked(&desk, "files.slack.com");
    assert_eq!(desk.on_disk(), [].into());
}

#[test]
fn a_file_that_redirects_to_itself_is_given_up() {
    let circle = shot().behaving([Behaviour::RedirectOff("files.slack.com")]);
    let desk = assert_refused(circle, "transfer-failed", "the transfer failed");
    assert_eq!(desk.asked().len(), 6, "one request and five redirects: {:?}", desk.asked());
}

#[test]
fn a_sign_in_page_is_never_saved_as_a_picture() {
    let desk = assert_refused(shot().behaving([Behaviour::SignInPage]), "no-scope", NO_SCOPE);
    assert_eq!(desk.asked().len(), 1, "{:?}", desk.asked());
}

#[test]
fn a_redirect_to_the_sign_in_page_is_not_followed() {
    let desk = assert_refused(shot().behaving([Behaviour::SignInRedirect]), "no-scope", NO_SCOPE);
    assert_never_asked(&desk, "acme.slack.com");
}

#[test]
fn an_app_without_files_read_is_told_so() {
    let desk = Desk::with("", |world| world.slack.revoke_scope("files:read"));
    let told = desk.send(shot());
    told.assert_refused(0, "no-scope", NO_SCOPE);
    assert!(desk.sender_told().contains("A workspace admin adds files:read"), "{}", desk.sender_told());
}

#[test]
fn an_external_file_is_named_with_its_link_and_never_asked_for() {
    let link = "https://docs.example.com/d/1";
    let file = shot().with(json!({
        "mode": "external", "is_external": true, "external_type": "gdrive", "external_url": link, "url_private": link,
        "url_private_download": link,
    }));
    let desk = assert_refused(file, "external", "stored outside Slack");
    assert_never_asked(&desk, "docs.example.com");
    assert!(desk.agent.submitted()[0].contains(link));
}

#[test]
fn a_strangers_file_is_never_asked_for() {
    let desk = Desk::new();
    let file = desk.world.slack.add_file(shot());
    let strange = desk.world.slack.post(ROOM, Some(&desk.thread), SAM, "Look at mine", &[file]);
    // One lane is in order: when Dana's words are in the pane, Sam's had their turn.
    let told = desk.told(&desk.world.slack.post(ROOM, Some(&desk.thread), DANA, "And?", &[]));
    assert!(told.pane.contains("And?"), "{}", told.pane);
    assert_eq!(desk.agent.submitted().len(), 1);
    assert_eq!(desk.asked(), [""; 0]);
    assert!(desk.world.slack.reactions_on(&strange.ts).is_empty());
    assert!(!desk.world.slack.calls().contains(&"files.info".to_owned()));
}
