//! Messages that add to an earlier one: what is known of that one, and what its deletion takes along.
//!
//! Owns finding a message's followers by their identities, `<id>+…`. It must not know how a platform tells of an edit.

use jiff::Timestamp;
use rusqlite::{OptionalExtension as _, params};

use super::messages::NOT_TYPED;
use super::{Inbox, Pending, notices};
use crate::core::message::MessageId;

/// A message and all that follows it, its deletion aside: `+` is followed by `,` in the order of identities.
const FAMILY: &str = "(id = ?1 OR (id > ?1 || '+' AND id < ?1 || ',' AND id <> ?1 || '+deleted'))";

impl Inbox {
    /// The words of a message that is on its way to the agent, or was: as they read after the edits that arrived before
    /// `seq`. `None` when there is no such message, or it was refused or dropped.
    pub fn words_before(&self, of: MessageId, seq: i64) -> Pending<Option<String>> {
        self.read(move |db| {
            let known = "SELECT 1 FROM message WHERE id = ?1 AND stage NOT IN ('refused', 'dropped')";
            if db.prepare_cached(known)?.query_row([of.as_str()], |_| Ok(())).optional()?.is_none() {
                return Ok(None);
            }
            let words = "SELECT json_extract(body, '$.text') FROM message
                         WHERE (id = ?1 OR (id > ?1 || '+edited/' AND id < ?1 || '+edited0')) AND seq < ?2
                           AND stage NOT IN ('refused', 'dropped') ORDER BY seq DESC LIMIT 1";
            db.prepare_cached(words)?.query_row(params![of.as_str(), seq], |row| row.get(0)).optional()
        })
    }

    /// The message was deleted where it was said: whatever of it was not typed yet is dropped, its unwritten record
    /// included, and nobody is told, for it was their wish. A message that is gone carries no marks.
    pub fn withdraw(&self, of: MessageId, now: Timestamp) -> Pending<()> {
        self.write_and_wake(move |db| {
            let of = of.as_str();
            let drop = format!(
                "UPDATE message SET stage = 'dropped', cause = 'deleted', held = '', changed_at = ?2
                 WHERE {FAMILY} AND {NOT_TYPED} RETURNING seq"
            );
            let dropped: Vec<i64> = db
                .prepare_cached(&drop)?
                .query_map(params![of, now.as_millisecond()], |row| row.get(0))?
                .collect::<Result<_, _>>()?;
            for seq in dropped {
                notices::withdraw_held(db, seq)?;
                db.execute("DELETE FROM record WHERE message = ?1 AND state = 'waiting'", [seq])?;
            }
            db.execute(&format!("UPDATE message SET marks = marks_shown WHERE {FAMILY}"), [of])?;
            db.execute(
                &format!("DELETE FROM transcript WHERE message IN (SELECT seq FROM message WHERE {FAMILY})"),
                [of],
            )?;
            Ok(())
        })
    }
}
