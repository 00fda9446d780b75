//! Why a message waits at the pane.
//!
//! Owns the closed list of causes, their labels and the words that the sender reads behind "waiting: ". It must not know
//! how a cause is found out.

use std::fmt;

use super::command::Trouble;

/// A cause that holds a delivery. Nothing was typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hold {
    /// Another tmux server answers on the socket than the one bound.
    Restarted,
    /// No server answers on the socket.
    ServerGone,
    /// The pane does not exist any more.
    PaneGone,
    /// The session's agent has no profile (any more).
    NoProfile(String),
    /// The pane's process has exited; the pane stays because of `remain-on-exit`.
    Dead,
    /// A person reads in copy mode or another tmux mode.
    InMode,
    /// `select-pane -d`: everything typed is dropped.
    InputOff,
    /// `synchronize-panes`: a key would go to every pane of the window.
    Synchronised,
    /// A shell is in front: its name.
    Shell(String),
    /// Another program than the agent is in front: its name.
    OtherProgram(String),
    /// The terminal is in line mode.
    LineMode,
    /// The terminal cannot be examined.
    TerminalUnreadable,
    /// The agent's session file is not there.
    NoState,
    /// A dialog is open: what the agent calls it.
    Dialog(String),
    /// No prompt box is on the screen: a dialog or another view.
    NoPrompt,
    /// A person's half-typed line, or their `!`, is in the prompt box.
    Typing,
    /// Another process writes to this pane.
    Locked,
    /// What the guard found was no longer so when tmux ran the command.
    Changed,
    /// tmux did not answer in time.
    NoAnswer,
    /// tmux could not be run, or refused: its words.
    Tmux(String),
}

impl Hold {
    /// The label for metrics and the store: bounded, stable.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Restarted => "restarted",
            Self::ServerGone => "server-gone",
            Self::PaneGone => "pane-gone",
            Self::NoProfile(_) => "no-profile",
            Self::Dead => "dead",
            Self::InMode => "in-mode",
            Self::InputOff => "input-off",
            Self::Synchronised => "synchronised",
            Self::Shell(_) => "shell",
            Self::OtherProgram(_) => "other-program",
            Self::LineMode => "line-mode",
            Self::TerminalUnreadable => "terminal-unreadable",
            Self::NoState => "no-state",
            Self::Dialog(_) => "dialog",
            Self::NoPrompt => "no-prompt",
            Self::Typing => "typing",
            Self::Locked => "locked",
            Self::Changed => "changed",
            Self::NoAnswer => "no-answer",
            Self::Tmux(_) => "tmux",
        }
    }

    /// Whether the binding itself is broken: only a person can mend it, by binding a pane again.
    pub fn is_lasting(&self) -> bool {
        matches!(self, Self::Restarted | Self::ServerGone | Self::PaneGone | Self::NoProfile(_))
    }
}

impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Restarted => f.write_str("the tmux server was restarted: bind the pane again"),
            Self::ServerGone => f.write_str("the tmux server is gone: bind a pane again"),
            Self::PaneGone => f.write_str("the pane is gone: bind again"),
            Self::NoProfile(agent) => write!(f, "usher has no profile for the agent {agent}: bind the pane again"),
            Self::Dead => f.write_str("the pane's process has exited"),
            Self::InMode => f.write_str("the pane is in copy mode"),
            Self::InputOff => f.write_str("the pane's input is off"),
            Self::Synchronised => f.write_str("the pane is synchronised with others"),
            Self::Shell(command) => write!(f, "a shell is in front ({command})"),
            Self::OtherProgram(command) => write!(f, "another program is in front ({command})"),
            Self::LineMode => f.write_str("its terminal is in line mode: nobody is reading"),
            Self::TerminalUnreadable => f.write_str("usher may not look at the pane's terminal"),
            Self::NoState => {
                f.write_str("usher does not see the agent's session file (starting, trust dialog or gone)")
            }
            Self::Dialog(what) => write!(f, "the agent waits on a dialog ({what})"),
            Self::NoPrompt => f.write_str("the agent shows no prompt box (a dialog or another view is open)"),
            Self::Typing => f.write_str("someone is typing in the pane"),
            Self::Locked => f.write_str("something else is being delivered to the pane"),
            Self::Changed => f.write_str("the pane changed at that very moment"),
            Self::NoAnswer => f.write_str("tmux does not answer"),
            Self::Tmux(words) => write!(f, "tmux cannot be used ({words})"),
        }
    }
}

impl From<Trouble> for Hold {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::NoServer => Self::ServerGone,
            Trouble::NoPane => Self::PaneGone,
            Trouble::Timeout(_) => Self::NoAnswer,
            Trouble::NotStarted(words) | Trouble::Refused(words) => Self::Tmux(words),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sender_reads_the_cause() {
        let holds = [
            Hold::Restarted,
            Hold::ServerGone,
            Hold::PaneGone,
            Hold::NoProfile("pi".to_owned()),
            Hold::Dead,
            Hold::InMode,
            Hold::InputOff,
            Hold::Synchronised,
            Hold::Shell("bash".to_owned()),
            Hold::OtherProgram("make".to_owned()),
            Hold::LineMode,
            Hold::TerminalUnreadable,
            Hold::NoState,
            Hold::Dialog("permission prompt".to_owned()),
            Hold::NoPrompt,
            Hold::Typing,
            Hold::Locked,
            Hold::Changed,
            Hold::NoAnswer,
            Hold::Tmux("no space".to_owned()),
        ];
        let line =
            |hold: &Hold| format!("{:20}{hold}{}\n", hold.code(), if hold.is_lasting() { " [lasting]" } else { "" });
        insta::assert_snapshot!(holds.iter().map(line).collect::<String>(), @r"
        restarted           the tmux server was restarted: bind the pane again [lasting]
        server-gone         the tmux server is gone: bind a pane again [lasting]
        pane-gone           the pane is gone: bind again [lasting]
        no-profile          usher has no profile for the agent pi: bind the pane again [lasting]
        dead                the pane's process has exited
        in-mode             the pane is in copy mode
        input-off           the pane's input is off
        synchronised        the pane is synchronised with others
        shell               a shell is in front (bash)
        other-program       another program is in front (make)
        line-mode           its terminal is in line mode: nobody is reading
        terminal-unreadable usher may not look at the pane's terminal
        no-state            usher does not see the agent's session file (starting, trust dialog or gone)
        dialog              the agent waits on a dialog (permission prompt)
        no-prompt           the agent shows no prompt box (a dialog or another view is open)
        typing              someone is typing in the pane
        locked              something else is being delivered to the pane
        changed             the pane changed at that very moment
        no-answer           tmux does not answer
        tmux                tmux cannot be used (no space)
        ");
    }
}
