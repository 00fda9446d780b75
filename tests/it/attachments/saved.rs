//! Files that arrive: as they came, named by their bytes, for their reader's eyes only, and not twice.

use std::fs;

use serde_json::json;

use super::Desk;
use super::desk::{id, mode};
use crate::main_job::png;
use crate::world::{DANA, FileSpec};

fn pdf() -> Vec<u8> {
    b"%PDF-1.7\n1 0 obj <<>> endobj\n%%EOF\n".to_vec()
}

#[test]
fn a_picture_a_pdf_and_a_snippet_are_saved_as_they_came_and_named_by_their_bytes() {
    let desk = Desk::new();
    let snippet = b"fn main() {\r\n    println!(\"\xff\");\r\n}\n".to_vec();
    let picture = desk.world.slack.add_file(FileSpec::new("shot.jpg", "image/jpeg", png()));
    let report = desk.world.slack.add_file(FileSpec::new("report.txt", "text/plain", pdf()));
    let code = FileSpec::new("main.rs", "text/plain", snippet.clone())
        .with(json!({"mode": "snippet", "filetype": "rust", "editable": true, "preview": "fn main() {"}));
    let code = desk.world.slack.add_file(code);

    let told = desk.told(&desk.post_objects("Three files", &[picture.clone(), report.clone(), code.clone()]));

    told.assert_saved(0, &format!("{}-shot.png", id(&picture)), &png());
    told.assert_saved(1, &format!("{}-report.pdf", id(&report)), &pdf());
    told.assert_saved(2, &format!("{}-main.rs", id(&code)), &snippet);
    assert!(told.pane.contains("1. image · shot.jpg (image/png, 533 B)"), "{}", told.pane);
    assert!(told.pane.contains("2. pdf · report.txt (application/pdf, "), "{}", told.pane);
    assert_eq!(desk.on_disk().len(), 3, "{:?}", desk.on_disk());
    for index in 0..3 {
        assert_eq!(mode(&told.path(index)), 0o400);
    }
    for directory in ["state", "state/local", "state/local/attachments"] {
        assert_eq!(mode(&desk.world.dir().join(directory)), 0o700, "{directory}");
    }
    assert_eq!(mode(&desk.directory()), 0o700);
    assert!(desk.world.slack.ephemerals().is_empty(), "{:?}", desk.world.slack.ephemerals());
}

#[test]
fn saved_files_have_the_mode_that_the_operator_chose() {
    let desk = Desk::configured("attachments.mode = '0440'");
    let told = desk.send(FileSpec::new("shot.png", "image/png", png()));
    assert_eq!(mode(&told.path(0)), 0o440);
}

#[test]
fn the_record_has_the_link_for_people_and_never_the_private_url() {
    let desk = Desk::new();
    let file = desk.world.slack.add_file(FileSpec::new("shot.png", "image/png", png()));
    // `told` looks for paths and private URLs in every record.
    let told = desk.told(&desk.post_objects("Look", std::slice::from_ref(&file)));
    let link = format!("https://acme.slack.com/files/{DANA}/{}/shot.png", id(&file));
    assert!(told.record.contains(&format!("📎 shot.png (image/png, 533 B) — {link}")), "{}", told.record);
    assert!(told.pane.contains(&link), "{}", told.pane);
    assert!(!told.pane.contains("files-pri"), "{}", told.pane);
}

#[test]
fn a_message_that_is_only_a_file_is_delivered() {
    let desk = Desk::new();
    let told = desk.told(&desk.post("", [FileSpec::new("shot.png", "image/png", png())]));
    assert!(told.path(0).exists());
    assert!(told.record.contains("📎 shot.png"), "{}", told.record);
}

#[test]
fn three_pictures_of_one_name_stay_three() {
    let desk = Desk::new();
    let bodies: Vec<Vec<u8>> = (1..=3).map(|fill| [png(), vec![fill; 40]].concat()).collect();
    let files = bodies.iter().map(|body| FileSpec::new("image.png", "image/png", body.clone()));
    let told = desk.told(&desk.post("Three of them", files));
    for (index, body) in bodies.iter().enumerate() {
        assert_eq!(&fs::read(told.path(index)).expect("a saved file"), body);
    }
    assert_eq!(desk.on_disk().len(), 3, "{:?}", desk.on_disk());
}

#[test]
fn a_file_that_is_sent_again_is_not_fetched_again() {
    let desk = Desk::new();
    let file = desk.world.slack.add_file(FileSpec::new("shot.png", "image/png", png()));
    let first = desk.told(&desk.post_objects("Look", std::slice::from_ref(&file)));
    let second = desk.told(&desk.post_objects("Look again", std::slice::from_ref(&file)));
    assert!(second.pane.contains("Look again"), "{}", second.pane);
    assert_eq!(second.path(0), first.path(0));
    assert_eq!(desk.asked().len(), 1, "{:?}", desk.asked());
}

#[test]
fn a_file_that_was_altered_on_disk_is_fetched_anew() {
    let desk = Desk::new();
    let file = desk.world.slack.add_file(FileSpec::new("shot.png", "image/png", png()));
    let first = desk.told(&desk.post_objects("Look", std::slice::from_ref(&file)));
    let mut altered = png();
    *altered.last_mut().expect("a byte") ^= 1;
    fs::remove_file(first.path(0)).expect("the saved file");
    fs::write(first.path(0), &altered).expect("another file in its place");

    let second = desk.told(&desk.post_objects("Look again", std::slice::from_ref(&file)));

    second.assert_saved(0, &format!("{}-shot-2.png", id(&file)), &png());
    assert_eq!(fs::read(first.path(0)).expect("the altered file"), altered, "a file of somebody was replaced");
    assert_eq!(desk.asked().len(), 2, "{:?}", desk.asked());
}

#[test]
fn what_is_a_page_by_rights_is_saved() {
    let desk = Desk::new();
    let page = b"<!DOCTYPE html><html><body><h1>Plan</h1></body></html>".to_vec();
    let canvas = FileSpec::new("Plan", "text/html", page.clone()).with(json!({
        "mimetype": "application/vnd.slack-docs", "filetype": "quip", "mode": "quip", "size": 17,
    }));
    let email = FileSpec::new("Invoice", "text/html", page.clone())
        .with(json!({"filetype": "email", "mode": "email", "subject": "Invoice", "size": 3}));
    let told = desk.told(&desk.post("A canvas and an e-mail", [canvas, email]));
    for index in 0..2 {
        assert_eq!(fs::read(told.path(index)).expect("a saved page"), page);
    }
}

#[test]
fn a_stub_of_a_shared_channel_is_completed_by_asking_for_it() {
    let desk = Desk::new();
    let file = desk.world.slack.add_file(FileSpec::new("shot.png", "image/png", png()));
    let stub = json!({
        "id": file["id"], "created": 0, "timestamp": 0, "mode": "file_access", "file_access": "check_file_info",
        "user": "",
    });
    let told = desk.told(&desk.post_objects("From our partners", &[stub]));
    told.assert_saved(0, &format!("{}-shot.png", id(&file)), &png());
    assert!(told.pane.contains("1. image · shot.png (image/png, 533 B)"), "{}", told.pane);
    assert!(desk.world.slack.calls().contains(&"files.info".to_owned()));
}

#[test]
fn a_file_that_is_twice_in_one_message_is_told_and_fetched_once() {
    let desk = Desk::new();
    let file = desk.world.slack.add_file(FileSpec::new("shot.png", "image/png", png()));
    let told = desk.told(&desk.post_objects("Twice", &[file.clone(), file]));
    assert!(told.path(0).exists());
    assert!(told.pane.contains(" attachments] 1 file,"), "{}", told.pane);
    assert_eq!((desk.asked().len(), desk.on_disk().len()), (1, 1));
}
