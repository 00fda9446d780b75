//! Marks and notices: what is still to be shown, once.

use super::*;

#[test]
fn marks_follow_the_message_and_are_shown_again_only_when_they_change() {
    let store = Store::new();
    let seq = store.recorded("1.1", &lane(1));
    let show = |expected: &[Mark]| {
        let wanted = store.wanted();
        assert_eq!(wanted, marks(expected));
        store.inbox.marked(seq, &wanted.unwrap()).wait().unwrap();
        assert_eq!(store.wanted(), None);
    };
    show(&[Mark::Received]);
    store.inbox.hold(seq, "typing".into(), Some(notice("held:typing")), at(4)).wait().unwrap();
    show(&[Mark::Received, Mark::Waiting]);
    assert!(store.inbox.pasting(seq, "7f3a9c2e".into(), pane(), at(5)).wait().unwrap());
    show(&[Mark::Received]);
    store.delivered(seq, Verdict::Submitted);
    assert_eq!(store.wanted(), None, "without its record the message is not done");
    store.landed(seq);
    show(&[Mark::Received, Mark::Done]);
}

#[test]
fn marks_that_cannot_be_shown_now_let_the_others_pass() {
    let store = Store::new();
    let (stuck, other) = (store.recorded("1.1", &lane(1)), store.recorded("1.2", &lane(2)));
    let next = |now| {
        let (marking, next) = store.inbox.marking(Platform::Slack, now).wait().unwrap();
        (marking.map(|marking| marking.seq), next)
    };
    assert_eq!(next(at(5)), (Some(stuck), None));
    store.inbox.marks_postponed(stuck, Some(at(15))).wait().unwrap();
    assert_eq!(next(at(5)), (Some(other), None));
    store.inbox.marked(other, &[Mark::Received].into()).wait().unwrap();
    assert_eq!(next(at(5)), (None, Some(at(15))));
    assert_eq!(next(at(15)), (Some(stuck), None));
    store.inbox.marks_postponed(stuck, None).wait().unwrap();
    assert_eq!(next(at(15)), (None, None));
}

#[test]
fn a_hold_is_told_once_a_cause_and_only_when_it_lasts() {
    let store = Store::new();
    let seq = store.recorded("1.1", &lane(1));
    let hold = |cause: &str, seconds| {
        let told = notice(&format!("held:{cause}"));
        store.inbox.hold(seq, cause.into(), Some(told), at(seconds)).wait().unwrap();
    };
    hold("typing", 10);
    assert_eq!(store.inbox.take_notice(Platform::Slack, at(14)).wait().unwrap().1, Some(at(15)));
    assert_eq!(store.said(at(15)), ["held:typing"]);
    hold("dialog", 20);
    hold("mode", 22);
    hold("typing", 30);
    assert!(store.said(at(99)).is_empty(), "two ended before they lasted, and the third was told before");
    hold("mode", 100);
    assert_eq!(store.said(at(105)), ["held:mode"]);
}

#[test]
fn a_hold_that_ended_soon_is_not_told() {
    let store = Store::new();
    let seq = store.recorded("1.1", &lane(1));
    store.inbox.hold(seq, "typing".into(), Some(notice("held:typing")), at(10)).wait().unwrap();
    store.inbox.pasting(seq, "7f3a9c2e".into(), pane(), at(12)).wait().unwrap();
    assert!(store.said(at(99)).is_empty());
}

#[test]
fn a_notice_is_never_told_twice_even_when_usher_died_while_telling_it() {
    let store = Store::new();
    let seq = store.admitted("1.1", &lane(1));
    store.inbox.fetched(seq, Vec::new(), Vec::new(), Some(notice("files")), at(2)).wait().unwrap();
    let due = store.inbox.take_notice(Platform::Slack, at(3)).wait().unwrap().0.unwrap();
    assert_eq!((due.author, due.text.as_str()), (Person::Slack("U0DANA".into()), "words"));
    assert!(store.beside().take_notice(Platform::Slack, at(3)).wait().unwrap().0.is_none());
}

#[test]
fn a_notice_that_could_not_be_told_is_told_later_or_given_up() {
    let store = Store::new();
    let seq = store.admitted("1.1", &lane(1));
    store.inbox.fetched(seq, Vec::new(), Vec::new(), Some(notice("files")), at(2)).wait().unwrap();
    let take = |seconds| store.inbox.take_notice(Platform::Slack, at(seconds)).wait().unwrap().0.map(|due| due.key);
    assert_eq!(take(3), Some("files".into()));
    store.inbox.notice_postponed(seq, "files".into(), Some(at(20))).wait().unwrap();
    assert_eq!((take(19), take(20)), (None, Some("files".into())));
    store.inbox.notice_postponed(seq, "files".into(), None).wait().unwrap();
    assert_eq!(take(99), None);
}
