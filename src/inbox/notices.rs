//! Notices and marks: what the sender still has to be shown.
//!
//! Owns the table `notice` and the marks of a message. A notice is said at most once: a crash between saying it and
//! knowing so leaves it unsaid rather than said twice. It must not know how anything is shown (`slack::feedback`).

use std::collections::BTreeSet;

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::messages::moment;
use super::{Inbox, Pending, from_json, to_json};
use crate::core::feedback::{Mark, Notice};
use crate::core::message::{Message, MessageId, Person, Place, Platform};

/// Marks that have to change.
#[derive(Debug, Clone)]
pub struct Marking {
    /// The message's place in the order of arrival.
    pub seq: i64,
    /// Where it is.
    pub place: Place,
    /// What it carries.
    pub shown: BTreeSet<Mark>,
    /// What it should carry.
    pub wanted: BTreeSet<Mark>,
}

/// A notice that is due.
#[derive(Debug, Clone)]
pub struct Due {
    /// The message's place in the order of arrival.
    pub seq: i64,
    /// The message's identity.
    pub id: MessageId,
    /// What it is about.
    pub key: String,
    /// The sentences.
    pub text: String,
    /// Where.
    pub place: Place,
    /// To whom.
    pub author: Person,
}

impl Inbox {
    /// The next message of a platform whose marks are wrong, and when to look again if there is none.
    pub fn marking(&self, platform: Platform, now: Timestamp) -> Pending<(Option<Marking>, Option<Timestamp>)> {
        self.read(move |db| {
            let sql = "SELECT seq, body, marks, marks_shown, marks_next FROM message INDEXED BY message_marks
                       WHERE platform = ?1 AND marks <> marks_shown ORDER BY marks_next, seq LIMIT 1";
            let found = db.prepare_cached(sql)?.query_row([platform.name()], |row| {
                let next: i64 = row.get(4)?;
                if next > now.as_millisecond() {
                    return Ok((None, moment(next)));
                }
                let message: Message = from_json(1, row.get_ref(1)?.as_str()?)?;
                let (wanted, shown) = (marks(row.get_ref(2)?.as_str()?), marks(row.get_ref(3)?.as_str()?));
                Ok((Some(Marking { seq: row.get(0)?, place: message.place, shown, wanted }), None))
            });
            Ok(found.optional()?.unwrap_or_default())
        })
    }

    /// The message carries these marks now.
    pub fn marked(&self, seq: i64, shown: &BTreeSet<Mark>) -> Pending<()> {
        let shown = shown.iter().map(|mark| mark.name()).collect::<Vec<_>>().join(",");
        self.write(move |db| {
            db.prepare_cached("UPDATE message SET marks_shown = ?2, marks_next = 0 WHERE seq = ?1")?
                .execute(params![seq, shown])?;
            Ok(())
        })
    }

    /// The marks could not be changed: look again then. Marks that can never be shown are given up.
    pub fn marks_postponed(&self, seq: i64, until: Option<Timestamp>) -> Pending<()> {
        self.write(move |db| {
            match until {
                Some(until) => db.execute(
                    "UPDATE message SET marks_next = ?2 WHERE seq = ?1",
                    params![seq, until.as_millisecond()],
                )?,
                None => db.execute("UPDATE message SET marks_shown = marks WHERE seq = ?1", [seq])?,
            };
            Ok(())
        })
    }

    /// Takes the next notice of a platform that is due; it counts as being said from here on.
    pub fn take_notice(&self, platform: Platform, now: Timestamp) -> Pending<(Option<Due>, Option<Timestamp>)> {
        self.write(move |db| {
            let sql = "SELECT message, key, text, due, place, (SELECT id FROM message WHERE seq = notice.message)
                       FROM notice INDEXED BY notice_open WHERE platform = ?1 AND state = 'due' ORDER BY due LIMIT 1";
            let found = db.prepare_cached(sql)?.query_row([platform.name()], |row| {
                let (place, author): (Place, Person) = from_json(4, row.get_ref(4)?.as_str()?)?;
                let id = MessageId::stored(row.get::<_, String>(5)?);
                Ok((
                    row.get::<_, i64>(3)?,
                    Due { seq: row.get(0)?, id, key: row.get(1)?, text: row.get(2)?, place, author },
                ))
            });
            let Some((due, notice)) = found.optional()? else { return Ok((None, None)) };
            if due > now.as_millisecond() {
                return Ok((None, moment(due)));
            }
            set_state(db, notice.seq, &notice.key, "saying")?;
            Ok((Some(notice), None))
        })
    }

    /// It was said.
    pub fn notice_said(&self, seq: i64, key: String) -> Pending<()> {
        self.write(move |db| set_state(db, seq, &key, "said"))
    }

    /// It was not said: again then, or never.
    pub fn notice_postponed(&self, seq: i64, key: String, until: Option<Timestamp>) -> Pending<()> {
        self.write(move |db| {
            let Some(until) = until else { return set_state(db, seq, &key, "failed") };
            db.execute(
                "UPDATE notice SET state = 'due', due = ?3 WHERE message = ?1 AND key = ?2",
                params![seq, key, until.as_millisecond()],
            )?;
            Ok(())
        })
    }
}

/// Adds a notice; the same key is told once a message. A hold is told only when it lasts; one that ended untold and began
/// again lasts from then.
pub(super) fn add(db: &Connection, seq: i64, notice: &Notice, due: Timestamp) -> rusqlite::Result<()> {
    const LASTS: i64 = 5_000;
    let wait = if notice.key.starts_with("held:") { LASTS } else { 0 };
    let body = db
        .prepare_cached("SELECT body FROM message WHERE seq = ?1")?
        .query_row([seq], |row| from_json::<Message>(0, row.get_ref(0)?.as_str()?));
    let Some(message) = body.optional()? else { return Ok(()) };
    let place = to_json(&(&message.place, &message.author))?;
    db.prepare_cached(
        "INSERT INTO notice (message, key, text, place, due) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (message, key) DO UPDATE SET state = 'due', text = excluded.text, due = excluded.due WHERE state = 'withdrawn'",
    )?
    .execute(params![seq, notice.key, notice.text, place, due.as_millisecond() + wait])?;
    Ok(())
}

/// A hold that ended before it was told is not told.
pub(super) fn withdraw_held(db: &Connection, seq: i64) -> rusqlite::Result<()> {
    let sql = "UPDATE notice SET state = 'withdrawn' WHERE message = ?1 AND state = 'due' AND key GLOB 'held:*'";
    db.prepare_cached(sql)?.execute([seq])?;
    Ok(())
}

fn set_state(db: &Connection, seq: i64, key: &str, state: &str) -> rusqlite::Result<()> {
    let sql = "UPDATE notice SET state = ?3 WHERE message = ?1 AND key = ?2";
    db.prepare_cached(sql)?.execute(params![seq, key, state])?;
    Ok(())
}

fn marks(stored: &str) -> BTreeSet<Mark> {
    stored.split(',').filter_map(Mark::of_name).collect()
}
