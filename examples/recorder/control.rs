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
    /// Whether it hangs: what comes is written down, and neither taken nor shown until it is well again.
    pub(crate) hung: bool,
    /// What a person types the moment a paste that ends with usher's end line has come.
    pub(crate) typed_behind: Option<String>,
    /// How long the transcript is behind a submission; Claude Code takes up to 261 ms.
    pub(crate) transcript_delay_ms: u64,
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
            hung: false,
            typed_behind: None,
            transcript_delay_ms: 0,
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
