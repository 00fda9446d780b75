//! Transcripts that were not ready when their message had to go.
//!
//! Owns the table `transcript`: which file is looked at again, and when. It must not know how a platform is asked.

use jiff::Timestamp;
use rusqlite::{OptionalExtension as _, params};

use super::messages::{Row, SELECT_ROW, moment, row};
use super::{Inbox, Pending, to_json};
use crate::core::attachment::Attachment;
use crate::core::message::Message;

/// A transcript that is waited for, and is looked for now.
#[derive(Debug, Clone)]
pub struct Awaited {
    /// The message with the clip.
    pub row: Row,
    /// The platform's id of the clip.
    pub file: String,
    /// How often it was looked for.
    pub tries: u32,
    /// Since when.
    pub since: Timestamp,
}

impl Inbox {
    /// From now on the transcripts of these files are waited for; the first look is at `due`.
    pub fn await_transcripts(&self, seq: i64, files: Vec<String>, due: Timestamp, now: Timestamp) -> Pending<()> {
        self.write(move |db| {
            let mut insert = db.prepare_cached(
                "INSERT INTO transcript (message, file, due, since) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
            )?;
            for file in &files {
                insert.execute(params![seq, file, due.as_millisecond(), now.as_millisecond()])?;
            }
            Ok(())
        })
    }

    /// The platform said that something about a file changed: durable, because it says so once.
    pub fn file_changed(&self, file: String, now: Timestamp) -> Pending<()> {
        self.news_from(move |db| {
            db.prepare_cached("UPDATE transcript SET due = ?2 WHERE file = ?1")?
                .execute(params![file, now.as_millisecond()])?;
            Ok(())
        })
    }

    /// The transcript that is looked for next, if it is time, and else when that will be. One whose message cannot be read
    /// any more is given up.
    pub fn next_transcript(&self, now: Timestamp) -> Pending<(Option<Awaited>, Option<Timestamp>)> {
        self.write(move |db| {
            let sql = "SELECT seq, file, due, tries, since FROM transcript JOIN message ON seq = message
                       WHERE stage IN ('fetched', 'recorded', 'delivered', 'settled') ORDER BY due LIMIT 1";
            let found = db.prepare_cached(sql)?.query_row([], |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?, row.get(2)?, row.get(3)?, row.get(4)?))
            });
            let Some((seq, file, due, tries, since)) = found.optional()? else { return Ok((None, None)) };
            if due > now.as_millisecond() {
                return Ok((None, moment(due)));
            }
            match db.prepare_cached(&format!("{SELECT_ROW} WHERE seq = ?1"))?.query_row([seq], row) {
                Ok(row) => Ok((Some(Awaited { row, file, tries, since: moment(since).unwrap_or(now) }), None)),
                Err(_) => {
                    db.execute("DELETE FROM transcript WHERE message = ?1", [seq])?;
                    Ok((None, Some(now)))
                }
            }
        })
    }

    /// Not ready, or Slack could not be asked: looked for again then.
    pub fn transcript_postponed(&self, seq: i64, file: String, due: Timestamp) -> Pending<()> {
        self.write(move |db| {
            db.execute(
                "UPDATE transcript SET due = ?3, tries = tries + 1 WHERE message = ?1 AND file = ?2",
                params![seq, file, due.as_millisecond()],
            )?;
            Ok(())
        })
    }

    /// There will be none.
    pub fn transcript_given_up(&self, seq: i64, file: String) -> Pending<()> {
        self.write(move |db| forget(db, seq, &file))
    }

    /// It is there: a message of its own brings it, in the lane of the message with the clip.
    pub fn transcript_came(&self, seq: i64, message: Message, clip: Attachment, now: Timestamp) -> Pending<()> {
        self.write_and_wake(move |db| {
            db.execute(
                "INSERT INTO message (id, lane, stage, body, attachments, events, arrived_at, changed_at)
                 SELECT ?2, lane, 'fetched', ?3, ?4, '', ?5, ?5 FROM message
                 WHERE seq = ?1 AND stage NOT IN ('refused', 'dropped') ON CONFLICT (id) DO NOTHING",
                params![seq, message.id.as_str(), to_json(&message)?, to_json(&[&clip])?, now.as_millisecond()],
            )?;
            forget(db, seq, &clip.id)
        })
    }
}

fn forget(db: &rusqlite::Connection, seq: i64, file: &str) -> rusqlite::Result<()> {
    db.execute("DELETE FROM transcript WHERE message = ?1 AND file = ?2", params![seq, file])?;
    Ok(())
}
