//! Arrival: duplicates, twins, and their order.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

/// A copy brought by an event.
fn copy(message: Message, event: &str, twin_until: Option<Timestamp>) -> Arrival {
    Arrival { message, event: event.into(), twin_until, now: at(0) }
}

#[test]
fn a_retry_of_the_same_event_is_a_duplicate_and_adds_nothing() {
    let store = Store::new();
    let put = |text| store.inbox.put(copy(said("1.1", text), "Ev1", None)).wait().unwrap();
    assert_eq!([put("words"), put("other words")], [Put::New, Put::Duplicate]);
    assert_eq!(store.inbox.newcomers().wait().unwrap()[0].message.text, "words");
}

#[test]
fn a_copy_of_an_admitted_message_changes_nothing() {
    let store = Store::new();
    store.admitted("1.1", &lane(1));
    let late = Message { attachments: vec![file("F1")], ..said("1.1", "words") };
    assert_eq!(store.inbox.put(copy(late, "Ev2", None)).wait().unwrap(), Put::Duplicate);
    assert!(store.first(&lane(1)).unwrap().message.attachments.is_empty());
}

#[test]
fn a_mention_waits_for_its_twin_and_takes_over_its_files_in_either_order() {
    let mention = || copy(Message { addressed: true, ..said("1.1", "words") }, "Ev1", Some(at(2)));
    let post = || copy(Message { attachments: vec![file("F1")], ..said("1.1", "words") }, "Ev2", None);
    for (first, second) in [(mention(), post()), (post(), mention())] {
        let store = Store::new();
        let waits = first.twin_until.is_some();
        assert_eq!(store.inbox.put(first).wait().unwrap(), Put::New);
        assert_eq!(store.inbox.newcomers().wait().unwrap()[0].twin_until.is_some(), waits);
        assert_eq!(store.inbox.put(second).wait().unwrap(), Put::Merged);
        let found = store.inbox.newcomers().wait().unwrap();
        assert_eq!((found.len(), found[0].twin_until), (1, None));
        assert!(found[0].message.addressed && found[0].message.attachments.len() == 1);
    }
}

#[test]
fn a_second_look_ends_the_wait_whatever_it_found() {
    for found in [None, Some(Message { attachments: vec![file("F1")], ..said("1.1", "words") })] {
        let store = Store::new();
        store.inbox.put(copy(said("1.1", "words"), "Ev1", Some(at(2)))).wait().unwrap();
        let files = found.as_ref().map_or(0, |message| message.attachments.len());
        store.inbox.complete(id_of("1.1"), found, at(3)).wait().unwrap();
        let newcomer = store.inbox.newcomers().wait().unwrap().remove(0);
        assert_eq!((newcomer.twin_until, newcomer.message.attachments.len()), (None, files));
    }
}

#[test]
fn a_newcomer_comes_with_the_binding_of_its_thread_else_of_its_room() {
    let store = Store::new();
    store.bind("C1", &lane(1));
    let thread = Conversation { thread: Some("9.9".into()), ..room("C1") };
    store.inbox.bind(&lane(2), None, Some(thread)).wait().unwrap();
    let mut in_thread = said("1.2", "in the thread");
    let Place::Slack(place) = &mut in_thread.place else { unreachable!() };
    place.thread = Some("9.9".into());
    store.put(said("1.1", "in the room"));
    store.put(in_thread);
    store.put(said("9.9", "the thread's first post"));
    let lanes: Vec<WorkItem> =
        store.inbox.newcomers().wait().unwrap().into_iter().filter_map(|it| Some(it.bound?.0)).collect();
    assert_eq!(lanes, [lane(1), lane(2), lane(2)]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// Retries, twins and redelivery in any order, some after the message was admitted.
    #[test]
    fn any_interleaving_of_copies_is_one_message_each_in_the_order_of_the_first(
        copies in proptest::collection::vec((0_usize..6, 0_usize..4, any::<bool>()), 1..30), admitted_after in 0_usize..30,
    ) {
        let store = Store::new();
        let mut order: Vec<MessageId> = Vec::new();
        for (index, (message, event, waits)) in copies.into_iter().enumerate() {
            let ts = format!("1.{message}");
            let until = waits.then(|| at(2));
            let put = store.inbox.put(copy(said(&ts, "words"), &format!("Ev{message}-{event}"), until)).wait().unwrap();
            let known = order.contains(&id_of(&ts));
            prop_assert_eq!(put == Put::New, !known);
            if !known {
                order.push(id_of(&ts));
            }
            if index == admitted_after {
                admit_all(&store);
            }
        }
        admit_all(&store);
        let mut lane_order = Vec::new();
        while let Some(row) = store.first(&lane(1)) {
            store.record(row.seq, &lane(1), 0);
            store.delivered(row.seq, Verdict::Submitted);
            lane_order.push(row.message.id);
        }
        prop_assert_eq!(lane_order.iter().collect::<BTreeSet<_>>().len(), lane_order.len());
        prop_assert_eq!(lane_order, order);
    }
}

fn admit_all(store: &Store) {
    for (_, seq) in store.newcomers() {
        store.inbox.admit(seq, lane(1), None, at(1)).wait().unwrap();
    }
}
