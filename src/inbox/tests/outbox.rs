//! The outbox: order, progress, and what a failure holds up.

use super::*;
use crate::inbox::records::{Progress, Waiting};

fn due(store: &Store, seconds: i64) -> (Option<(i64, i64)>, Option<Timestamp>) {
    let (waiting, next) = store.inbox.records_due(at(seconds)).wait().unwrap();
    (waiting.map(|Waiting { seq, part, .. }| (seq, part)), next)
}

#[test]
fn records_of_a_work_item_go_in_order_of_arrival_and_parts_in_their_order() {
    let store = Store::new();
    let first = store.admitted("1.1", &lane(1));
    store.record(first, &lane(1), 2);
    let second = store.recorded("1.2", &lane(1));
    for expected in [(first, 1), (first, 2), (second, 1)] {
        assert_eq!(due(&store, 9), (Some(expected), None));
        store.inbox.record_landed(expected.0, expected.1, "link".into(), at(9)).wait().unwrap();
    }
    assert_eq!(due(&store, 9), (None, None));
}

#[test]
fn a_postponed_record_holds_its_own_work_item_and_no_other() {
    let store = Store::new();
    let (stuck, behind) = (store.recorded("1.1", &lane(1)), store.recorded("1.2", &lane(1)));
    let other = store.recorded("1.3", &lane(2));
    store.inbox.record_postponed(stuck, 1, "no network".into(), at(60)).wait().unwrap();
    assert_eq!(due(&store, 9), (Some((other, 1)), Some(at(60))));
    store.landed(other);
    assert_eq!(due(&store, 9), (None, Some(at(60))));
    assert_eq!(due(&store, 60).0, Some((stuck, 1)));
    store.landed(stuck);
    assert_eq!(due(&store, 60).0, Some((behind, 1)));
}

#[test]
fn nobody_waits_for_a_record_that_others_hold_up_or_that_failed() {
    let store = Store::new();
    let progress = |seq| store.inbox.record_progress(seq).wait().unwrap();
    let (first, second) = (store.recorded("1.1", &lane(1)), store.recorded("1.2", &lane(2)));
    assert_eq!((progress(first), progress(second)), (Progress::Next, Progress::Backlog));
    store.landed(first);
    assert_eq!((progress(first), progress(second)), (Progress::Ended, Progress::Next));
    store.inbox.record_postponed(second, 1, "no network".into(), at(60)).wait().unwrap();
    assert_eq!(progress(second), Progress::Backlog);
    store.inbox.record_refused(second, "gone".into(), notice("record"), at(60)).wait().unwrap();
    assert_eq!(progress(second), Progress::Ended);
}

#[test]
fn an_attempt_that_began_may_be_on_the_ticket() {
    let store = Store::new();
    let seq = store.recorded("1.1", &lane(1));
    let may_be_there = || store.inbox.records_due(at(9)).wait().unwrap().0.unwrap().may_be_there;
    assert!(!may_be_there());
    store.inbox.record_posting(seq, 1).wait().unwrap();
    assert!(may_be_there());
    store.inbox.record_postponed(seq, 1, "reset".into(), at(9)).wait().unwrap();
    assert!(may_be_there(), "a failure does not tell whether the comment was written");
}

#[test]
fn a_refusal_ends_every_part_and_is_told_once() {
    let store = Store::new();
    let seq = store.admitted("1.1", &lane(1));
    store.record(seq, &lane(1), 3);
    for _ in 0..2 {
        store.inbox.record_refused(seq, "archived".into(), notice("record"), at(4)).wait().unwrap();
    }
    assert_eq!(due(&store, 9), (None, None));
    assert_eq!(store.said(at(9)), ["record"]);
}

#[test]
fn a_step_that_is_repeated_writes_no_second_record() {
    let store = Store::new();
    let seq = store.recorded("1.1", &lane(1));
    store.landed(seq);
    store.alter("UPDATE message SET stage = 'fetched'");
    store.record(seq, &lane(1), 1);
    assert_eq!(due(&store, 9), (None, None));
}
