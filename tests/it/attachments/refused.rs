//! Files that are named and not fetched: each with its reason, told the same way everywhere.

use serde_json::json;

use super::Desk;
use crate::main_job::png;
use crate::world::{FileSpec, ITEM, eventually};

fn shot() -> FileSpec {
    FileSpec::new("shot.png", "image/png", png())
}

#[test]
fn of_twelve_files_ten_are_saved_and_two_are_named() {
    let desk = Desk::new();
    let files = (1..=12).map(|number| FileSpec::new(&format!("{number}.png"), "image/png", png()));
    let told = desk.told(&desk.post("Twelve", files));
    (0..10).for_each(|index| assert!(told.path(index).exists()));
    let words = "past the cap of 10 files a message";
    (10..12).for_each(|index| told.assert_refused(index, "too-many", words));
    assert_eq!(told.record.matches(words).count(), 2, "{}", told.record);
    let sender = desk.sender_told();
    assert!(sender.starts_with("2 of 12 files were not taken; the words were."), "{sender}");
    for name in ["11.png", "12.png"] {
        assert!(sender.contains(&format!("• {name}: {words}. Send the rest in a message of their own.")), "{sender}");
    }
    assert_eq!((desk.asked().len(), desk.on_disk().len()), (10, 10));
}

#[test]
fn what_slack_no_longer_shows_is_named_and_not_asked_for() {
    let desk = Desk::new();
    let deleted = shot().with(json!({"mode": "tombstone", "url_private": null, "url_private_download": null}));
    let hidden = shot().with(json!({"mode": "hidden_by_limit", "url_private": null, "url_private_download": null}));
    let told = desk.told(&desk.post("Two old ones", [deleted, hidden]));
    told.assert_refused(0, "deleted", "deleted in Slack");
    told.assert_refused(1, "hidden-by-plan", "hidden by the workspace's plan");
    // When every file is refused the words go nevertheless.
    assert!(told.pane.contains("Two old ones") && told.record.contains("> Two old ones"), "{}", told.pane);
    assert!(desk.sender_told().starts_with("2 of 2 files were not taken"), "{}", desk.sender_told());
    assert_eq!(desk.asked(), [""; 0]);
}

#[test]
fn a_session_that_takes_no_files_is_told_their_names() {
    let desk = Desk::configured("attachments.receive = false");
    let told = desk.send(shot());
    let words = "receiving files is off for this session";
    told.assert_refused(0, "receive-off", words);
    assert!(desk.sender_told().contains(&format!("shot.png: {words}. ")), "{}", desk.sender_told());
    assert_eq!((desk.asked().len(), desk.on_disk().len()), (0, 0));
}

#[test]
fn without_a_bot_token_files_are_named_and_the_words_arrive() {
    let desk = Desk::with("", |world| world.unset_env("USHER_SLACK_BOT_TOKEN"));
    desk.post("Look at this", [shot()]);
    // Without that token nobody can be marked or told in Slack: the pane and the ticket say it.
    eventually("the message is in the pane and on the ticket", || {
        let seen = (desk.agent.submitted().len(), desk.world.github.comments(ITEM).len());
        if seen == (1, 1) { Ok(()) } else { Err((seen, desk.world.output())) }
    });
    let (pane, record) = (desk.agent.submitted().remove(0), desk.world.github.comments(ITEM).remove(0).body);
    assert!(pane.contains("Look at this"), "{pane}");
    assert!(pane.contains("not fetched (no-token): usher holds no token for it"), "{pane}");
    assert!(record.contains("(not fetched: usher holds no token for it)"), "{record}");
    assert_eq!(desk.asked(), [""; 0]);
}
