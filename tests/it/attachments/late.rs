//! Files that are slower than their message may wait for them: named as pending, then brought as a supplement, once.

use std::time::{Duration, Instant};

use super::Desk;
use super::desk::{Told, id};
use crate::world::{Behaviour, DANA, FileSpec, ITEM, Posted, ROOM, TEAM, eventually};

const PENDING: &str = "still downloading, it follows";

/// A file that takes a second, where a message waits for a fifth of one.
fn slow() -> FileSpec {
    FileSpec::new("long.log", "text/plain", vec![b'x'; 20_000]).behaving([Behaviour::Slow(20_000)])
}

/// The message is in the pane, with its file still on the way.
fn assert_pending(told: &Told) {
    told.assert_refused(0, "pending", PENDING);
    assert!(told.pane.contains("Look at this"), "{}", told.pane);
}

/// Waits until so many messages have been submitted, the late ones among them, and as many are on the ticket.
fn wait_for(desk: &Desk, count: usize) {
    eventually("every message is in the pane and on the ticket", || {
        let seen = (desk.agent.submitted().len(), desk.world.github.comments(ITEM).len());
        if seen == (count, count) { Ok(()) } else { Err((seen, desk.agent.submitted())) }
    });
}

/// The id of the supplement that brings a late file.
fn late_id(posted: &Posted, file: &str) -> String {
    format!("slack:{TEAM}/{ROOM}/{}+late/{file}", posted.ts)
}

/// Waits for the late file and gives what was told of it.
fn late(desk: &Desk, posted: &Posted, file: &str) -> Told {
    wait_for(desk, 2);
    let id = late_id(posted, file);
    eventually("the late file is settled", || desk.shown(&id)["stage"] == "settled");
    desk.told_of(&id)
}

/// What Dana says after everything else arrives next: nothing came twice.
fn assert_nothing_more_came(desk: &Desk, so_far: usize) {
    let last = desk.told(&desk.world.slack.post(ROOM, Some(&desk.thread), DANA, "That was all", &[]));
    assert!(last.pane.contains("That was all"), "{}", last.pane);
    wait_for(desk, so_far + 1);
}

#[test]
fn a_slow_file_follows_its_words() {
    let desk = Desk::configured("attachments.deadline = '200ms'");
    let file = desk.world.slack.add_file(slow());
    let posted = desk.post_objects("Look at this", std::slice::from_ref(&file));
    assert_pending(&desk.told(&posted));
    assert!(desk.world.slack.ephemerals().is_empty(), "pending is no refusal: {:?}", desk.world.slack.ephemerals());

    let late = late(&desk, &posted, id(&file));

    late.assert_saved(0, &format!("{}-long.log", id(&file)), &vec![b'x'; 20_000]);
    assert!(late.pane.lines().next().is_some_and(|line| line.contains("] late file from Dana ")), "{}", late.pane);
    assert!(!late.pane.contains("Look at this"), "{}", late.pane);
    assert!(late.record.contains(", a late file, by usher:"), "{}", late.record);
    assert!(late.record.contains("📎 long.log"), "{}", late.record);
    assert_nothing_more_came(&desk, 2);
    assert_eq!(desk.asked().len(), 1, "the download went on, it did not begin again: {:?}", desk.asked());
}

#[test]
fn a_late_file_survives_kill_9_and_comes_once() {
    let mut desk = Desk::configured("attachments.deadline = '200ms'");
    let file = desk.world.slack.add_file(slow().behaving([Behaviour::Slow(8_000), Behaviour::Normal]));
    let posted = desk.post_objects("Look at this", std::slice::from_ref(&file));
    assert_pending(&desk.told(&posted));
    eventually("half of it is on the disk", || desk.on_disk().first().is_some_and(|name| name.ends_with(".part")));

    desk.restart_after_kill9();

    let late = late(&desk, &posted, id(&file));
    late.assert_saved(0, &format!("{}-long.log", id(&file)), &vec![b'x'; 20_000]);
    desk.restart_after_kill9();
    assert_nothing_more_came(&desk, 2);
    assert_eq!(desk.on_disk(), [format!("{}-long.log", id(&file))].into(), "half a file of the first run is left");
}

#[test]
fn a_late_file_of_somebody_who_may_no_longer_speak_is_given_up() {
    let mut desk = Desk::configured("attachments.deadline = '200ms'");
    let file = desk.world.slack.add_file(slow().behaving([Behaviour::Slow(200), Behaviour::Normal]));
    let posted = desk.post_objects("Look at this", std::slice::from_ref(&file));
    assert_pending(&desk.told(&posted));

    desk.world.config("people = [{ name = 'Sam', slack = 'U0SAM' }]");
    desk.restart_after_kill9();

    eventually("the late file is refused", || desk.shown(&late_id(&posted, id(&file)))["stage"] == "refused");
    assert_eq!(desk.asked().len(), 1, "{:?}", desk.asked());
    assert_eq!(desk.on_disk(), [].into());
}

#[test]
fn words_that_come_while_a_file_is_late_do_not_wait_for_it() {
    let desk = Desk::configured("attachments.deadline = '200ms'");
    let file = desk.world.slack.add_file(slow().behaving([Behaviour::Slow(200)]));
    let posted = desk.post_objects("Look at this", std::slice::from_ref(&file));
    let next = desk.told(&desk.world.slack.post(ROOM, Some(&desk.thread), DANA, "Or never mind", &[]));
    assert!(next.pane.contains("Or never mind"), "{}", next.pane);
    assert_eq!(desk.shown(&late_id(&posted, id(&file)))["stage"], "fetching");
}

#[test]
fn slow_files_of_one_message_take_no_turn_from_another_message() {
    let desk = Desk::configured("attachments = { deadline = '1s', parallel = 2 }");
    let never = || slow().behaving([Behaviour::Slow(200)]);
    let first = desk.told(&desk.post("Look at these", [never(), never(), never()]));
    (0..3).for_each(|index| first.assert_refused(index, "pending", PENDING));
    let next = desk.send(slow().behaving([Behaviour::Normal]));
    assert!(next.path(0).exists());
}

#[test]
fn a_file_that_never_ends_is_given_up_at_its_own_deadline() {
    let desk = Desk::configured("attachments = { deadline = '200ms', file_deadline = '600ms' }");
    let file = desk.world.slack.add_file(slow().behaving([Behaviour::Slow(500)]));
    let posted = desk.post_objects("Look at this", std::slice::from_ref(&file));
    assert_pending(&desk.told(&posted));
    let late = late(&desk, &posted, id(&file));
    late.assert_refused(0, "transfer-failed", "the transfer failed");
    assert!(desk.sender_told().contains("long.log: the transfer failed. "), "{}", desk.sender_told());
    eventually("nothing of it is left", || desk.on_disk().is_empty());
}

#[test]
fn a_stop_does_not_wait_for_a_late_file() {
    let mut desk = Desk::configured("attachments.deadline = '200ms'");
    let file = desk.world.slack.add_file(slow().behaving([Behaviour::Slow(200), Behaviour::Normal]));
    let posted = desk.post_objects("Look at this", std::slice::from_ref(&file));
    assert_pending(&desk.told(&posted));

    let asked = Instant::now();
    let status = desk.daemon.take().expect("a running daemon").sigterm();
    assert!(status.success(), "{status}");
    assert!(asked.elapsed() < Duration::from_secs(10));

    desk.start_again();
    assert!(late(&desk, &posted, id(&file)).path(0).exists());
    assert_nothing_more_came(&desk, 2);
}
