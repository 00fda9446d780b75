//! Classification: which act a message is, or why it is none.
//!
//! Owns the one pure function that decides it. It must not know who may do the act (`grant`) or what follows from it
//! (`pipeline`). Today's vocabulary is the reply; the other acts of the design are further rows of this function.

use crate::core::act::Act;
use crate::core::message::{Message, Place, Supplement};
use crate::core::session::Listen;
use crate::core::work_item::WorkItem;

/// The binding that a message's conversation has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound {
    /// The work item that the conversation belongs to.
    pub work_item: WorkItem,
    /// Which of its messages are for the agent.
    pub listen: Listen,
}

/// What a message is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Classification {
    /// An act on a work item.
    Act(Act, WorkItem),
    /// Nothing for usher: its conversation belongs to no work item.
    Unmapped,
    /// People talking among themselves: the conversation listens to mentions only.
    NotAddressed,
    /// A mention with nothing in it.
    Empty,
    /// Somebody took back what they had said on GitHub. Kept as a note; an agent that acted on it cannot unread it, and nobody is
    /// woken by it (field report W11).
    TakenBack,
}

/// Decides what a message is; first match wins.
pub fn classify(message: &Message, bound: Option<&Bound>) -> Classification {
    // On the ticket itself everybody sees that it is gone; what is gone in Slack leaves a note on the ticket.
    let is_deleted = matches!(message.supplement, Some(Supplement::Deleted { .. }));
    if is_deleted && matches!(message.place, Place::GitHub(_)) {
        return Classification::TakenBack;
    }
    let Some(bound) = bound else { return Classification::Unmapped };
    // What is added to a message was addressed when that was.
    if bound.listen == Listen::Mentions && !message.addressed && message.supplement.is_none() {
        return Classification::NotAddressed;
    }
    if message.is_empty() {
        return Classification::Empty;
    }
    Classification::Act(Act::WorkItemReply, bound.work_item.clone())
}
