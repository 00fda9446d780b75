//! The thread: group commit, bells, versions.

use std::time::Duration;

use tokio::time::timeout;

use super::*;
use crate::inbox::bindings::Bind;
use crate::inbox::{Ring, schema};

/// Enough for a machine that does many other things.
const LONG: Duration = Duration::from_secs(20);

#[test]
fn a_job_that_fails_takes_nothing_of_its_neighbours_back() {
    let store = Store::new();
    let before = store.inbox.put(arrival(said("1.1", "words")));
    let failing = store.inbox.write(|db| {
        db.execute("UPDATE message SET stage = 'settled'", [])?;
        db.execute("INSERT INTO nowhere VALUES (1)", [])
    });
    let after = store.inbox.put(arrival(said("1.2", "words")));
    assert!(failing.wait().is_err());
    assert_eq!((before.wait().unwrap(), after.wait().unwrap()), (Put::New, Put::New));
    assert_eq!(store.newcomers().len(), 2);
}

#[test]
fn a_job_of_a_transaction_that_could_not_begin_does_not_run() {
    let store = Store::new();
    let begun = Err("the disk is full".to_owned());
    let (sender, receiver) = std::sync::mpsc::channel();
    let asked = Inbox { jobs: sender, ..store.inbox.clone() }
        .enqueue(crate::inbox::Need::Write, Ring::Nothing, |db| db.execute("DELETE FROM message", []));
    store.put(said("1.1", "words"));
    let connection = rusqlite::Connection::open(store.directory.path().join("usher.db")).unwrap();
    let job = receiver.recv().unwrap();
    (job.run)(&connection, &begun)(begun.clone());
    assert_eq!(asked.wait().unwrap_err().to_string(), "the inbox could not be written: the disk is full");
    assert_eq!(store.newcomers().len(), 1);
}

#[test]
fn what_is_stored_is_there_after_the_handle_and_its_thread_are_gone() {
    let store = Store::new();
    store.put(said("1.1", "words"));
    let Store { inbox, directory } = store;
    drop(inbox);
    let (inbox, _thread) = Inbox::open(&directory.path().join("usher.db")).unwrap();
    assert_eq!(inbox.newcomers().wait().unwrap()[0].message, said("1.1", "words"));
}

#[tokio::test]
async fn what_another_process_changes_rings_both_bells() {
    let store = Store::new();
    let (mut changes, mut news) = (store.inbox.changes(), store.inbox.news());
    let bound = store.beside().bind(&lane(1), None, Some(room("C1"))).await.unwrap();
    assert_eq!(bound, Bind::Bound);
    timeout(LONG, changes.changed()).await.unwrap().unwrap();
    timeout(LONG, news.changed()).await.unwrap().unwrap();
}

#[tokio::test]
async fn every_step_that_changes_marks_rings_for_those_who_show_them() {
    let store = Store::new();
    store.inbox.put(arrival(said("1.1", "words"))).await.unwrap();
    let seq = store.inbox.newcomers().await.unwrap()[0].seq;
    let mut changes = store.inbox.changes();
    let mut rang = async || timeout(LONG, changes.changed()).await.unwrap().unwrap();
    rang().await;
    store.inbox.admit(seq, lane(1), None, at(1)).await.unwrap();
    rang().await;
    store.inbox.recorded(seq, &lane(1), Vec::new(), Vec::new(), at(2)).await.unwrap();
    rang().await;
    store.inbox.hold(seq, "typing".into(), None, at(3)).await.unwrap();
    rang().await;
    assert!(store.inbox.pasting(seq, "7f3a9c2e".into(), pane(), at(4)).await.unwrap());
    rang().await;
    store.inbox.delivered(seq, Verdict::Submitted, "seen".into(), None, at(5)).await.unwrap();
    rang().await;
}

#[test]
fn a_database_of_a_newer_usher_is_refused_and_left_alone() {
    let store = Store::new();
    store.put(said("1.1", "words"));
    store.alter("PRAGMA user_version = 999");
    let error = Inbox::open(&store.directory.path().join("usher.db")).unwrap_err().to_string();
    let this = schema::MIGRATIONS.len().to_string();
    let error = error.replace(&format!("knows {this}"), "knows THIS");
    insta::assert_snapshot!(error, @"the database has version 999, this usher knows THIS: it was written by a newer usher, so start that one");
}

#[test]
fn a_database_is_opened_again_without_being_changed() {
    let store = Store::new();
    store.put(said("1.1", "words"));
    assert_eq!(store.beside().newcomers().wait().unwrap().len(), 1);
}
