//! The pane: finding it, guarding it, pasting, submitting and confirming.
//!
//! Owns every call of tmux and everything known about agents' terminals (design section 10). Each step takes a token that
//! only the step before makes: [`Tmux::guard`] -> [`Clear`] -> [`Tmux::paste`] -> [`Pasted`] -> [`Tmux::submit`] ->
//! [`Submitted`] -> [`Tmux::confirm`]. The tokens hold the pane's lock: dropping one frees it. It must not know Slack,
//! GitHub, work items or the store, and it never owns the tmux server.
//!
//! ```compile_fail
//! async fn submits_what_was_never_pasted(tmux: usher::tmux::Tmux, clear: usher::tmux::Clear) {
//!     tmux.submit(clear).await;
//! }
//! ```
//!
//! ```compile_fail
//! async fn pastes_what_was_never_guarded(
//!     tmux: usher::tmux::Tmux,
//!     session: usher::core::session::Session,
//!     text: usher::core::pane_text::PaneText,
//! ) {
//!     tmux.paste(session, &text).await;
//! }
//! ```

mod aftermath;
mod claude;
mod command;
mod confirm;
mod find;
mod guard;
mod hold;
mod lock;
mod paste;
mod process;
mod profile;
mod screen;
mod submit;
#[cfg(test)]
mod tests;
mod transcript;
mod view;

use std::path::PathBuf;
use std::time::Duration;

pub use self::aftermath::Aftermath;
pub use self::command::{Trouble, Version};
pub use self::confirm::{Evidence, Verdict};
pub use self::find::{NotBindable, Sight};
pub use self::guard::Clear;
pub use self::hold::Hold;
pub use self::paste::{Paste, Pasted, line_feeds};
pub use self::profile::{Profile, Profiles};
pub use self::submit::{Submit, Submitted};

/// What the deployment decides about panes (`[pane]` in the configuration).
#[derive(Debug, Clone)]
pub struct Settings {
    /// For every call of tmux.
    pub timeout: Duration,
    /// How long a person may stay in copy mode before they are taken out of it.
    pub mode_wait: Duration,
    /// How long to wait for proof of a submission.
    pub evidence: Duration,
    /// How long to wait until a paste is seen: 3 s, where 85 ms was the longest measured.
    pub see: Duration,
    /// The home of the agents' user.
    pub agent_home: PathBuf,
    /// Claude's configuration directory, where it is not `.claude` in that home (`CLAUDE_CONFIG_DIR`).
    pub claude_config_dir: Option<PathBuf>,
    /// The agent profiles.
    pub profiles: Profiles,
}

impl Settings {
    fn claude_folder(&self) -> PathBuf {
        self.claude_config_dir.clone().unwrap_or_else(|| self.agent_home.join(".claude"))
    }
}

/// The way to the panes.
#[derive(Debug)]
pub struct Tmux {
    settings: Settings,
}

impl Tmux {
    /// Over these settings.
    pub fn new(settings: Settings) -> Self {
        Self { settings }
    }

    /// The release of the tmux on the PATH.
    pub async fn version(&self) -> Result<Version, Trouble> {
        command::version(self.settings.timeout).await
    }

    /// The agent profiles.
    pub fn profiles(&self) -> &Profiles {
        &self.settings.profiles
    }
}
