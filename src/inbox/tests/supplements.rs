//! Edits and deletions, as the store knows them.

use super::*;
use crate::core::message::Supplement;

fn addition(ts: &str, what: &str, text: &str) -> Message {
    let of = id_of(ts);
    Message { id: of.followed_by(what), supplement: Some(Supplement::Edited { of }), ..said(ts, text) }
}

fn words(store: &Store, ts: &str, seq: i64) -> Option<String> {
    store.inbox.words_before(id_of(ts), seq).wait().unwrap()
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
