//! Stages: the order of a lane, refusal, late files, and the ends of a message.

use super::*;
use crate::core::message::Supplement;
use crate::inbox::Paste;
use crate::inbox::messages::PRUNED_AT_ONCE;

#[test]
fn a_lane_gives_one_message_at_a_time_in_order_of_arrival() {
    let store = Store::new();
    let (one, other) = (lane(1), lane(2));
    let seqs = [store.recorded("1.3", &one), store.recorded("1.1", &one), store.recorded("1.2", &other)];
    assert_eq!(store.inbox.open_lanes().wait().unwrap(), [one.clone(), other.clone()].into());
    assert_eq!(store.first(&one).map(|row| row.seq), Some(seqs[0]));
    assert_eq!(store.first(&other).map(|row| row.seq), Some(seqs[2]));
    store.delivered(seqs[0], Verdict::Submitted);
    assert_eq!(store.first(&one).map(|row| row.seq), Some(seqs[1]));
}

#[test]
fn admission_marks_the_message_and_keeps_its_link() {
    let store = Store::new();
    store.put(said("1.1", "words"));
    let seq = store.newcomers()[0].1;
    let link = Some("https://acme.slack.com/archives/C1/p11".to_owned());
    store.inbox.admit(seq, lane(1), link.clone(), at(1)).wait().unwrap();
    assert_eq!(store.first(&lane(1)).unwrap().message.permalink, link);
    assert_eq!(store.wanted(), marks(&[Mark::Received]));
    assert!(store.newcomers().is_empty());
}

#[test]
fn a_stranger_leaves_nothing_but_an_identity() {
    let store = Store::new();
    store.put(said("1.1", "secret words"));
    let seq = store.newcomers()[0].1;
    store.inbox.refuse(seq, "stranger", None, at(1)).wait().unwrap();
    let whole = store.inbox.show(&seq.to_string()).wait().unwrap().unwrap();
    assert_eq!((whole.line.stage.as_str(), whole.line.cause.as_str()), ("refused", "stranger"));
    assert!(whole.message.is_none() && store.wanted().is_none() && store.said(at(100)).is_empty());
    assert_eq!(store.put(said("1.1", "secret words")), Put::Duplicate);
}

#[test]
fn a_refusal_that_is_told_keeps_the_place_and_erases_the_words() {
    let store = Store::new();
    store.put(Message { attachments: vec![file("F1")], ..said("1.1", "secret words") });
    let seq = store.newcomers()[0].1;
    store.inbox.refuse(seq, "unmapped", Some(notice("refused:unmapped")), at(1)).wait().unwrap();
    let message = store.inbox.show(&seq.to_string()).wait().unwrap().unwrap().message.unwrap();
    assert!(message.text.is_empty() && message.attachments.is_empty());
    assert_eq!(store.wanted(), marks(&[Mark::Received, Mark::Failed]));
    assert_eq!(store.said(at(2)), ["refused:unmapped"]);
}

#[test]
fn a_person_who_lost_the_permission_while_waiting_loses_the_marks_too() {
    let store = Store::new();
    let seq = store.recorded("1.1", &lane(1));
    store.inbox.marked(seq, &[Mark::Received].into()).wait().unwrap();
    store.inbox.refuse(seq, "stranger", None, at(4)).wait().unwrap();
    assert_eq!(store.wanted(), marks(&[]), "the mark has to come off, so the place must be known");
    assert!(store.inbox.show(&seq.to_string()).wait().unwrap().unwrap().message.unwrap().text.is_empty());
}

#[test]
fn a_late_file_becomes_a_message_of_its_own_behind_those_that_came_meanwhile() {
    let store = Store::new();
    let seq = store.admitted("1.1", &lane(1));
    let of = id_of("1.1");
    let late = Message {
        id: of.followed_by("late/F1"),
        attachments: vec![file("F1")],
        supplement: Some(Supplement::LateFile { of }),
        ..said("1.1", "")
    };
    for _ in 0..2 {
        store.inbox.fetched(seq, vec![pending("F1")], vec![late.clone()], None, at(2)).wait().unwrap();
    }
    let followed = store.inbox.late_files().wait().unwrap();
    assert_eq!(followed.len(), 1);
    assert!(is_stage(followed.first(), Stage::Fetching));
    assert_eq!(store.inbox.open_lanes().wait().unwrap().len(), 1);
    store.inbox.drop_message(&seq.to_string(), at(3)).wait().unwrap();
    assert!(store.first(&lane(1)).is_none(), "a file that is still downloading holds nobody up");
    store.inbox.late_file_fetched(followed[0].seq, vec![pending("F1")], None, at(3)).wait().unwrap();
    assert!(is_stage(store.first(&lane(1)).as_ref(), Stage::Fetched));
    assert!(store.inbox.late_files().wait().unwrap().is_empty());
}

#[test]
fn the_steps_of_the_paste_are_kept_for_the_next_start() {
    let store = Store::new();
    let seq = store.recorded("1.1", &lane(1));
    assert!(store.inbox.pasting(seq, "7f3a9c2e".into(), pane(), at(4)).wait().unwrap());
    let row = || {
        let row = store.first(&lane(1)).unwrap();
        (row.paste, row.nonce)
    };
    assert_eq!(row(), (Paste::Pasting, "7f3a9c2e".into()));
    for paste in [Paste::Pasted, Paste::Submitted, Paste::NotYet] {
        store.inbox.pasted(seq, paste, at(4)).wait().unwrap();
        assert_eq!(row().0, paste);
    }
}

#[test]
fn a_message_is_settled_when_its_delivery_and_its_record_have_both_ended() {
    let refused = |store: &Store, seq| {
        store.inbox.record_refused(seq, "gone".into(), notice("record"), at(5)).wait().unwrap();
    };
    let landed = |store: &Store, seq| store.landed(seq);
    type RecordEnds<'a> = &'a dyn Fn(&Store, i64);
    let table: [(Verdict, RecordEnds<'_>, Mark); 4] = [
        (Verdict::Submitted, &landed, Mark::Done),
        (Verdict::Submitted, &refused, Mark::Failed),
        (Verdict::Unsure, &landed, Mark::Unsure),
        (Verdict::Unsure, &refused, Mark::Unsure),
    ];
    for (verdict, record_ends, last) in table {
        for delivery_first in [true, false] {
            let store = Store::new();
            let seq = store.recorded("1.1", &lane(1));
            let deliver = || store.delivered(seq, verdict);
            if delivery_first {
                deliver()
            } else {
                record_ends(&store, seq)
            }
            assert_ne!(store.stage(seq), "settled");
            assert_eq!(store.wanted(), marks(&[Mark::Received]));
            if delivery_first {
                record_ends(&store, seq)
            } else {
                deliver()
            }
            assert_eq!(store.stage(seq), "settled", "{verdict:?}");
            assert_eq!(store.wanted(), marks(&[Mark::Received, last]), "{verdict:?}");
        }
    }
}

#[test]
fn what_ended_long_ago_is_forgotten_and_nothing_else_is() {
    const DAY: i64 = 24 * 60 * 60;
    let store = Store::new();
    let settled = store.recorded("1.1", &lane(1));
    store.delivered(settled, Verdict::Submitted);
    store.landed(settled);
    store.recorded("1.2", &lane(1));
    store.put(said("1.3", "words"));
    let refused = store.newcomers()[0].1;
    store.inbox.refuse(refused, "stranger", None, at(5)).wait().unwrap();
    let forgotten = |days| store.inbox.prune(at(5 + days * DAY + 1)).wait().unwrap();
    assert_eq!([forgotten(6), forgotten(7), forgotten(29), forgotten(30), forgotten(365)], [0, 1, 0, 1, 0]);
    assert_eq!(store.inbox.list(false, 10).wait().unwrap().len(), 1);
}

#[test]
fn forgetting_is_done_in_portions() {
    let store = Store::new();
    let pending: Vec<_> =
        (0..PRUNED_AT_ONCE + 3).map(|n| store.inbox.put(arrival(said(&format!("1.{n}"), "")))).collect();
    pending.into_iter().for_each(|put| assert_eq!(put.wait().unwrap(), Put::New));
    store.alter("UPDATE message SET stage = 'settled'");
    let now = Timestamp::MAX;
    let forgotten = || store.inbox.prune(now).wait().unwrap();
    assert_eq!([forgotten(), forgotten(), forgotten()], [PRUNED_AT_ONCE, 3, 0]);
}

#[test]
fn a_damaged_message_is_set_aside_and_the_next_one_of_its_lane_goes_on() {
    let store = Store::new();
    let seqs = [store.recorded("1.1", &lane(1)), store.recorded("1.2", &lane(1))];
    store.put(said("1.3", "words"));
    store.put(said("1.4", "words"));
    store.alter("UPDATE message SET body = '{\"text\": \"secret words' WHERE id GLOB '*1.1' OR id GLOB '*1.3'");
    let error = format!("{:#}", store.inbox.first_in_lane(&lane(1)).wait().unwrap_err());
    assert!(!error.contains("secret"), "{error}");
    assert!(store.inbox.newcomers().wait().is_err());
    assert_eq!(store.inbox.set_aside_unreadable(at(9)).wait().unwrap(), [id_of("1.1"), id_of("1.3")]);
    assert_eq!(store.first(&lane(1)).map(|row| row.seq), Some(seqs[1]));
    assert_eq!(store.newcomers().len(), 1);
    assert!(store.inbox.marking(Platform::Slack, at(9)).wait().is_ok());
    assert_eq!(store.inbox.set_aside_unreadable(at(9)).wait().unwrap(), []);
    store.landed(seqs[0]);
    assert_eq!(store.inbox.retry(&seqs[0].to_string(), at(9)).wait().unwrap(), crate::inbox::operator::Retry::Nothing);
}
