//! Edits, deletions and late transcripts, as the store knows them.

use super::*;
use crate::core::message::Supplement;
use crate::inbox::transcripts::Awaited;

fn addition(ts: &str, what: &str, text: &str) -> Message {
    let of = id_of(ts);
    Message { id: of.followed_by(what), supplement: Some(Supplement::Edited { of }), ..said(ts, text) }
}

fn words(store: &Store, ts: &str, seq: i64) -> Option<String> {
    store.inbox.words_before(id_of(ts), seq).wait().unwrap()
}

fn next(store: &Store, now: Timestamp) -> (Option<Awaited>, Option<Timestamp>) {
    store.inbox.next_transcript(now).wait().unwrap()
}

#[test]
fn the_words_of_a_message_are_those_of_its_latest_edit_before() {
    let (store, lane) = (Store::new(), lane(1));
    let seq = store.admitted("1.2", &lane);
    for (what, text) in [("edited/5.1", "first"), ("edited/5.2", "second"), ("late/F1", ""), ("deleted", "")] {
        store.put(addition("1.2", what, text));
    }
    store.put(addition("1.20", "edited/5.1", "of another message"));
    assert_eq!(words(&store, "1.2", seq), None, "nothing arrived before the message itself");
    assert_eq!(words(&store, "1.2", seq + 1).as_deref(), Some("words"));
    assert_eq!(words(&store, "1.2", seq + 2).as_deref(), Some("first"));
    assert_eq!(words(&store, "1.2", 1_000).as_deref(), Some("second"));
    assert_eq!(words(&store, "9.9", 1_000), None);
    store.inbox.refuse(seq, "stranger", None, at(2)).wait().unwrap();
    assert_eq!(words(&store, "1.2", 1_000), None, "a refused message has no words");
}

#[test]
fn a_deletion_drops_what_was_not_typed_of_its_message_and_of_no_other() {
    let (store, lane) = (Store::new(), lane(1));
    let seq = store.recorded("1.2", &lane);
    store.put(addition("1.2", "edited/5.1", "first"));
    store.put(addition("1.2", "deleted", ""));
    let other = store.admitted("1.20", &lane);
    store.inbox.withdraw(id_of("1.2"), at(5)).wait().unwrap();
    assert_eq!(
        [seq, seq + 1, seq + 2, other].map(|seq| store.stage(seq)),
        ["dropped", "dropped", "accepted", "admitted"]
    );
    assert_eq!(store.said(at(1_000)), [""; 0]);
    assert!(store.inbox.records_due(at(1_000)).wait().unwrap().0.is_none(), "the unwritten record is gone too");
}

#[test]
fn a_deletion_leaves_what_was_typed() {
    let (store, lane) = (Store::new(), lane(1));
    let seq = store.recorded("1.2", &lane);
    store.inbox.pasting(seq, "7f3a9c2e".into(), pane(), at(4)).wait().unwrap();
    store.inbox.withdraw(id_of("1.2"), at(5)).wait().unwrap();
    assert_eq!(store.stage(seq), "recorded");
}

#[test]
fn a_transcript_is_looked_for_once_its_message_is_fetched_and_when_its_file_changed() {
    let (store, lane) = (Store::new(), lane(1));
    let seq = store.admitted("1.2", &lane);
    store.inbox.await_transcripts(seq, vec!["F1".into()], at(60), at(0)).wait().unwrap();
    assert!(matches!(next(&store, at(100)), (None, None)));
    store.inbox.fetched(seq, Vec::new(), Vec::new(), None, at(2)).wait().unwrap();
    assert!(matches!(next(&store, at(3)), (None, Some(due)) if due == at(60)));
    store.inbox.file_changed("F2".into(), at(3)).wait().unwrap();
    assert!(next(&store, at(3)).0.is_none(), "another file");
    store.inbox.file_changed("F1".into(), at(3)).wait().unwrap();
    let awaited = next(&store, at(3)).0.unwrap();
    assert_eq!((awaited.row.seq, awaited.file.as_str(), awaited.tries, awaited.since), (seq, "F1", 0, at(0)));
    store.inbox.transcript_postponed(seq, "F1".into(), at(9)).wait().unwrap();
    assert_eq!(next(&store, at(9)).0.unwrap().tries, 1);
    store.inbox.transcript_given_up(seq, "F1".into()).wait().unwrap();
    assert!(matches!(next(&store, at(100)), (None, None)));
}

#[test]
fn a_transcript_whose_message_cannot_be_read_is_given_up() {
    let (store, lane) = (Store::new(), lane(1));
    let seq = store.recorded("1.2", &lane);
    store.inbox.await_transcripts(seq, vec!["F1".into()], at(1), at(0)).wait().unwrap();
    store.alter("UPDATE message SET body = '{'");
    assert!(matches!(next(&store, at(3)), (None, Some(_))));
    assert!(matches!(next(&store, at(3)), (None, None)));
}
