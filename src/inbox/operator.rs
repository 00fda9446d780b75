//! What the operator sees of the inbox and may do to it: list, show, retry, drop.
//!
//! Owns the view behind `usher inbox` and `usher status`. It must not show the words of a message in a list.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, params};
use serde::Serialize;

use super::messages::{NOT_TYPED, moment, names};
use super::{Inbox, Pending, from_json, notices};
use crate::core::attachment::Attachment;
use crate::core::feedback::{Fate, dropped};
use crate::core::message::Message;

/// A line of `usher inbox list`.
#[derive(Debug, Clone, Serialize)]
pub struct Line {
    /// Its place in the order of arrival; `usher inbox show` takes it as well as the id.
    pub seq: i64,
    /// The identity.
    pub id: String,
    /// The work item, once it is in a lane.
    pub work_item: Option<String>,
    /// How far it is.
    pub stage: String,
    /// Why it is held, refused, dropped or unsure.
    pub cause: String,
    /// How the delivery ended.
    pub verdict: String,
    /// When it arrived.
    pub arrived_at: Timestamp,
}

/// Everything about one message.
#[derive(Debug, Clone, Serialize)]
pub struct Whole {
    /// The line of the list.
    #[serde(flatten)]
    pub line: Line,
    /// The message, `None` once its words are erased.
    pub message: Option<Message>,
    /// Its files.
    pub attachments: Vec<Attachment>,
    /// The frame's nonce.
    pub nonce: String,
    /// The comments on the ticket.
    pub records: Vec<RecordLine>,
}

/// A comment of a message.
#[derive(Debug, Clone, Serialize)]
pub struct RecordLine {
    /// Which part.
    pub part: i64,
    /// waiting, posting, landed or refused.
    pub state: String,
    /// The comment, once it landed.
    pub link: String,
    /// Why it waits or was refused.
    pub cause: String,
}

/// How many messages are where.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// On their way, held ones included.
    pub open: u64,
    /// Held.
    pub held: u64,
    /// Comments that wait for the ticket.
    pub records_waiting: u64,
    /// In the pane and on the ticket.
    pub settled: u64,
    /// Typed but unproven.
    pub unsure: u64,
    /// Refused or dropped.
    pub refused: u64,
}

/// What `usher inbox retry` did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// There is no such message.
    Unknown,
    /// The ticket is asked again to take the record.
    Record,
    /// It is delivered anew.
    Delivery,
    /// It is on its way already, and is looked at now.
    UnderWay,
    /// It has ended well, or its words are erased.
    Nothing,
}

impl Inbox {
    /// The latest messages, newest first; only the open ones when asked so.
    pub fn list(&self, open_only: bool, limit: usize) -> Pending<Vec<Line>> {
        self.read(move |db| {
            let sql = "SELECT seq, id, lane, stage, cause, held, verdict, arrived_at FROM message
                       WHERE ?1 = 0 OR stage NOT IN ('settled', 'refused', 'dropped') ORDER BY seq DESC LIMIT ?2";
            db.prepare_cached(sql)?
                .query_map(params![open_only, i64::try_from(limit).unwrap_or(i64::MAX)], line)?
                .collect()
        })
    }

    /// One message, by its id or its number in the list.
    pub fn show(&self, which: &str) -> Pending<Option<Whole>> {
        let which = which.to_owned();
        self.read(move |db| {
            let Some(seq) = find(db, &which)? else { return Ok(None) };
            let sql = "SELECT seq, id, lane, stage, cause, held, verdict, arrived_at, body, attachments, nonce FROM message WHERE seq = ?1";
            let whole = db.query_row(sql, [seq], |row| {
                let body = row.get_ref(8)?.as_str()?;
                let message = if body.is_empty() { None } else { Some(from_json(8, body)?) };
                let attachments = from_json(9, row.get_ref(9)?.as_str()?)?;
                Ok(Whole { line: line(row)?, message, attachments, nonce: row.get(10)?, records: Vec::new() })
            });
            let sql = "SELECT part, state, link, cause FROM record WHERE message = ?1 ORDER BY part";
            let records = db.prepare_cached(sql)?.query_map([seq], |row| {
                Ok(RecordLine { part: row.get(0)?, state: row.get(1)?, link: row.get(2)?, cause: row.get(3)? })
            })?.collect::<Result<_, _>>()?;
            Ok(whole.optional()?.map(|whole| Whole { records, ..whole }))
        })
    }

    /// Counts for `usher status`.
    pub fn counts(&self) -> Pending<Counts> {
        self.read(|db| {
            let number = |sql: &str| {
                db.query_row(sql, [], |row| row.get::<_, i64>(0)).map(|count| u64::try_from(count).unwrap_or_default())
            };
            Ok(Counts {
                open: number("SELECT count(*) FROM message WHERE stage NOT IN ('settled', 'refused', 'dropped')")?,
                held: number(
                    "SELECT count(*) FROM message WHERE held <> '' AND stage NOT IN ('settled', 'refused', 'dropped')",
                )?,
                records_waiting: number("SELECT count(*) FROM record WHERE state IN ('waiting', 'posting')")?,
                settled: number("SELECT count(*) FROM message WHERE stage = 'settled' AND verdict <> 'unsure'")?,
                unsure: number("SELECT count(*) FROM message WHERE verdict = 'unsure'")?,
                refused: number("SELECT count(*) FROM message WHERE stage IN ('refused', 'dropped')")?,
            })
        })
    }

    /// Tries a message again: its record when the ticket refused it, its delivery when that was unsure or dropped, and a
    /// record that waits for its next attempt at once.
    pub fn retry(&self, which: &str, now: Timestamp) -> Pending<Retry> {
        let which = which.to_owned();
        self.news_from(move |db| {
            let Some(seq) = find(db, &which)? else { return Ok(Retry::Unknown) };
            let again = "UPDATE record SET state = 'waiting', next_at = 0 WHERE message = ?1 AND state = 'refused'";
            if db.execute(again, [seq])? > 0 {
                db.execute("UPDATE message SET stage = 'delivered', marks = ?2 WHERE seq = ?1 AND stage = 'settled'", params![seq, names(Fate::UnderWay)])?;
                return Ok(Retry::Record);
            }
            let anew = "UPDATE message SET stage = CASE WHEN lane IS NULL THEN 'accepted' WHEN attachments = '[]' THEN 'admitted' ELSE 'fetched' END,
                          paste = '', nonce = '', verdict = '', cause = '', held = '', marks = ?2, changed_at = ?3
                        WHERE seq = ?1 AND body <> '' AND cause <> 'unreadable' AND (stage = 'dropped' OR verdict = 'unsure')";
            if db.execute(anew, params![seq, names(Fate::UnderWay), now.as_millisecond()])? > 0 {
                return Ok(Retry::Delivery);
            }
            let hurried = "UPDATE record SET next_at = 0 WHERE message = ?1 AND state IN ('waiting', 'posting')";
            let hurried = db.execute(hurried, [seq])? > 0;
            // The daemon notices another process by what it changes: without a change its pane would not be looked at.
            let seen = "UPDATE message SET changed_at = ?2 WHERE seq = ?1 AND stage NOT IN ('settled', 'refused', 'dropped', 'delivered')";
            Ok(match db.execute(seen, params![seq, now.as_millisecond()])? {
                0 if hurried => Retry::Record,
                0 => Retry::Nothing,
                _ => Retry::UnderWay,
            })
        })
    }

    /// Drops a message that has not been delivered, its unwritten record included; answers whether there was one to drop.
    ///
    /// What is being typed at this moment cannot be dropped: its sender would be told that it did not arrive.
    pub fn drop_message(&self, which: &str, now: Timestamp) -> Pending<bool> {
        let which = which.to_owned();
        self.news_from(move |db| {
            let Some(seq) = find(db, &which)? else { return Ok(false) };
            let sql = format!(
                "UPDATE message SET stage = 'dropped', cause = 'dropped', held = '', changed_at = ?2, marks = ?3
                 WHERE seq = ?1 AND {NOT_TYPED}"
            );
            let done = db.execute(&sql, params![seq, now.as_millisecond(), names(Fate::Failed)])? > 0;
            if done {
                notices::withdraw_held(db, seq)?;
                notices::add(db, seq, &dropped(), now)?;
                db.execute("DELETE FROM record WHERE message = ?1 AND state = 'waiting'", [seq])?;
            }
            Ok(done)
        })
    }
}

fn find(db: &Connection, which: &str) -> rusqlite::Result<Option<i64>> {
    let seq = which.parse::<i64>().unwrap_or(-1);
    db.query_row("SELECT seq FROM message WHERE id = ?1 OR seq = ?2", params![which, seq], |row| row.get(0)).optional()
}

fn line(row: &rusqlite::Row<'_>) -> rusqlite::Result<Line> {
    let (cause, held): (String, String) = (row.get(4)?, row.get(5)?);
    Ok(Line {
        seq: row.get(0)?,
        id: row.get(1)?,
        work_item: row.get(2)?,
        stage: row.get(3)?,
        cause: if held.is_empty() { cause } else { format!("held: {held}") },
        verdict: row.get(6)?,
        arrived_at: moment(row.get(7)?).unwrap_or_default(),
    })
}
