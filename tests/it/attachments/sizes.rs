//! Whole or not at all: caps, broken transfers and silence. The words arrive every time.

use std::time::Duration;

use serde_json::json;

use super::Desk;
use crate::main_job::png;
use crate::world::{Behaviour, FileSpec};

const FAILED: &str = "the transfer failed";
const OVER_1_KIB: &str = "over the 1 KiB cap";

fn text_of(size: usize) -> FileSpec {
    FileSpec::new("long.log", "text/plain", vec![b'x'; size])
}

/// A file of unknown size, as a snippet's is.
fn unsized_text(size: usize) -> FileSpec {
    text_of(size).with(json!({"mode": "snippet"}))
}

/// Nothing of the file is saved, and pane, record, store and sender say why in the same words.
fn assert_nothing_saved(overrides: &str, file: FileSpec, code: &str, words: &str) -> Desk {
    let desk = Desk::configured(overrides);
    let told = desk.send(file);
    told.assert_refused(0, code, words);
    assert!(told.pane.contains("Look at this"), "{}", told.pane);
    assert!(desk.sender_told().contains(&format!("{words}. ")), "{}", desk.sender_told());
    assert_eq!(desk.on_disk(), [].into());
    desk
}

#[test]
fn a_file_that_is_declared_too_large_is_not_asked_for() {
    let desk = assert_nothing_saved("attachments.max_bytes = '1KiB'", text_of(1025), "over-cap", OVER_1_KIB);
    assert_eq!(desk.asked(), [""; 0]);
}

#[test]
fn a_file_that_announces_too_much_when_asked_for_is_not_read() {
    assert_nothing_saved("attachments.max_bytes = '1KiB'", unsized_text(1025), "over-cap", OVER_1_KIB);
}

#[test]
fn a_file_without_an_end_is_given_up_at_the_cap() {
    let endless = unsized_text(10).behaving([Behaviour::Endless]);
    assert_nothing_saved("attachments.max_bytes = '1MiB'", endless, "over-cap", "over the 1 MiB cap");
}

#[test]
fn a_file_of_exactly_the_cap_is_saved() {
    let desk = Desk::configured("attachments.max_bytes = '1KiB'");
    let told = desk.told(&desk.post("Both fit", [text_of(1024), unsized_text(1024)]));
    for index in 0..2 {
        assert_eq!(told.path(index).metadata().map(|it| it.len()).ok(), Some(1024));
    }
}

#[test]
fn a_file_that_breaks_off_every_time_is_not_saved() {
    let file = FileSpec::new("shot.png", "image/png", png()).behaving([Behaviour::Truncated]);
    assert_nothing_saved("", file, "transfer-failed", FAILED);
}

#[test]
fn a_file_that_breaks_off_once_is_asked_for_once_more() {
    let desk = Desk::new();
    let file = FileSpec::new("shot.png", "image/png", png()).behaving([Behaviour::Truncated, Behaviour::Normal]);
    assert!(desk.send(file).path(0).exists());
    assert_eq!(desk.on_disk().len(), 1);
    assert_eq!(desk.asked().len(), 2, "{:?}", desk.asked());
}

#[test]
fn an_empty_answer_is_no_file() {
    let file = FileSpec::new("shot.png", "image/png", Vec::new());
    assert_nothing_saved("", file, "transfer-failed", FAILED);
}

#[test]
fn fewer_bytes_than_slack_declares_are_no_file() {
    let file = FileSpec::new("shot.png", "image/png", png()).behaving([Behaviour::ShortOfDeclared]);
    assert_nothing_saved("", file, "transfer-failed", FAILED);
}

#[test]
fn a_download_that_stalls_costs_the_file_and_not_the_words() {
    let stalled = FileSpec::new("shot.png", "image/png", png()).behaving([Behaviour::Stall]);
    assert_nothing_saved("attachments.timeout = '300ms'", stalled, "transfer-failed", FAILED);
}

#[test]
fn a_file_host_that_never_answers_costs_the_file_and_not_the_words() {
    let silent = FileSpec::new("shot.png", "image/png", png()).behaving([Behaviour::Delay(Duration::from_secs(600))]);
    assert_nothing_saved("attachments.timeout = '300ms'", silent, "transfer-failed", FAILED);
}

#[test]
fn a_busy_file_host_is_asked_again() {
    let desk = Desk::new();
    let file = FileSpec::new("shot.png", "image/png", png()).behaving([Behaviour::Status(503), Behaviour::Normal]);
    assert!(desk.send(file).path(0).exists());
    assert_eq!(desk.asked().len(), 2, "{:?}", desk.asked());
}

#[test]
fn a_server_error_costs_the_file_and_not_the_words() {
    let gone = FileSpec::new("shot.png", "image/png", png()).behaving([Behaviour::Status(404)]);
    assert_nothing_saved("", gone, "transfer-failed", FAILED);
}

#[test]
fn one_file_that_fails_costs_no_other() {
    let desk = Desk::new();
    let bad = FileSpec::new("bad.png", "image/png", png()).behaving([Behaviour::ShortOfDeclared]);
    let good = FileSpec::new("good.png", "image/png", png());
    let told = desk.told(&desk.post("Two", [bad, good]));
    told.assert_refused(0, "transfer-failed", FAILED);
    assert!(told.path(1).exists());
    assert!(desk.sender_told().starts_with("1 of 2 files were not taken"), "{}", desk.sender_told());
    assert_eq!(desk.on_disk().len(), 1);
}
