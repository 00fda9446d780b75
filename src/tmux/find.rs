//! Finding a pane to bind, and telling how a bound one does.
//!
//! Owns `usher bind`'s questions to tmux and the sentences of its refusals, and the state of a session for `usher
//! sessions` and the probe. It must not know what is stored about a binding.

use std::path::Path;

use super::Tmux;
use super::command::Trouble;
use super::guard::{Draft, draft, judge};
use super::hold::Hold;
use super::process;
use super::view;
use crate::core::session::{PaneId, Session};

/// Why a pane cannot be bound.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotBindable {
    /// tmux could not be asked.
    #[error("{0}")]
    Tmux(Trouble),
    /// No such pane on that server.
    #[error("there is no pane {0} on this tmux server: run `tmux list-panes -a`, or name its server with --socket")]
    NoPane(PaneId),
    /// The pane's process has exited.
    #[error("the process of pane {0} has exited: start the agent again, then bind")]
    Dead(PaneId),
    /// No profile knows the program in front.
    #[error(
        "no agent is recognised in pane {pane} ({command} is in front): start it, or name it with --agent ({known})"
    )]
    UnknownAgent {
        /// The pane.
        pane: PaneId,
        /// The foreground program.
        command: String,
        /// The profiles' names.
        known: String,
    },
    /// `--agent` names no profile.
    #[error("there is no agent profile `{name}`: use one of {known}")]
    NoProfile {
        /// What was asked for.
        name: String,
        /// The profiles' names.
        known: String,
    },
}

/// How a bound session does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sight {
    /// A message would be delivered now. The foreground program.
    Ready(String),
    /// A message would wait.
    Held(Hold),
}

impl Tmux {
    /// Describes a pane as a session. Without `agent` the program in front decides the profile; with it, the agent need
    /// not run yet: the guard holds until it does.
    pub async fn find(&self, socket: &Path, pane: &PaneId, agent: Option<&str>) -> Result<Session, NotBindable> {
        let view = view::look(socket, pane, self.settings.timeout).await.map_err(|trouble| match trouble {
            Trouble::NoPane => NotBindable::NoPane(pane.clone()),
            trouble => NotBindable::Tmux(trouble),
        })?;
        if view.dead {
            return Err(NotBindable::Dead(pane.clone()));
        }
        let agent = match agent {
            Some(name) => self.named(name)?,
            None => self.recognised(pane, view.pane_pid, view.command).await?,
        };
        Ok(Session {
            socket: socket.to_owned(),
            server_pid: view.server_pid,
            server_started: view.server_started,
            pane: pane.clone(),
            agent,
        })
    }

    /// How a session does, by one look and without touching it.
    pub async fn look(&self, session: &Session) -> Sight {
        self.sight(session).await.map_or_else(Sight::Held, Sight::Ready)
    }

    async fn sight(&self, session: &Session) -> Result<String, Hold> {
        let profile = self.profile(session)?;
        let facts = self.examine(session, &profile).await?;
        judge(&facts, session, &profile, &self.settings.profiles)?;
        let (Draft::None | Draft::Stashable) = draft(&facts.view.screen, &profile)?;
        Ok(facts.view.command)
    }

    fn named(&self, name: &str) -> Result<String, NotBindable> {
        match self.settings.profiles.get(name) {
            Some(profile) => Ok(profile.name().to_owned()),
            None => Err(NotBindable::NoProfile { name: name.to_owned(), known: self.known() }),
        }
    }

    async fn recognised(&self, pane: &PaneId, pane_pid: u32, command: String) -> Result<String, NotBindable> {
        let read = move || process::foreground(pane_pid).and_then(process::arguments).unwrap_or_default();
        let arguments = tokio::task::spawn_blocking(read).await.unwrap_or_default();
        match self.settings.profiles.recognise(&command, &arguments) {
            Some(profile) => Ok(profile.name().to_owned()),
            None => Err(NotBindable::UnknownAgent { pane: pane.clone(), command, known: self.known() }),
        }
    }

    fn known(&self) -> String {
        self.settings.profiles.names().collect::<Vec<_>>().join(", ")
    }
}
