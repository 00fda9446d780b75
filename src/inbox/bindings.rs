//! Bindings: which pane and which conversations belong to a work item.
//!
//! Owns the tables `session` and `conversation`. The daemon reads them anew for every message, so what another process
//! binds is seen at once. It must not know whether a pane is alive.

use std::path::PathBuf;

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::messages::moment;
use super::{Inbox, Pending};
use crate::core::message::{GitHubPlace, Place};
use crate::core::session::{Binding, Conversation, Listen, Session};
use crate::core::work_item::WorkItem;

/// What `usher bind` found in its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bind {
    /// Bound; what was there for the same work item was replaced.
    Bound,
    /// The pane belongs to another work item.
    PaneTaken(WorkItem),
    /// The conversation belongs to another work item.
    ConversationTaken(WorkItem),
}

impl Inbox {
    /// Binds a work item to a pane, a conversation, or both, in one step or not at all.
    pub fn bind(
        &self,
        work_item: &WorkItem,
        session: Option<Session>,
        conversation: Option<Conversation>,
    ) -> Pending<Bind> {
        let item = work_item.clone();
        self.news_from(move |db| {
            if let Some(taken) =
                session.as_ref().map(|session| owner_of_pane(db, session, &item)).transpose()?.flatten()
            {
                return Ok(Bind::PaneTaken(taken));
            }
            if let Some(taken) =
                conversation.as_ref().map(|it| owner_of_conversation(db, it, &item)).transpose()?.flatten()
            {
                return Ok(Bind::ConversationTaken(taken));
            }
            if let Some(session) = &session {
                put_session(db, &item, session)?;
            }
            if let Some(conversation) = &conversation {
                put_conversation(db, &item, conversation)?;
            }
            Ok(Bind::Bound)
        })
    }

    /// Takes every binding of a work item away; answers whether there was one.
    pub fn unbind(&self, work_item: &WorkItem) -> Pending<bool> {
        let item = work_item.to_string();
        self.news_from(move |db| {
            let sessions = db.execute("DELETE FROM session WHERE work_item = ?1", [&item])?;
            let conversations = db.execute("DELETE FROM conversation WHERE work_item = ?1", [&item])?;
            Ok(sessions + conversations > 0)
        })
    }

    /// The pane of a work item.
    pub fn session(&self, work_item: &WorkItem) -> Pending<Option<Session>> {
        let item = work_item.to_string();
        self.read(move |db| session_of(db, &item))
    }

    /// Every bound conversation.
    pub fn conversations(&self) -> Pending<Vec<Conversation>> {
        self.read(|db| {
            let sql = "SELECT channel, thread, listen, since, read_to FROM conversation ORDER BY channel, thread";
            db.prepare_cached(sql)?.query_map([], |row| conversation(row, 0))?.collect()
        })
    }

    /// Everything that was said in a conversation up to this moment is in the inbox.
    pub fn read_to(&self, it: Conversation, moment: Timestamp) -> Pending<()> {
        self.write(move |db| {
            let sql = "UPDATE conversation SET read_to = ?3 WHERE channel = ?1 AND thread = ?2";
            db.prepare_cached(sql)?.execute(params![
                it.channel,
                it.thread.as_deref().unwrap_or_default(),
                moment.as_millisecond()
            ])?;
            Ok(())
        })
    }

    /// Every binding, by work item.
    pub fn bindings(&self) -> Pending<Vec<Binding>> {
        self.read(|db| {
            let sql = "SELECT work_item FROM session UNION SELECT work_item FROM conversation ORDER BY 1";
            let items: Vec<String> =
                db.prepare_cached(sql)?.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
            let bound = |item: String| {
                let Ok(work_item) = item.parse() else { return Ok(None) };
                Ok(Some(Binding {
                    work_item,
                    session: session_of(db, &item)?,
                    conversations: conversations_of(db, &item)?,
                }))
            };
            items.into_iter().filter_map(|item| bound(item).transpose()).collect()
        })
    }
}

/// The binding of the place where a message was said: its thread's, else its room's.
pub(super) fn of_place(db: &Connection, place: &Place) -> rusqlite::Result<Option<(WorkItem, Conversation)>> {
    let place = match place {
        Place::Slack(place) => place,
        Place::GitHub(place) => return of_item(db, place),
    };
    let sql = "SELECT work_item, channel, thread, listen, since, read_to FROM conversation
               WHERE channel = ?1 AND thread IN (?2, '') ORDER BY thread DESC LIMIT 1";
    let found = db.prepare_cached(sql)?.query_row(params![place.channel, place.thread_or_self()], |row| {
        Ok((row.get::<_, String>(0)?, conversation(row, 1)?))
    });
    Ok(found.optional()?.and_then(|(item, conversation)| Some((item.parse().ok()?, conversation))))
}

/// The ticket itself when anything is bound to it; a pull request without an agent of its own speaks to the first bound
/// issue that it closes.
fn of_item(db: &Connection, place: &GitHubPlace) -> rusqlite::Result<Option<(WorkItem, Conversation)>> {
    let sql = "SELECT EXISTS (SELECT 1 FROM session WHERE work_item = ?1) OR EXISTS (SELECT 1 FROM conversation WHERE work_item = ?1)";
    let mut query = db.prepare_cached(sql)?;
    for item in std::iter::once(&place.item).chain(&place.closes) {
        if query.query_row([item.to_string()], |row| row.get(0))? {
            let ticket = Conversation {
                channel: item.to_string(),
                thread: None,
                listen: Some(Listen::All),
                since: Timestamp::UNIX_EPOCH,
                read_to: Timestamp::UNIX_EPOCH,
            };
            return Ok(Some((item.clone(), ticket)));
        }
    }
    Ok(None)
}

fn owner_of_pane(db: &Connection, session: &Session, item: &WorkItem) -> rusqlite::Result<Option<WorkItem>> {
    let sql = "SELECT work_item FROM session WHERE socket = ?1 AND server_pid = ?2 AND server_started = ?3 AND pane = ?4 AND work_item <> ?5";
    let socket = session.socket.to_string_lossy();
    let key = params![socket, session.server_pid, session.server_started, session.pane.to_string(), item.to_string()];
    let owner: Option<String> = db.query_row(sql, key, |row| row.get(0)).optional()?;
    Ok(owner.and_then(|owner| owner.parse().ok()))
}

fn owner_of_conversation(db: &Connection, it: &Conversation, item: &WorkItem) -> rusqlite::Result<Option<WorkItem>> {
    let sql = "SELECT work_item FROM conversation WHERE channel = ?1 AND thread = ?2 AND work_item <> ?3";
    let key = params![it.channel, it.thread.as_deref().unwrap_or_default(), item.to_string()];
    let owner: Option<String> = db.query_row(sql, key, |row| row.get(0)).optional()?;
    Ok(owner.and_then(|owner| owner.parse().ok()))
}

fn put_session(db: &Connection, item: &WorkItem, session: &Session) -> rusqlite::Result<()> {
    db.execute(
        "INSERT OR REPLACE INTO session (work_item, socket, server_pid, server_started, pane, agent) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        params![
            item.to_string(),
            session.socket.to_string_lossy(),
            session.server_pid,
            session.server_started,
            session.pane.to_string(),
            session.agent
        ],
    )?;
    Ok(())
}

fn put_conversation(db: &Connection, item: &WorkItem, it: &Conversation) -> rusqlite::Result<()> {
    let listen = match it.listen {
        None => "",
        Some(Listen::Mentions) => "mentions",
        Some(Listen::All) => "all",
    };
    db.execute(
        "INSERT INTO conversation (channel, thread, work_item, listen, since, read_to) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
         ON CONFLICT (channel, thread) DO UPDATE SET work_item = excluded.work_item, listen = excluded.listen",
        params![
            it.channel,
            it.thread.as_deref().unwrap_or_default(),
            item.to_string(),
            listen,
            it.since.as_millisecond(),
            it.read_to.as_millisecond()
        ],
    )?;
    Ok(())
}

fn session_of(db: &Connection, item: &str) -> rusqlite::Result<Option<Session>> {
    let sql = "SELECT socket, server_pid, server_started, pane, agent FROM session WHERE work_item = ?1";
    let found = db.prepare_cached(sql)?.query_row([item], |row| {
        let pane = row.get::<_, String>(3)?;
        let socket = PathBuf::from(row.get::<_, String>(0)?);
        let session = |pane| {
            Ok(Session { socket, server_pid: row.get(1)?, server_started: row.get(2)?, pane, agent: row.get(4)? })
        };
        pane.parse().ok().map(session).transpose()
    });
    Ok(found.optional()?.flatten())
}

fn conversations_of(db: &Connection, item: &str) -> rusqlite::Result<Vec<Conversation>> {
    let sql = "SELECT channel, thread, listen, since, read_to FROM conversation WHERE work_item = ?1 ORDER BY channel, thread";
    db.prepare_cached(sql)?.query_map([item], |row| conversation(row, 0))?.collect()
}

fn conversation(row: &rusqlite::Row<'_>, first: usize) -> rusqlite::Result<Conversation> {
    let thread: String = row.get(first + 1)?;
    let listen = match row.get_ref(first + 2)?.as_str()? {
        "mentions" => Some(Listen::Mentions),
        "all" => Some(Listen::All),
        _ => None,
    };
    let since = moment(row.get(first + 3)?).unwrap_or(Timestamp::UNIX_EPOCH);
    let read_to = moment(row.get(first + 4)?).unwrap_or(since);
    Ok(Conversation {
        channel: row.get(first)?,
        thread: (!thread.is_empty()).then_some(thread),
        listen,
        since,
        read_to,
    })
}
