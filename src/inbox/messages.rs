//! Messages and their stages.
//!
//! Owns the one table in which every message is from its arrival to its end, the merging of twins, and the order of a
//! lane. It must not know what happens between two stages.

use std::collections::BTreeSet;
use std::fmt;

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::{Inbox, Need, Pending, Ring, from_json, notices, records, to_json};
use crate::core::attachment::Attachment;
use crate::core::feedback::{Fate, Mark, Notice, marks};
use crate::core::message::{Message, MessageId};
use crate::core::session::{Conversation, Session};
use crate::core::work_item::WorkItem;

/// How far a message is. Each stage is committed before the next begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Stored, and acknowledged to Slack.
    Accepted,
    /// Not acted on; its words are erased.
    Refused,
    /// Its author may do its act; it is in its lane.
    Admitted,
    /// A late file is still downloading.
    Fetching,
    /// Its files are saved, or named with a reason.
    Fetched,
    /// Its record is in the outbox or on the ticket.
    Recorded,
    /// Its delivery has a verdict; the record is still in the outbox.
    Delivered,
    /// Both have ended.
    Settled,
    /// The operator dropped it.
    Dropped,
}

const STAGES: [Stage; 9] = [
    Stage::Accepted,
    Stage::Refused,
    Stage::Admitted,
    Stage::Fetching,
    Stage::Fetched,
    Stage::Recorded,
    Stage::Delivered,
    Stage::Settled,
    Stage::Dropped,
];

impl Stage {
    /// The name in the store and in `usher inbox`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Refused => "refused",
            Self::Admitted => "admitted",
            Self::Fetching => "fetching",
            Self::Fetched => "fetched",
            Self::Recorded => "recorded",
            Self::Delivered => "delivered",
            Self::Settled => "settled",
            Self::Dropped => "dropped",
        }
    }

    fn of_name(name: &str) -> Self {
        STAGES.into_iter().find(|stage| stage.name() == name).unwrap_or(Self::Dropped)
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How far the one step is that cannot be rolled back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paste {
    /// Nothing was typed.
    NotYet,
    /// The text may or may not be in the composer.
    Pasting,
    /// The text was seen in the composer.
    Pasted,
    /// The submit key was pressed.
    Submitted,
}

impl Paste {
    const fn name(self) -> &'static str {
        match self {
            Self::NotYet => "",
            Self::Pasting => "pasting",
            Self::Pasted => "pasted",
            Self::Submitted => "submitted",
        }
    }

    fn of_name(name: &str) -> Self {
        match name {
            "pasting" => Self::Pasting,
            "pasted" => Self::Pasted,
            "submitted" => Self::Submitted,
            _ => Self::NotYet,
        }
    }
}

/// How a delivery ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Something proves that the agent took it.
    Submitted,
    /// Nothing does.
    Unsure,
    /// There was nothing to deliver: the ticket has the note.
    Noted,
}

impl Verdict {
    /// The name in the store.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Submitted => "submitted",
            Self::Unsure => "unsure",
            Self::Noted => "noted",
        }
    }
}

/// However many copies come, a message waits no longer than this for the next one: a person is waiting for its effect.
const LONGEST_WAIT_MS: i64 = 5_000;

/// What became of a copy that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Put {
    /// The first copy of its message.
    New,
    /// It completed a message that had not been looked at yet.
    Merged,
    /// Known already.
    Duplicate,
}

/// A copy of a message, as it arrived.
#[derive(Debug, Clone)]
pub struct Arrival {
    /// The message.
    pub message: Message,
    /// The platform's id of the event that brought it, kept for the curious; it decides nothing.
    pub event: String,
    /// The copy may lack the files that its twin brings: it is looked at when the twin came, or then.
    pub twin_until: Option<Timestamp>,
    /// When it arrived.
    pub now: Timestamp,
}

/// A message that waits for admission.
#[derive(Debug, Clone)]
pub struct Newcomer {
    /// Its place in the order of arrival.
    pub seq: i64,
    /// The message.
    pub message: Message,
    /// Its conversation and work item, if it is bound.
    pub bound: Option<(WorkItem, Conversation)>,
    /// See [`Arrival::twin_until`].
    pub twin_until: Option<Timestamp>,
}

/// A message in a lane.
#[derive(Debug, Clone)]
pub struct Row {
    /// Its place in the order of arrival.
    pub seq: i64,
    /// The message.
    pub message: Message,
    /// Its work item.
    pub work_item: WorkItem,
    /// How far it is.
    pub stage: Stage,
    /// Its files, once fetched.
    pub attachments: Vec<Attachment>,
    /// The nonce of its frame, once drawn.
    pub nonce: String,
    /// How far the paste is.
    pub paste: Paste,
    /// Why it is held, empty while it is not.
    pub held: String,
    /// When it arrived.
    pub arrived_at: Timestamp,
    /// The pane that it was, or may have been, typed into.
    pub typed_into: Option<Session>,
}

/// How many messages are forgotten in one commit, which everything else waits for.
pub const PRUNED_AT_ONCE: usize = 500;

impl Inbox {
    /// Stores a copy durably. Enqueued at once, in the caller's order.
    pub fn put(&self, arrival: Arrival) -> Pending<Put> {
        self.enqueue(Need::Durable, Ring::Changes, move |db| put(db, &arrival))
    }

    /// Stores what a second look at the platform found, and stops waiting for the twin.
    pub fn complete(&self, id: MessageId, found: Option<Message>, now: Timestamp) -> Pending<()> {
        self.write_and_wake(move |db| {
            if let Some(message) = found {
                merge(db, &message, "", now)?;
            }
            db.execute("UPDATE message SET twin_until = 0 WHERE id = ?1", [id.as_str()])?;
            Ok(())
        })
    }

    /// Messages that wait for admission, in order of arrival.
    pub fn newcomers(&self) -> Pending<Vec<Newcomer>> {
        self.read(newcomers)
    }

    /// How many messages from GitHub a work item took that were said after the one moment and up to the other.
    pub fn taken_from_github(&self, work_item: &WorkItem, after: Timestamp, until: Timestamp) -> Pending<u64> {
        let lane = work_item.to_string();
        self.read(move |db| {
            let sql = "SELECT count(*) FROM message INDEXED BY message_said
                       WHERE platform = 'github' AND said_at > ?2 AND said_at <= ?3 AND lane = ?1 AND stage <> 'refused'";
            let span = params![lane, after.as_millisecond(), until.as_millisecond()];
            let taken: i64 = db.prepare_cached(sql)?.query_row(span, |row| row.get(0))?;
            Ok(u64::try_from(taken).unwrap_or_default())
        })
    }

    /// Puts a message into its lane.
    pub fn admit(&self, seq: i64, work_item: WorkItem, permalink: Option<String>, now: Timestamp) -> Pending<()> {
        self.write_and_wake(move |db| {
            db.prepare_cached(
                "UPDATE message SET stage = 'admitted', lane = ?2, changed_at = ?3,
                   marks = CASE WHEN json_type(body, '$.supplement.deleted') IS NULL THEN ?4 ELSE '' END,
                   body = CASE WHEN ?5 IS NULL THEN body ELSE json_set(body, '$.permalink', ?5) END
                 WHERE seq = ?1 AND stage = 'accepted'",
            )?
            .execute(params![
                seq,
                work_item.to_string(),
                now.as_millisecond(),
                names(Fate::UnderWay),
                permalink
            ])?;
            Ok(())
        })
    }

    /// Ends a message that is not acted on: its words are erased, its identity and the reason stay. Where it is stays
    /// too when it may carry marks, which have to be changed or taken off.
    pub fn refuse(&self, seq: i64, code: &'static str, told: Option<Notice>, now: Timestamp) -> Pending<()> {
        self.write_and_wake(move |db| {
            let fate = if told.is_some() { Fate::Failed } else { Fate::Silent };
            if let Some(notice) = &told {
                notices::add(db, seq, notice, now)?;
            }
            db.prepare_cached(
                "UPDATE message SET stage = 'refused', cause = ?2, changed_at = ?3, marks = ?4,
                   body = CASE WHEN ?4 = '' AND stage = 'accepted' THEN ''
                     ELSE json_set(body, '$.text', '', '$.quotes', json('[]'), '$.attachments', json('[]')) END
                 WHERE seq = ?1 AND stage <> 'dropped'",
            )?
            .execute(params![seq, code, now.as_millisecond(), names(fate)])?;
            Ok(())
        })
    }

    /// Lanes with something to do.
    pub fn open_lanes(&self) -> Pending<BTreeSet<WorkItem>> {
        self.read(|db| {
            let mut query = db.prepare_cached(
                "SELECT DISTINCT lane FROM message INDEXED BY message_open WHERE stage IN ('admitted', 'fetched', 'recorded')",
            )?;
            let lanes = query.query_map([], |row| row.get::<_, String>(0))?;
            lanes.filter_map(|lane| lane.map(|lane| lane.parse().ok()).transpose()).collect()
        })
    }

    /// The first message of a lane that has not ended.
    pub fn first_in_lane(&self, lane: &WorkItem) -> Pending<Option<Row>> {
        let lane = lane.to_string();
        self.read(move |db| {
            let sql = format!(
                "{SELECT_ROW} INDEXED BY message_open WHERE lane = ?1 AND stage IN ('admitted', 'fetched', 'recorded') ORDER BY seq LIMIT 1"
            );
            db.prepare_cached(&sql)?.query_row([lane], row).optional()
        })
    }

    /// The files are saved or named; those still downloading become messages of their own in the same lane.
    pub fn fetched(
        &self,
        seq: i64,
        attachments: Vec<Attachment>,
        late: Vec<Message>,
        told: Option<Notice>,
        now: Timestamp,
    ) -> Pending<()> {
        self.write_and_wake(move |db| {
            let fetched = db.execute(
                "UPDATE message SET stage = 'fetched', attachments = ?2, changed_at = ?3 WHERE seq = ?1 AND stage = 'admitted'",
                params![seq, to_json(&attachments)?, now.as_millisecond()],
            )?;
            if fetched == 0 {
                return Ok(());
            }
            if let Some(notice) = &told {
                notices::add(db, seq, notice, now)?;
            }
            for message in &late {
                db.execute(
                    "INSERT INTO message (id, lane, stage, body, events, arrived_at, changed_at)
                     SELECT ?2, lane, 'fetching', ?3, '', ?4, ?4 FROM message WHERE seq = ?1 ON CONFLICT (id) DO NOTHING",
                    params![seq, message.id.as_str(), to_json(message)?, now.as_millisecond()],
                )?;
            }
            Ok(())
        })
    }

    /// Late files that are still downloading.
    pub fn late_files(&self) -> Pending<Vec<Row>> {
        self.read(|db| {
            let sql = format!("{SELECT_ROW} INDEXED BY message_late WHERE stage = 'fetching' ORDER BY seq");
            db.prepare_cached(&sql)?.query_map([], row)?.collect()
        })
    }

    /// A late file has ended one way or the other: its message enters the lane.
    pub fn late_file_fetched(
        &self,
        seq: i64,
        attachments: Vec<Attachment>,
        told: Option<Notice>,
        now: Timestamp,
    ) -> Pending<()> {
        self.write_and_wake(move |db| {
            let fetched = db.execute(
                "UPDATE message SET stage = 'fetched', attachments = ?2, changed_at = ?3 WHERE seq = ?1 AND stage = 'fetching'",
                params![seq, to_json(&attachments)?, now.as_millisecond()],
            )?;
            if let Some(notice) = told.as_ref().filter(|_| fetched == 1) {
                notices::add(db, seq, notice, now)?;
            }
            Ok(())
        })
    }

    /// The record is in the outbox. A message that was dropped meanwhile gets none.
    pub fn recorded(
        &self,
        seq: i64,
        work_item: &WorkItem,
        parts: Vec<String>,
        attachments: Vec<Attachment>,
        now: Timestamp,
    ) -> Pending<()> {
        let work_item = work_item.to_string();
        self.write_and_wake(move |db| {
            let recorded = db
                .prepare_cached(
                    "UPDATE message SET stage = 'recorded', attachments = ?2, changed_at = ?3 WHERE seq = ?1 AND stage IN ('admitted', 'fetched')",
                )?
                .execute(params![seq, to_json(&attachments)?, now.as_millisecond()])?;
            if recorded == 0 { Ok(()) } else { records::add(db, seq, &work_item, &parts) }
        })
    }

    /// What was said on the ticket itself needs no record there.
    pub fn needs_no_record(&self, seq: i64, attachments: Vec<Attachment>, now: Timestamp) -> Pending<()> {
        self.write(move |db| {
            db.prepare_cached(
                "UPDATE message SET stage = 'recorded', attachments = ?2, changed_at = ?3
                 WHERE seq = ?1 AND stage IN ('admitted', 'fetched')",
            )?
            .execute(params![seq, to_json(&attachments)?, now.as_millisecond()])?;
            Ok(())
        })
    }

    /// The message waits; said once per cause. Another cause has ended then.
    pub fn hold(&self, seq: i64, cause: String, told: Option<Notice>, now: Timestamp) -> Pending<()> {
        self.write_and_wake(move |db| {
            let held = db.execute(
                "UPDATE message SET held = ?2, held_since = CASE WHEN held = '' THEN ?3 ELSE held_since END, changed_at = ?3, marks = ?4
                 WHERE seq = ?1 AND stage = 'recorded'",
                params![seq, cause, now.as_millisecond(), names(Fate::Held)],
            )?;
            if held == 0 {
                return Ok(());
            }
            notices::withdraw_held(db, seq)?;
            if let Some(notice) = &told {
                notices::add(db, seq, notice, now)?;
            }
            Ok(())
        })
    }

    /// About to type: survives a power cut, because typing cannot be taken back. Answers `false`, and nothing may be
    /// typed, when the operator dropped the message meanwhile. `into`: the pane, because the work item may be bound to
    /// another one by the time an interrupted paste is looked at again.
    pub fn pasting(&self, seq: i64, nonce: String, into: Session, now: Timestamp) -> Pending<bool> {
        self.enqueue(Need::Durable, Ring::Changes, move |db| {
            let still = db
                .prepare_cached(
                    "UPDATE message SET paste = 'pasting', nonce = ?2, typed_into = ?5, held = '', changed_at = ?3, marks = ?4
                     WHERE seq = ?1 AND stage = 'recorded'",
                )?
                .execute(params![seq, nonce, now.as_millisecond(), names(Fate::UnderWay), to_json(&into)?])?;
            if still == 1 {
                notices::withdraw_held(db, seq)?;
            }
            Ok(still == 1)
        })
    }

    /// A step of the paste is behind.
    pub fn pasted(&self, seq: i64, paste: Paste, now: Timestamp) -> Pending<()> {
        self.write(move |db| {
            db.prepare_cached("UPDATE message SET paste = ?2, changed_at = ?3 WHERE seq = ?1")?.execute(params![
                seq,
                paste.name(),
                now.as_millisecond()
            ])?;
            Ok(())
        })
    }

    /// The delivery has its verdict; the message is settled when its record has ended too.
    pub fn delivered(
        &self,
        seq: i64,
        verdict: Verdict,
        why: String,
        told: Option<Notice>,
        now: Timestamp,
    ) -> Pending<()> {
        let under_way = if verdict == Verdict::Noted { Fate::Silent } else { Fate::UnderWay };
        self.write_and_wake(move |db| {
            db.prepare_cached(
                "UPDATE message SET stage = 'delivered', verdict = ?2, cause = ?3, held = '', changed_at = ?4, marks = ?5
                 WHERE seq = ?1 AND stage = 'recorded'",
            )?
            .execute(params![seq, verdict.name(), why, now.as_millisecond(), names(under_way)])?;
            notices::withdraw_held(db, seq)?;
            if let Some(notice) = &told {
                notices::add(db, seq, notice, now)?;
            }
            settle(db, seq, now)
        })
    }

    /// Whether the message may still go on; the operator may have dropped it meanwhile.
    pub fn is_open(&self, seq: i64) -> Pending<bool> {
        self.read(move |db| {
            let sql = "SELECT stage IN ('admitted', 'fetching', 'fetched', 'recorded') FROM message WHERE seq = ?1";
            Ok(db.prepare_cached(sql)?.query_row([seq], |row| row.get(0)).optional()?.unwrap_or(false))
        })
    }

    /// Forgets some of what ended long ago: refusals after a week, everything else after a month. Answers how many; a
    /// full [`PRUNED_AT_ONCE`] means that there may be more.
    pub fn prune(&self, now: Timestamp) -> Pending<usize> {
        const DAY: i64 = 24 * 60 * 60 * 1000;
        self.write(move |db| {
            db.execute(
                "DELETE FROM message WHERE seq IN (
                   SELECT seq FROM message WHERE stage = 'refused' AND changed_at < ?1 - 7 * ?2
                   UNION ALL SELECT seq FROM message WHERE stage IN ('settled', 'dropped') AND changed_at < ?1 - 30 * ?2 LIMIT ?3)",
                params![now.as_millisecond(), DAY, i64::try_from(PRUNED_AT_ONCE).unwrap_or(i64::MAX)],
            )
        })
    }

    /// Gives up every open message that cannot be read, so that one damaged row stops neither its lane nor the others;
    /// `usher inbox list` shows it. Only a damaged database has any, so this is asked once, at start.
    pub fn set_aside_unreadable(&self, now: Timestamp) -> Pending<Vec<MessageId>> {
        self.write(move |db| {
            let unreadable = unreadable(db)?;
            for (seq, _) in &unreadable {
                db.execute(
                    "UPDATE message SET stage = 'dropped', cause = 'unreadable', held = '', changed_at = ?2, marks = marks_shown WHERE seq = ?1",
                    params![seq, now.as_millisecond()],
                )?;
            }
            Ok(unreadable.into_iter().map(|(_, id)| id).collect())
        })
    }
}

fn unreadable(db: &Connection) -> rusqlite::Result<Vec<(i64, MessageId)>> {
    let open = "stage IN ('accepted', 'admitted', 'fetching', 'fetched', 'recorded') OR marks <> marks_shown";
    let sql = format!("{SELECT_ROW} WHERE {open} ORDER BY seq");
    let mut query = db.prepare(&sql)?;
    let mut rows = query.query([])?;
    let mut found = Vec::new();
    while let Some(next) = rows.next()? {
        let in_a_lane = next.get_ref(2)?.as_str_or_null()?.is_some();
        let readable = if in_a_lane { row(next).is_ok() } else { message(next).is_ok() };
        if !readable {
            found.push((next.get(0)?, MessageId::stored(next.get::<_, String>(9)?)));
        }
    }
    Ok(found)
}

/// Settles a delivered message whose records have all ended, and gives it its last marks.
pub(super) fn settle(db: &Connection, seq: i64, now: Timestamp) -> rusqlite::Result<()> {
    let mut query = db.prepare_cached(
        "SELECT verdict, (SELECT count(*) FROM record WHERE message = ?1 AND state IN ('waiting', 'posting')),
                (SELECT count(*) FROM record WHERE message = ?1 AND state = 'refused') FROM message WHERE seq = ?1 AND stage = 'delivered'",
    )?;
    let found =
        query.query_row([seq], |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?)));
    let Some((verdict, 0, refused)) = found.optional()? else { return Ok(()) };
    let fate = match (verdict.as_str(), refused) {
        ("unsure", _) => Fate::Unsure,
        // What it is about is gone: there is nothing to put a mark on.
        ("noted", _) => Fate::Silent,
        (_, 0) => Fate::Done,
        _ => Fate::Failed,
    };
    db.prepare_cached("UPDATE message SET stage = 'settled', changed_at = ?2, marks = ?3 WHERE seq = ?1")?
        .execute(params![seq, now.as_millisecond(), names(fate)])?;
    Ok(())
}

/// The stored form of a fate's marks.
pub(super) fn names(fate: Fate) -> String {
    marks(fate).into_iter().map(Mark::name).collect::<Vec<_>>().join(",")
}

fn put(db: &Connection, arrival: &Arrival) -> rusqlite::Result<Put> {
    let until = arrival.twin_until.map_or(0, Timestamp::as_millisecond);
    let inserted = db
        .prepare_cached(
            "INSERT INTO message (id, stage, body, events, twin_until, arrived_at, changed_at, said_at)
             VALUES (?1, 'accepted', ?2, ?3, ?4, ?5, ?5, ?6) ON CONFLICT (id) DO NOTHING",
        )?
        .execute(params![
            arrival.message.id.as_str(),
            to_json(&arrival.message)?,
            arrival.event,
            until,
            arrival.now.as_millisecond(),
            arrival.message.sent_at.as_millisecond()
        ])?;
    if inserted == 1 {
        return Ok(Put::New);
    }
    let merged = merge(db, &arrival.message, &arrival.event, arrival.now)?;
    if merged {
        wait_on(db, &arrival.message.id, until)?;
    }
    Ok(if merged { Put::Merged } else { Put::Duplicate })
}

/// A whole copy ends the wait. One that may itself be followed by more prolongs it, for a while; a wait that has ended
/// does not begin again.
fn wait_on(db: &Connection, id: &MessageId, until: i64) -> rusqlite::Result<()> {
    let sql =
        "UPDATE message SET twin_until = CASE WHEN ?2 = 0 THEN 0 ELSE max(twin_until, min(?2, arrived_at + ?3)) END
               WHERE id = ?1 AND twin_until <> 0";
    db.prepare_cached(sql)?.execute(params![id.as_str(), until, LONGEST_WAIT_MS])?;
    Ok(())
}

/// Merges a further copy into a message that nobody has looked at yet. A retry of the same event adds nothing.
fn merge(db: &Connection, copy: &Message, event: &str, now: Timestamp) -> rusqlite::Result<bool> {
    let sql = "SELECT seq, body, events FROM message WHERE id = ?1 AND stage = 'accepted'";
    let found = db.prepare_cached(sql)?.query_row([copy.id.as_str()], |row| {
        Ok((row.get::<_, i64>(0)?, from_json::<Message>(1, row.get_ref(1)?.as_str()?)?, row.get::<_, String>(2)?))
    });
    let Some((seq, mut message, mut events)) = found.optional()? else { return Ok(false) };
    if !event.is_empty() && events.split(' ').any(|known| known == event) {
        return Ok(false);
    }
    message.merge(copy.clone());
    if !event.is_empty() {
        events = format!("{events} {event}").trim().to_owned();
    }
    db.prepare_cached("UPDATE message SET body = ?2, events = ?3, changed_at = ?4 WHERE seq = ?1")?
        .execute(params![seq, to_json(&message)?, events, now.as_millisecond()])?;
    Ok(true)
}

fn newcomers(db: &Connection) -> rusqlite::Result<Vec<Newcomer>> {
    let sql = "SELECT seq, body, twin_until FROM message INDEXED BY message_new WHERE stage = 'accepted' ORDER BY seq LIMIT 500";
    let mut query = db.prepare_cached(sql)?;
    let found = query.query_map([], |row| {
        let message: Message = from_json(1, row.get_ref(1)?.as_str()?)?;
        let bound = super::bindings::of_place(db, &message.place)?;
        Ok(Newcomer { seq: row.get(0)?, message, bound, twin_until: moment(row.get(2)?) })
    })?;
    found.collect()
}

/// Which messages can still be dropped: what is being typed at this moment cannot, what is stuck in the composer can.
pub(super) const NOT_TYPED: &str = "stage IN ('accepted', 'admitted', 'fetching', 'fetched', 'recorded')
  AND (paste = '' OR (paste IN ('pasting', 'pasted') AND held <> ''))";

pub(super) const SELECT_ROW: &str =
    "SELECT seq, body, lane, stage, attachments, nonce, paste, held, arrived_at, id, typed_into FROM message";

fn message(row: &rusqlite::Row<'_>) -> rusqlite::Result<Message> {
    from_json(1, row.get_ref(1)?.as_str()?)
}

pub(super) fn row(row: &rusqlite::Row<'_>) -> rusqlite::Result<Row> {
    Ok(Row {
        seq: row.get(0)?,
        message: message(row)?,
        work_item: row.get_ref(2)?.as_str()?.parse().map_err(|error| {
            rusqlite::Error::FromSqlConversionFailure(2, rusqlite::types::Type::Text, Box::new(error))
        })?,
        stage: Stage::of_name(row.get_ref(3)?.as_str()?),
        attachments: from_json(4, row.get_ref(4)?.as_str()?)?,
        nonce: row.get(5)?,
        paste: Paste::of_name(row.get_ref(6)?.as_str()?),
        held: row.get(7)?,
        arrived_at: moment(row.get(8)?).unwrap_or_default(),
        typed_into: from_json(10, row.get_ref(10)?.as_str()?)?,
    })
}

/// A stored time; 0 is none.
pub(super) fn moment(milliseconds: i64) -> Option<Timestamp> {
    (milliseconds != 0).then(|| Timestamp::from_millisecond(milliseconds).ok()).flatten()
}
