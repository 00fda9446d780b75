//! Sessions and conversations: what a work item is bound to.
//!
//! Owns the binding of a work item to a tmux pane and to Slack conversations. It must not know how a pane is found or
//! written to (`tmux`) nor how bindings are stored (`inbox`).

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::core::work_item::WorkItem;

/// A tmux pane id, `%3`: exact, and not reused while its server lives (platform-facts F).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PaneId(u32);

/// Why a text is no pane id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a pane id: tmux shows them as %3 (in the pane: echo $TMUX_PANE)")]
pub struct NotAPaneId(String);

impl FromStr for PaneId {
    type Err = NotAPaneId;

    fn from_str(text: &str) -> Result<Self, NotAPaneId> {
        let digits = text.strip_prefix('%').filter(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()));
        digits.and_then(|rest| rest.parse().ok()).map(Self).ok_or_else(|| NotAPaneId(text.chars().take(40).collect()))
    }
}

impl fmt::Display for PaneId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%{}", self.0)
    }
}

impl TryFrom<String> for PaneId {
    type Error = NotAPaneId;

    fn try_from(text: String) -> Result<Self, NotAPaneId> {
        text.parse()
    }
}

impl From<PaneId> for String {
    fn from(id: PaneId) -> Self {
        id.to_string()
    }
}

/// A coding agent in a tmux pane, bound to one work item.
///
/// Pane ids start again at `%0` when a tmux server restarts, so the server's pid and start time are part of it: another
/// server's `%3` is another agent's pane (field report M18).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// The server's socket.
    pub socket: PathBuf,
    /// The server's process id.
    pub server_pid: u32,
    /// When the server started, in seconds since 1970 (tmux `#{start_time}`).
    pub server_started: i64,
    /// The pane.
    pub pane: PaneId,
    /// The agent profile's name.
    pub agent: String,
}

/// Which messages of a conversation are for the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Listen {
    /// Only those that mention usher.
    Mentions,
    /// All.
    All,
}

/// A Slack conversation bound to a work item: a thread, or a whole room or DM.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conversation {
    /// The conversation id.
    pub channel: String,
    /// The thread's first post; `None`: the whole room.
    pub thread: Option<String>,
    /// Which messages count; `None`: as `slack.listen` says for threads and DMs, mentions only for rooms.
    pub listen: Option<Listen>,
    /// Messages before this moment are not usher's to deliver.
    pub since: Timestamp,
    /// Everything that was said up to this moment has been read.
    ///
    /// Means something only beside the database that knows what was read, so it does not travel with a portable binding.
    #[serde(skip)]
    pub read_to: Timestamp,
}

/// Everything that a work item is bound to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binding {
    /// The work item.
    pub work_item: WorkItem,
    /// Its agent, if one is bound on this machine.
    pub session: Option<Session>,
    /// Its conversations.
    pub conversations: Vec<Conversation>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pane_ids_are_exact() {
        assert_eq!("%12".parse::<PaneId>().unwrap().to_string(), "%12");
        for text in ["", "%", "12", "%1a", "%-1", "=work:1.0", "%99999999999"] {
            assert!(text.parse::<PaneId>().is_err(), "{text}");
        }
    }
}
