//! The outbox of records: what the ticket still has to be told.
//!
//! Owns the table `record` and its order: within a work item, in order of arrival. It must not know how a comment is
//! written or read back (`github::ledger`).

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::messages::{moment, settle};
use super::notices;
use super::{Inbox, Pending};
use crate::core::feedback::Notice;
use crate::core::message::MessageId;
use crate::core::work_item::WorkItem;

/// A comment that waits to be written.
#[derive(Debug, Clone)]
pub struct Waiting {
    /// The message's place in the order of arrival.
    pub seq: i64,
    /// The message's identity, as its envelope carries it.
    pub id: MessageId,
    /// Which part, from 1.
    pub part: i64,
    /// The ticket.
    pub work_item: WorkItem,
    /// The comment, envelope included.
    pub body: String,
    /// Whether an earlier attempt may have written it unseen.
    pub may_be_there: bool,
    /// Failed attempts so far.
    pub tries: u32,
    /// When the message arrived.
    pub arrived_at: Timestamp,
}

/// How far the record of one message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Every part is on the ticket, or will never be.
    Ended,
    /// Parts wait, and nothing of an earlier message does.
    Next,
    /// Parts of earlier messages wait too, or an attempt has failed: nobody waits for this one.
    Backlog,
}

impl Inbox {
    /// The first comment of each work item that is due, oldest first, and when the next one will be.
    pub fn records_due(&self, now: Timestamp) -> Pending<(Option<Waiting>, Option<Timestamp>)> {
        self.read(move |db| {
            let firsts = firsts(db)?;
            let due = firsts.iter().find(|(next, _)| *next <= now.as_millisecond()).map(|(_, waiting)| waiting.clone());
            let next = firsts.iter().map(|(next, _)| *next).filter(|next| *next > now.as_millisecond()).min();
            Ok((due, next.and_then(moment)))
        })
    }

    /// An attempt begins: from here on the comment may be on the ticket.
    pub fn record_posting(&self, seq: i64, part: i64) -> Pending<()> {
        self.write(move |db| {
            db.prepare_cached("UPDATE record SET state = 'posting' WHERE message = ?1 AND part = ?2")?
                .execute(params![seq, part])?;
            Ok(())
        })
    }

    /// The comment is on the ticket.
    pub fn record_landed(&self, seq: i64, part: i64, link: String, now: Timestamp) -> Pending<()> {
        self.write_and_wake(move |db| {
            db.prepare_cached(
                "UPDATE record SET state = 'landed', link = ?3, cause = '', body = '' WHERE message = ?1 AND part = ?2",
            )?
            .execute(params![seq, part, link])?;
            settle(db, seq, now)
        })
    }

    /// The attempt failed and is repeated later.
    pub fn record_postponed(&self, seq: i64, part: i64, cause: String, next: Timestamp) -> Pending<()> {
        self.write_and_wake(move |db| {
            db.execute(
                "UPDATE record SET next_at = ?3, tries = tries + 1, cause = ?4 WHERE message = ?1 AND part = ?2",
                params![seq, part, next.as_millisecond(), cause],
            )?;
            Ok(())
        })
    }

    /// The ticket will never take it.
    pub fn record_refused(&self, seq: i64, cause: String, told: Notice, now: Timestamp) -> Pending<()> {
        self.write_and_wake(move |db| {
            db.execute(
                "UPDATE record SET state = 'refused', cause = ?2 WHERE message = ?1 AND state IN ('waiting', 'posting')",
                params![seq, cause],
            )?;
            notices::add(db, seq, &told, now)?;
            settle(db, seq, now)
        })
    }

    /// How far the record of a message is.
    pub fn record_progress(&self, seq: i64) -> Pending<Progress> {
        self.read(move |db| {
            let mut query = db.prepare_cached(
                "SELECT count(*) FILTER (WHERE message = ?1), count(*) FILTER (WHERE message < ?1), count(*) FILTER (WHERE tries > 0)
                 FROM record INDEXED BY record_open WHERE state IN ('waiting', 'posting')",
            )?;
            query.query_row([seq], |row| {
                Ok(match (row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?) {
                    (0, _, _) => Progress::Ended,
                    (_, 0, 0) => Progress::Next,
                    _ => Progress::Backlog,
                })
            })
        })
    }
}

pub(super) fn add(db: &Connection, seq: i64, work_item: &str, parts: &[String]) -> rusqlite::Result<()> {
    let mut insert = db.prepare_cached(
        "INSERT INTO record (message, part, work_item, body) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (message, part) DO NOTHING",
    )?;
    for (part, body) in (1_i64..).zip(parts) {
        insert.execute(params![seq, part, work_item, body])?;
    }
    Ok(())
}

/// The oldest open comment of each work item, with the time before which it is not tried.
fn firsts(db: &Connection) -> rusqlite::Result<Vec<(i64, Waiting)>> {
    let keys = "SELECT work_item, min(message), min(part) FROM (SELECT work_item, message, part FROM record INDEXED BY record_open
                WHERE state IN ('waiting', 'posting') ORDER BY message, part LIMIT 1000) GROUP BY work_item ORDER BY 2";
    let keys: Vec<i64> = db.prepare_cached(keys)?.query_map([], |row| row.get(1))?.collect::<Result<_, _>>()?;
    keys.into_iter().filter_map(|seq| first(db, seq).transpose()).collect()
}

fn first(db: &Connection, seq: i64) -> rusqlite::Result<Option<(i64, Waiting)>> {
    let sql = "SELECT record.next_at, message.id, record.part, record.work_item, record.body, record.state, record.tries, message.arrived_at
               FROM record JOIN message ON message.seq = record.message
               WHERE record.message = ?1 AND record.state IN ('waiting', 'posting') ORDER BY record.part LIMIT 1";
    let found = db.prepare_cached(sql)?.query_row([seq], |row| {
        let Ok(work_item) = row.get_ref(3)?.as_str()?.parse() else { return Ok(None) };
        let waiting = Waiting {
            seq,
            id: MessageId::stored(row.get::<_, String>(1)?),
            part: row.get(2)?,
            work_item,
            body: row.get(4)?,
            may_be_there: row.get_ref(5)?.as_str()? == "posting",
            tries: row.get(6)?,
            arrived_at: moment(row.get(7)?).unwrap_or_default(),
        };
        Ok(Some((row.get(0)?, waiting)))
    });
    Ok(found.optional()?.flatten())
}
