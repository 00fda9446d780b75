//! Feedback: what the sender sees of a message's fate, as marks on the message and as short notices.
//!
//! Owns the marks that belong to a state and every sentence of a notice: what happened, what follows, who can fix it.
//! It must not know how a mark is put on a message (`slack::feedback`) nor which emoji it is (`config`).

use std::collections::BTreeSet;

use crate::core::attachment::{Attachment, Outcome, Reason};
use crate::core::breaker;
use crate::core::delivery::shown_name;
use crate::core::grant::Refusal;
use crate::core::message::Platform;

/// A mark on the message itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mark {
    /// usher has it, durably.
    Received,
    /// It is held, and goes on by itself.
    Waiting,
    /// In the pane, submitted, and on the ticket.
    Done,
    /// Typed into the pane, but unproven.
    Unsure,
    /// It ended without reaching where it should.
    Failed,
}

/// Every mark, in the order of a message's life.
pub const MARKS: [Mark; 5] = [Mark::Received, Mark::Waiting, Mark::Done, Mark::Unsure, Mark::Failed];

impl Mark {
    /// The name in configuration and store.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Received => "received",
            Self::Waiting => "waiting",
            Self::Done => "done",
            Self::Unsure => "unsure",
            Self::Failed => "failed",
        }
    }

    /// The mark of a stored name.
    pub fn of_name(name: &str) -> Option<Self> {
        MARKS.into_iter().find(|mark| mark.name() == name)
    }
}

/// What the sender may see, as the store knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Nothing at all: a stranger's, or none of usher's business.
    Silent,
    /// On its way.
    UnderWay,
    /// On its way, but held.
    Held,
    /// In the pane and on the ticket.
    Done,
    /// In the pane, unproven.
    Unsure,
    /// Refused, dropped, or without its record.
    Failed,
}

/// The marks that belong to a fate.
pub fn marks(fate: Fate) -> BTreeSet<Mark> {
    match fate {
        Fate::Silent => BTreeSet::new(),
        Fate::UnderWay => [Mark::Received].into(),
        Fate::Held => [Mark::Received, Mark::Waiting].into(),
        Fate::Done => [Mark::Received, Mark::Done].into(),
        Fate::Unsure => [Mark::Received, Mark::Unsure].into(),
        Fate::Failed => [Mark::Received, Mark::Failed].into(),
    }
}

/// A short notice that only the sender sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// What it is about; the same key is told once a message.
    pub key: String,
    /// The sentences.
    pub text: String,
}

/// What is told of a refusal, `None` where silence is owed. Strangers and talk that is not for usher get silence, and so
/// does everything said on a ticket that is bound to nothing: nobody there spoke to usher.
pub fn refused(refusal: Refusal, addressed: bool, platform: Platform) -> Option<Notice> {
    let text = match refusal {
        Refusal::Stranger
        | Refusal::NotAddressed
        | Refusal::TakenBack
        | Refusal::UnknownOriginal
        | Refusal::Unchanged => return None,
        Refusal::Unmapped if !addressed || platform == Platform::GitHub => return None,
        Refusal::Unmapped => {
            "usher does not know which work item this conversation belongs to, so nothing was delivered. Whoever runs the \
             agent can bind it: usher bind owner/repo#12 --pane %N --slack LINK-TO-THIS-MESSAGE"
                .to_owned()
        }
        Refusal::Empty => "there were no words and no files in it, so nothing was delivered.".to_owned(),
        Refusal::NotPublished(act) => {
            format!(
                "usher does not take {act} from {platform}, so nothing was delivered. The operator can add it to {}.publish.",
                platform.name()
            )
        }
        Refusal::TooFast => format!(
            "more than {} messages came within ten minutes, so the rest is not delivered. Say it again later.",
            breaker::MOST
        ),
    };
    Some(Notice { key: format!("refused:{}", refusal.code()), text })
}

/// What is told of files that were not taken, `None` when all were. Pending files are not refused: they follow.
pub fn files_refused(attachments: &[Attachment]) -> Option<Notice> {
    let refused: Vec<(&Attachment, &Reason)> = attachments.iter().filter_map(refusal).collect();
    let count = match refused.len() {
        0 => return None,
        1 if attachments.len() == 1 => "The file was not taken".to_owned(),
        refused => format!("{refused} of {} files were not taken", attachments.len()),
    };
    let line = |(attachment, reason): &(&Attachment, &Reason)| {
        format!("\n• {}: {reason}. {}", shown_name(&attachment.name), remedy(reason))
    };
    let lines: String = refused.iter().map(line).collect();
    Some(Notice { key: "files".to_owned(), text: format!("{count}; the words were. {lines}").replace(". \n", ".\n") })
}

fn refusal(attachment: &Attachment) -> Option<(&Attachment, &Reason)> {
    match &attachment.outcome {
        Outcome::NotFetched(reason) if *reason != Reason::Pending => Some((attachment, reason)),
        Outcome::NotFetched(_) | Outcome::Saved(_) => None,
    }
}

/// Who can mend it, and how.
const fn remedy(reason: &Reason) -> &'static str {
    match reason {
        Reason::NoToken => "The operator gives usher its token; then send the file again.",
        Reason::NoScope => {
            "A workspace admin adds files:read to the Slack app and reinstalls it; then send the file again."
        }
        Reason::OffHost { .. } | Reason::External => {
            "Upload the file itself, or make sure that the agent can open the link."
        }
        Reason::OverCap { .. } => "Send a smaller one; the operator can raise attachments.max_bytes.",
        Reason::TooMany { .. } => "Send the rest in a message of their own.",
        Reason::TransferFailed => "Send it again.",
        Reason::Deleted | Reason::HiddenByPlan => "Upload it again if the agent should see it.",
        Reason::NotReachableWithThisToken => "The operator gives usher a token that may read it.",
        Reason::Pending => "It follows.",
        Reason::DiskFull => "The operator makes room on the agent's machine; then send it again.",
        Reason::ReceiveOff => "The operator can switch attachments.receive on.",
    }
}

/// What is told while a message is held, once per cause.
pub fn held(code: &str, words: &str) -> Notice {
    Notice { key: format!("held:{code}"), text: format!("waiting: {words}. It is delivered as soon as that ends.") }
}

/// What is told when nothing proves that the agent took it.
pub fn unsure(why: &str) -> Notice {
    let text = format!(
        "unsure: it was typed into the agent's pane, but nothing proves that the agent took it ({why}). It is not typed \
         again by itself: look into the pane before you say it again."
    );
    Notice { key: "unsure".to_owned(), text }
}

/// What is told when the ticket will not take the record.
pub fn record_refused(why: &str) -> Notice {
    let text = format!(
        "the agent has it, but the ticket refused the record: {why}. The operator can try again: usher inbox retry"
    );
    Notice { key: "record".to_owned(), text }
}

/// What is told when the operator dropped it.
pub fn dropped() -> Notice {
    Notice { key: "dropped".to_owned(), text: "not delivered: the operator dropped it.".to_owned() }
}
