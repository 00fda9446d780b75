//! What Claude Code tells the world about itself, below `$HOME/.claude`.

use std::fs;
use std::io;
use std::path::PathBuf;

use serde_json::json;

use crate::control::Status;
use crate::notes::{append_line, now_ms};

/// What Claude Code tells the world about itself, below `$HOME/.claude`.
pub(crate) struct Publication {
    session_file: PathBuf,
    transcript: PathBuf,
    session_id: String,
    started_at: u64,
}

impl Publication {
    pub(crate) fn new() -> io::Result<Self> {
        let home = std::env::var_os("HOME").ok_or_else(|| io::Error::other("HOME is not set"))?;
        let claude = PathBuf::from(home).join(".claude");
        let (sessions, projects) = (claude.join("sessions"), claude.join("projects/work"));
        fs::create_dir_all(&sessions)?;
        fs::create_dir_all(&projects)?;
        let (pid, started_at) = (std::process::id(), now_ms());
        let session_id = format!("{pid:08x}-0000-4000-8000-{started_at:012x}");
        Ok(Self {
            session_file: sessions.join(format!("{pid}.json")),
            transcript: projects.join(format!("{session_id}.jsonl")),
            session_id,
            started_at,
        })
    }

    /// Writes the session file, or takes it away.
    pub(crate) fn publish(&self, status: Status, present: bool) -> io::Result<()> {
        if !present {
            return self.withdraw();
        }
        let pane = std::env::var("TMUX_PANE").unwrap_or_default();
        let waiting_for = (status == Status::Waiting).then_some("permission prompt");
        let session = json!({
            "pid": std::process::id(), "sessionId": self.session_id, "status": status.name(),
            "waitingFor": waiting_for, "version": "2.1.332", "tmux": format!("s:@0.{pane}"),
            "startedAt": self.started_at,
        });
        let draft = self.session_file.with_extension("json.new");
        fs::write(&draft, session.to_string())?;
        fs::rename(&draft, &self.session_file)
    }

    pub(crate) fn withdraw(&self) -> io::Result<()> {
        match fs::remove_file(&self.session_file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Writes a submission into the transcript: a turn, or an entry of the queue while busy.
    pub(crate) fn transcribe(&self, text: &str, status: Status) -> io::Result<()> {
        let line = if status == Status::Busy {
            json!({"type": "queue-operation", "operation": "enqueue", "sessionId": self.session_id, "content": text})
        } else {
            json!({
                "type": "user", "sessionId": self.session_id, "version": "2.1.332",
                "message": {"role": "user", "content": text},
            })
        };
        append_line(&self.transcript, &line)
    }
}
