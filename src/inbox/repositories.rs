//! Repositories: up to when what was said in each is in the inbox.
//!
//! Owns the table `repository`. It must not know how a repository is read.

use jiff::Timestamp;
use rusqlite::{OptionalExtension as _, params};

use super::bindings;
use super::messages::moment;
use super::{Inbox, Pending};
use crate::core::message::Place;
use crate::core::work_item::WorkItem;

impl Inbox {
    /// Up to when a repository was read, `None`: never.
    pub fn repository_read_to(&self, name: String) -> Pending<Option<Timestamp>> {
        self.read(move |db| {
            let sql = "SELECT read_to FROM repository WHERE name = ?1";
            Ok(db.prepare_cached(sql)?.query_row([name], |row| row.get(0)).optional()?.and_then(moment))
        })
    }

    /// Everything that was said in a repository up to this moment is in the inbox.
    pub fn repository_read(&self, name: String, to: Timestamp) -> Pending<()> {
        self.write(move |db| {
            let sql = "INSERT INTO repository (name, read_to) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET read_to = excluded.read_to";
            db.prepare_cached(sql)?.execute(params![name, to.as_millisecond()])?;
            Ok(())
        })
    }

    /// The work item that what is said at a place belongs to.
    pub fn bound_item(&self, place: Place) -> Pending<Option<WorkItem>> {
        self.read(move |db| Ok(bindings::of_place(db, &place)?.map(|(item, _)| item)))
    }

    /// Whether the store turns and takes writes.
    pub fn is_writable(&self) -> Pending<()> {
        self.write(|_| Ok(()))
    }

    /// When the newest message from GitHub was said.
    pub fn last_from_github(&self) -> Pending<Option<Timestamp>> {
        self.read(|db| {
            let sql = "SELECT max(said_at) FROM message INDEXED BY message_said WHERE platform = 'github'";
            let last: Option<i64> = db.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
            Ok(last.and_then(moment))
        })
    }
}
