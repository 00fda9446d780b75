//! The inbox against a real database in a temporary directory.

mod arrival;
mod notices;
mod operator;
mod outbox;
mod stages;
mod supplements;
mod thread;

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use tempfile::TempDir;

use super::bindings::Bind;
use super::messages::Arrival;
use super::{Inbox, Put, Row, Stage, Verdict};
use crate::core::attachment::{Attachment, AttachmentRef, Kind, Outcome, Reason, Source, Transcript, Whereabouts};
use crate::core::feedback::{Mark, Notice};
use crate::core::message::{ConversationKind, Message, MessageId, Person, Place, Platform, SlackPlace};
use crate::core::session::{Conversation, Session};
use crate::core::work_item::WorkItem;

/// A database of its own, and what the tests do with it most.
struct Store {
    inbox: Inbox,
    directory: TempDir,
}

impl Store {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (inbox, _thread) = Inbox::open(&directory.path().join("usher.db")).unwrap();
        Self { inbox, directory }
    }

    /// A second process on the same database.
    fn beside(&self) -> Inbox {
        Inbox::open(&self.directory.path().join("usher.db")).unwrap().0
    }

    /// The database itself, as a damaged disk or a crash would leave it.
    fn alter(&self, sql: &str) {
        let connection = rusqlite::Connection::open(self.directory.path().join("usher.db")).unwrap();
        connection.execute_batch(sql).unwrap();
    }

    fn bind(&self, channel: &str, lane: &WorkItem) {
        assert_eq!(self.inbox.bind(lane, None, Some(room(channel))).wait().unwrap(), Bind::Bound);
    }

    fn put(&self, message: Message) -> Put {
        self.inbox.put(arrival(message)).wait().unwrap()
    }

    /// A message in its lane.
    fn admitted(&self, ts: &str, lane: &WorkItem) -> i64 {
        assert_eq!(self.put(said(ts, "words")), Put::New);
        let seq = self.newcomers().into_iter().find(|(id, _)| *id == id_of(ts)).unwrap().1;
        self.inbox.admit(seq, lane.clone(), None, at(1)).wait().unwrap();
        seq
    }

    /// A message whose record of one part is in the outbox.
    fn recorded(&self, ts: &str, lane: &WorkItem) -> i64 {
        let seq = self.admitted(ts, lane);
        self.inbox.fetched(seq, Vec::new(), Vec::new(), None, at(2)).wait().unwrap();
        self.record(seq, lane, 1);
        seq
    }

    fn record(&self, seq: i64, lane: &WorkItem, parts: usize) {
        let parts = (1..=parts).map(|part| format!("part {part}")).collect();
        self.inbox.recorded(seq, lane, parts, Vec::new(), at(3)).wait().unwrap();
    }

    fn delivered(&self, seq: i64, verdict: Verdict) {
        self.inbox.delivered(seq, verdict, "why".into(), None, at(4)).wait().unwrap();
    }

    fn landed(&self, seq: i64) {
        self.inbox.record_landed(seq, 1, "https://github.com/o/r/issues/1#c".into(), at(5)).wait().unwrap();
    }

    fn newcomers(&self) -> Vec<(MessageId, i64)> {
        self.inbox.newcomers().wait().unwrap().into_iter().map(|it| (it.message.id, it.seq)).collect()
    }

    fn first(&self, lane: &WorkItem) -> Option<Row> {
        self.inbox.first_in_lane(lane).wait().unwrap()
    }

    fn stage(&self, seq: i64) -> String {
        self.inbox.show(&seq.to_string()).wait().unwrap().unwrap().line.stage
    }

    /// The marks that the next message with wrong marks should carry.
    fn wanted(&self) -> Option<BTreeSet<Mark>> {
        self.inbox.marking(Platform::Slack, at(1_000)).wait().unwrap().0.map(|marking| marking.wanted)
    }

    /// The notices that are due, each taken and said.
    fn said(&self, now: Timestamp) -> Vec<String> {
        let mut keys = Vec::new();
        while let (Some(due), _) = self.inbox.take_notice(Platform::Slack, now).wait().unwrap() {
            self.inbox.notice_said(due.seq, due.key.clone()).wait().unwrap();
            keys.push(due.key);
        }
        keys
    }
}

/// A whole room, from the beginning.
fn room(channel: &str) -> Conversation {
    let beginning = Timestamp::UNIX_EPOCH;
    Conversation { channel: channel.into(), thread: None, listen: None, since: beginning, read_to: beginning }
}

/// The pane that messages are typed into.
fn pane() -> Session {
    let pane = "%3".parse().unwrap();
    Session { socket: "/s".into(), server_pid: 7, server_started: 70, pane, agent: "claude".into() }
}

fn lane(number: u64) -> WorkItem {
    format!("owner/repo#{number}").parse().unwrap()
}

/// So many seconds after the beginning.
fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap() + SignedDuration::from_secs(seconds)
}

fn id_of(ts: &str) -> MessageId {
    MessageId::slack("T1", "C1", ts)
}

fn said(ts: &str, text: &str) -> Message {
    Message {
        id: id_of(ts),
        place: Place::Slack(SlackPlace {
            team: "T1".into(),
            channel: "C1".into(),
            ts: ts.into(),
            thread: None,
            conversation: ConversationKind::Channel,
        }),
        author: Person::Slack("U0DANA".into()),
        addressed: false,
        text: text.into(),
        quotes: Vec::new(),
        attachments: Vec::new(),
        permalink: None,
        sent_at: at(0),
        late: false,
        github: None,
        supplement: None,
    }
}

fn file(id: &str) -> AttachmentRef {
    AttachmentRef {
        id: id.into(),
        source: Source::Slack,
        name: "shot.png".into(),
        kind: Kind::Image,
        mimetype: None,
        size: None,
        size_is_exact: false,
        link: None,
        bytes: Whereabouts::Ask,
        transcript: Transcript::None,
        is_html: false,
    }
}

fn pending(id: &str) -> Attachment {
    Attachment {
        id: id.into(),
        source: Source::Slack,
        name: "shot.png".into(),
        kind: Kind::Image,
        mimetype: None,
        size: None,
        link: None,
        outcome: Outcome::NotFetched(Reason::Pending),
        transcript: None,
        transcript_pending: false,
    }
}

fn arrival(message: Message) -> Arrival {
    Arrival { message, event: String::new(), twin_until: None, now: at(0) }
}

fn notice(key: &str) -> Notice {
    Notice { key: key.into(), text: "words".into() }
}

fn marks(marks: &[Mark]) -> Option<BTreeSet<Mark>> {
    Some(marks.iter().copied().collect())
}

fn is_stage(row: Option<&Row>, stage: Stage) -> bool {
    row.is_some_and(|row| row.stage == stage)
}
