//! Acts: what a message is. The closed vocabulary of everything that a person may do through usher.
//!
//! Owns the names of the acts, as configuration, records and logs write them. It must not know who may do them
//! (`grant`) nor how an act is recognised (`classify`).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What a message is, by its configuration name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Act {
    /// Words for the agent: quoted on the ledger, delivered to the pane.
    WorkItemReply,
    /// An answer to an open gate.
    GateFeedback,
    /// A control keyword such as `usher pause`.
    ControlCommand,
    /// A discussion recorded as context.
    ContextAdded,
    /// A decision recorded on the ledger.
    DecisionRecorded,
    /// A kickoff: a new issue.
    WorkItemCreate,
    /// A question about what this person may do.
    Help,
}

/// Every act, in the order in which `help` and the documentation list them.
pub const ALL: [Act; 7] = [
    Act::WorkItemReply,
    Act::GateFeedback,
    Act::ControlCommand,
    Act::ContextAdded,
    Act::DecisionRecorded,
    Act::WorkItemCreate,
    Act::Help,
];

/// A name that is no act; the sentence lists those that are.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an act: use one of {list}", list = ALL.map(Act::name).join(", "))]
pub struct NotAnAct(String);

impl Act {
    /// The name in configuration, records and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::WorkItemReply => "work-item.reply",
            Self::GateFeedback => "gate.feedback",
            Self::ControlCommand => "control.command",
            Self::ContextAdded => "context.added",
            Self::DecisionRecorded => "decision.recorded",
            Self::WorkItemCreate => "work-item.create",
            Self::Help => "help",
        }
    }
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Act {
    type Err = NotAnAct;

    fn from_str(text: &str) -> Result<Self, NotAnAct> {
        ALL.into_iter().find(|act| act.name() == text).ok_or_else(|| NotAnAct(text.chars().take(60).collect()))
    }
}

impl TryFrom<String> for Act {
    type Error = NotAnAct;

    fn try_from(text: String) -> Result<Self, NotAnAct> {
        text.parse()
    }
}

impl From<Act> for String {
    fn from(act: Act) -> Self {
        act.name().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_reads_back() {
        for act in ALL {
            assert_eq!(act.name().parse::<Act>(), Ok(act));
        }
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_known_ones() {
        insta::assert_snapshot!("work-item.repyl".parse::<Act>().unwrap_err(), @"`work-item.repyl` is not an act: use one of work-item.reply, gate.feedback, control.command, context.added, decision.recorded, work-item.create, help");
    }
}
