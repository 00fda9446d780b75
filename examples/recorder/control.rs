//! What `control.json` tells the recorder to be.

use serde::Deserialize;

/// What `control.json` may say.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Control {
    /// Whether bracketed paste is switched on.
    pub(crate) bracketed: bool,
    pub(crate) status: Status,
    /// How many submit keys from now on have no effect.
    pub(crate) swallow_enters: usize,
    /// Whether the terminal is in line mode, as when the program in front reads nothing.
    pub(crate) cooked: bool,
    /// What a person has typed and not sent.
    pub(crate) draft: Option<String>,
    /// Whether the session file is published; it is missing while Claude Code starts.
    pub(crate) session_file: bool,
}

impl Default for Control {
    fn default() -> Self {
        Self {
            bracketed: true,
            status: Status::Idle,
            swallow_enters: 0,
            cooked: false,
            draft: None,
            session_file: true,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Status {
    Idle,
    Busy,
    /// A dialog is open.
    Waiting,
}

impl Status {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Busy => "busy",
            Self::Waiting => "waiting",
        }
    }
}
