//! The tables, and the way from an older version to this one.
//!
//! Owns the schema and its migrations, forward only. It must not know what the rows mean.

use anyhow::{Context as _, bail};
use rusqlite::Connection;

/// Each entry takes the database one version further; entries are never changed once released.
pub(super) const MIGRATIONS: &[&str] = &[
    FIRST,
    "ALTER TABLE conversation ADD COLUMN read_to INTEGER NOT NULL DEFAULT 0;",
    "ALTER TABLE message ADD COLUMN typed_into TEXT NOT NULL DEFAULT 'null';", // the pane of the paste, as JSON
    GITHUB_SPEAKS,
    TRANSCRIPTS,
];

const FIRST: &str = r"
CREATE TABLE message (
  seq         INTEGER PRIMARY KEY AUTOINCREMENT,
  id          TEXT NOT NULL UNIQUE,
  lane        TEXT,                          -- the work item, once admitted
  stage       TEXT NOT NULL,
  cause       TEXT NOT NULL DEFAULT '',      -- why refused, dropped, unsure
  body        TEXT NOT NULL,                 -- the message as JSON; emptied when refused
  events      TEXT NOT NULL,                 -- every event_id that brought it
  twin_until  INTEGER NOT NULL DEFAULT 0,    -- the copy in hand may lack its files until then
  attachments TEXT NOT NULL DEFAULT '[]',
  nonce       TEXT NOT NULL DEFAULT '',
  paste       TEXT NOT NULL DEFAULT '',      -- '', pasting, pasted, submitted
  verdict     TEXT NOT NULL DEFAULT '',      -- '', submitted, unsure
  held        TEXT NOT NULL DEFAULT '',      -- the cause while it is held
  held_since  INTEGER NOT NULL DEFAULT 0,
  arrived_at  INTEGER NOT NULL,              -- milliseconds since 1970, as all times here
  changed_at  INTEGER NOT NULL,
  marks       TEXT NOT NULL DEFAULT '',      -- that the message should carry
  marks_shown TEXT NOT NULL DEFAULT '',      -- that it carries
  marks_next  INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX message_new  ON message(seq) WHERE stage = 'accepted';
CREATE INDEX message_open ON message(lane, seq) WHERE stage IN ('admitted', 'fetched', 'recorded');
CREATE INDEX message_late ON message(seq) WHERE stage = 'fetching';
CREATE INDEX message_marks ON message(marks_next) WHERE marks <> marks_shown;
CREATE INDEX message_age ON message(stage, changed_at) WHERE stage IN ('settled', 'refused', 'dropped');

CREATE TABLE record (
  message   INTEGER NOT NULL REFERENCES message(seq) ON DELETE CASCADE,
  part      INTEGER NOT NULL,
  work_item TEXT NOT NULL,
  body      TEXT NOT NULL,
  state     TEXT NOT NULL DEFAULT 'waiting', -- waiting, posting, landed, refused
  link      TEXT NOT NULL DEFAULT '',
  cause     TEXT NOT NULL DEFAULT '',
  next_at   INTEGER NOT NULL DEFAULT 0,
  tries     INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (message, part)
) STRICT, WITHOUT ROWID;
CREATE INDEX record_open ON record(message, part) WHERE state IN ('waiting', 'posting');

CREATE TABLE notice (
  message INTEGER NOT NULL REFERENCES message(seq) ON DELETE CASCADE,
  key     TEXT NOT NULL,
  text    TEXT NOT NULL,
  place   TEXT NOT NULL,                     -- where and to whom, as JSON; outlives the emptied body
  due     INTEGER NOT NULL,                  -- not before
  state   TEXT NOT NULL DEFAULT 'due',       -- due, saying, said, withdrawn, failed
  PRIMARY KEY (message, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX notice_open ON notice(due) WHERE state = 'due';

CREATE TABLE session (
  work_item      TEXT PRIMARY KEY,
  socket         TEXT NOT NULL,
  server_pid     INTEGER NOT NULL,
  server_started INTEGER NOT NULL,
  pane           TEXT NOT NULL,
  agent          TEXT NOT NULL,
  UNIQUE (socket, server_pid, server_started, pane)
) STRICT, WITHOUT ROWID;

CREATE TABLE conversation (
  channel   TEXT NOT NULL,
  thread    TEXT NOT NULL DEFAULT '',        -- '': the whole room
  work_item TEXT NOT NULL,
  listen    TEXT NOT NULL DEFAULT '',        -- '', mentions, all
  since     INTEGER NOT NULL,
  PRIMARY KEY (channel, thread)
) STRICT, WITHOUT ROWID;
CREATE INDEX conversation_item ON conversation(work_item);

CREATE TABLE file (
  source     TEXT NOT NULL,
  id         TEXT NOT NULL,
  work_item  TEXT NOT NULL,
  name       TEXT NOT NULL,                  -- on disk, below the work item's directory
  attachment TEXT NOT NULL,                  -- as it was saved, as JSON
  size       INTEGER NOT NULL,
  sha256     TEXT NOT NULL,
  PRIMARY KEY (source, id, work_item)
) STRICT, WITHOUT ROWID;
";

/// GitHub speaks too: each platform shows its own marks and notices, and what it said is counted and caught up.
const GITHUB_SPEAKS: &str = r#"
ALTER TABLE message ADD COLUMN platform TEXT GENERATED ALWAYS AS (substr(id, 1, instr(id, ':') - 1)) VIRTUAL;
ALTER TABLE message ADD COLUMN said_at INTEGER NOT NULL DEFAULT 0;
DROP INDEX message_marks;
CREATE INDEX message_marks ON message(platform, marks_next) WHERE marks <> marks_shown;
CREATE INDEX message_said ON message(said_at) WHERE platform = 'github';
ALTER TABLE notice ADD COLUMN platform TEXT
  GENERATED ALWAYS AS (CASE WHEN place GLOB '[[]{"git-hub":*' THEN 'github' ELSE 'slack' END) VIRTUAL;
DROP INDEX notice_open;
CREATE INDEX notice_open ON notice(platform, due) WHERE state = 'due';
CREATE TABLE repository (
  name    TEXT PRIMARY KEY,                  -- owner/repo, lower-cased
  read_to INTEGER NOT NULL                   -- everything that was said there before is in the inbox
) STRICT, WITHOUT ROWID;
"#;

/// Clips whose transcripts were not ready when their message had to go.
const TRANSCRIPTS: &str = r"
CREATE TABLE transcript (
  message INTEGER NOT NULL REFERENCES message(seq) ON DELETE CASCADE,
  file    TEXT NOT NULL,
  due     INTEGER NOT NULL,                  -- when it is looked for next
  tries   INTEGER NOT NULL DEFAULT 0,
  since   INTEGER NOT NULL,
  PRIMARY KEY (message, file)
) STRICT, WITHOUT ROWID;
CREATE INDEX transcript_file ON transcript(file);
CREATE INDEX transcript_due ON transcript(due);
";

/// Brings the database to this version; refuses one that a newer usher wrote, because it may mean something else.
pub(super) fn migrate(connection: &Connection) -> anyhow::Result<()> {
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let version = usize::try_from(version).context("the database has no version that makes sense")?;
    if version > MIGRATIONS.len() {
        bail!(
            "the database has version {version}, this usher knows {}: it was written by a newer usher, so start that one",
            MIGRATIONS.len()
        );
    }
    for (index, migration) in MIGRATIONS.iter().enumerate().skip(version) {
        let next = index + 1;
        connection
            .execute_batch(&format!("BEGIN IMMEDIATE; {migration} PRAGMA user_version = {next}; COMMIT;"))
            .with_context(|| format!("the database could not be brought to version {next}"))?;
    }
    Ok(())
}
