//! What the operator may do: drop and retry, at any stage.

use super::*;
use crate::inbox::Paste;
use crate::inbox::operator::Retry;

fn drop_it(store: &Store, seq: i64) -> bool {
    store.inbox.drop_message(&seq.to_string(), at(6)).wait().unwrap()
}

fn retry(store: &Store, seq: i64) -> Retry {
    store.inbox.retry(&seq.to_string(), at(7)).wait().unwrap()
}

#[test]
fn a_dropped_message_is_neither_fetched_nor_recorded_nor_typed_nor_marked_as_waiting() {
    let store = Store::new();
    let seq = store.admitted("1.1", &lane(1));
    assert!(drop_it(&store, seq));
    let late = Message { id: id_of("1.1").followed_by("late/F1"), ..said("1.1", "") };
    store.inbox.fetched(seq, Vec::new(), vec![late], Some(notice("files")), at(7)).wait().unwrap();
    store.record(seq, &lane(1), 1);
    store.inbox.hold(seq, "typing".into(), Some(notice("held:typing")), at(7)).wait().unwrap();
    assert!(!store.inbox.pasting(seq, "7f3a9c2e".into(), pane(), at(7)).wait().unwrap());
    store.delivered(seq, Verdict::Submitted);
    assert_eq!(store.stage(seq), "dropped");
    assert!(!store.inbox.is_open(seq).wait().unwrap());
    assert!(store.inbox.records_due(at(9)).wait().unwrap().0.is_none());
    assert!(store.inbox.late_files().wait().unwrap().is_empty());
    assert_eq!(store.wanted(), marks(&[Mark::Received, Mark::Failed]));
    assert_eq!(store.said(at(99)), ["dropped"]);
}

#[test]
fn dropping_takes_an_unwritten_record_back_and_a_retry_writes_it_after_all() {
    let store = Store::new();
    let seq = store.recorded("1.1", &lane(1));
    assert!(drop_it(&store, seq));
    assert!(store.inbox.records_due(at(9)).wait().unwrap().0.is_none());
    assert_eq!(retry(&store, seq), Retry::Delivery);
    assert!(is_stage(store.first(&lane(1)).as_ref(), Stage::Admitted));
    store.record(seq, &lane(1), 1);
    assert!(store.inbox.records_due(at(9)).wait().unwrap().0.is_some());
}

#[test]
fn a_retry_never_skips_the_record_of_a_message_that_was_dropped_after_its_files_came() {
    let store = Store::new();
    let seq = store.admitted("1.1", &lane(1));
    store.inbox.fetched(seq, vec![pending("F1")], Vec::new(), None, at(2)).wait().unwrap();
    assert!(drop_it(&store, seq));
    assert_eq!(retry(&store, seq), Retry::Delivery);
    assert!(is_stage(store.first(&lane(1)).as_ref(), Stage::Fetched));
}

#[test]
fn what_is_being_typed_cannot_be_dropped_but_what_is_stuck_in_the_composer_can() {
    let store = Store::new();
    let seq = store.recorded("1.1", &lane(1));
    store.inbox.pasting(seq, "7f3a9c2e".into(), pane(), at(4)).wait().unwrap();
    assert!(!drop_it(&store, seq));
    store.inbox.pasted(seq, Paste::Pasted, at(4)).wait().unwrap();
    store.inbox.hold(seq, "dialog".into(), None, at(5)).wait().unwrap();
    store.inbox.pasted(seq, Paste::Submitted, at(5)).wait().unwrap();
    assert!(!drop_it(&store, seq));
    store.inbox.pasted(seq, Paste::Pasted, at(5)).wait().unwrap();
    assert!(drop_it(&store, seq));
}

#[test]
fn an_unsure_delivery_is_typed_anew_with_a_nonce_of_its_own_and_no_second_record() {
    let store = Store::new();
    let seq = store.recorded("1.1", &lane(1));
    store.inbox.pasting(seq, "7f3a9c2e".into(), pane(), at(4)).wait().unwrap();
    store.landed(seq);
    store.delivered(seq, Verdict::Unsure);
    assert_eq!(retry(&store, seq), Retry::Delivery);
    let row = store.first(&lane(1)).unwrap();
    assert_eq!((row.paste, row.nonce.as_str()), (Paste::NotYet, ""));
    store.record(seq, &lane(1), 1);
    assert!(store.inbox.records_due(at(9)).wait().unwrap().0.is_none());
    store.delivered(seq, Verdict::Submitted);
    assert_eq!(store.stage(seq), "settled");
}

#[test]
fn a_refused_record_is_asked_for_again_without_typing_anything() {
    let store = Store::new();
    let seq = store.recorded("1.1", &lane(1));
    store.delivered(seq, Verdict::Submitted);
    store.inbox.record_refused(seq, "archived".into(), notice("record"), at(5)).wait().unwrap();
    assert_eq!(retry(&store, seq), Retry::Record);
    assert!(store.first(&lane(1)).is_none());
    store.landed(seq);
    assert_eq!((store.stage(seq).as_str(), store.wanted()), ("settled", marks(&[Mark::Received, Mark::Done])));
}

#[test]
fn what_cannot_be_tried_again_says_so() {
    let store = Store::new();
    let seq = store.recorded("1.1", &lane(1));
    assert_eq!(retry(&store, seq), Retry::UnderWay);
    store.delivered(seq, Verdict::Submitted);
    store.landed(seq);
    assert_eq!((retry(&store, seq), drop_it(&store, seq)), (Retry::Nothing, false));
    assert_eq!((retry(&store, 99), drop_it(&store, 99)), (Retry::Unknown, false));
    assert_eq!(store.inbox.retry(id_of("1.1").as_str(), at(7)).wait().unwrap(), Retry::Nothing);
}

#[test]
fn a_message_that_was_dropped_before_it_was_looked_at_is_looked_at_again() {
    let store = Store::new();
    store.put(said("1.1", "words"));
    let seq = store.newcomers()[0].1;
    assert!(drop_it(&store, seq) && store.newcomers().is_empty());
    assert_eq!(retry(&store, seq), Retry::Delivery);
    assert_eq!(store.newcomers().len(), 1);
}
