//! Feedback in Slack: marks on the message itself, and notices that only its sender sees.
//!
//! Owns putting what the store wants to be shown where people see it. It must not know what a mark means: which marks a
//! message should carry is in the inbox, so that a restart shows what is true.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use super::api::{Api, ApiError, escape};
use crate::core::feedback::Mark;
use crate::core::message::{Person, Place};
use crate::inbox::Inbox;
use crate::inbox::notices::{Due, Marking};

/// How long a mark waits after trouble that says nothing about when to come back.
const AGAIN: Duration = Duration::from_secs(10);

/// Shows what the store wants to be shown.
#[derive(Debug)]
pub struct Feedback {
    inbox: Inbox,
    api: Api,
    emoji: BTreeMap<Mark, String>,
}

impl Feedback {
    /// `emoji`: the reaction for each mark; a mark without one is not shown.
    pub fn new(inbox: Inbox, api: Api, emoji: BTreeMap<Mark, String>) -> Self {
        Self { inbox, api, emoji }
    }

    /// Works until told to stop.
    pub async fn run(self, stop: CancellationToken) -> anyhow::Result<()> {
        let mut changes = self.inbox.changes();
        while !stop.is_cancelled() {
            changes.mark_unchanged();
            let now = Timestamp::now();
            let (marking, next_mark) = self.inbox.marking(now).await?;
            if let Some(marking) = &marking {
                self.mark(marking).await?;
            }
            let (due, next_notice) = self.inbox.take_notice(now).await?;
            if let Some(due) = &due {
                self.say(due).await?;
            }
            if marking.is_some() || due.is_some() {
                continue;
            }
            tokio::select! {
                changed = changes.changed() => if changed.is_err() { return Ok(()) },
                () = until(next_mark.into_iter().chain(next_notice).min()) => {}
                () = stop.cancelled() => {}
            }
        }
        Ok(())
    }

    async fn mark(&self, marking: &Marking) -> anyhow::Result<()> {
        match self.change(marking).await {
            Ok(()) => self.inbox.marked(marking.seq, &marking.wanted).await,
            Err(error) => {
                let until = again(&error);
                warn!(seq = marking.seq, %error, again = until.is_some(), "a mark could not be shown");
                self.inbox.marks_postponed(marking.seq, until).await
            }
        }
    }

    async fn change(&self, marking: &Marking) -> Result<(), ApiError> {
        let Place::Slack(place) = &marking.place else { return Ok(()) };
        for name in marking.wanted.difference(&marking.shown).filter_map(|mark| self.emoji.get(mark)) {
            self.api.add_reaction(&place.channel, &place.ts, name).await?;
        }
        for name in marking.shown.difference(&marking.wanted).filter_map(|mark| self.emoji.get(mark)) {
            self.api.remove_reaction(&place.channel, &place.ts, name).await?;
        }
        Ok(())
    }

    async fn say(&self, due: &Due) -> anyhow::Result<()> {
        let (Place::Slack(place), Person::Slack(user)) = (&due.place, &due.author) else {
            return self.inbox.notice_said(due.seq, due.key.clone()).await;
        };
        match self.api.post_ephemeral(&place.channel, user, place.thread.as_deref(), &escape(&due.text)).await {
            Ok(()) => {
                debug!(seq = due.seq, about = %due.key, "told");
                self.inbox.notice_said(due.seq, due.key.clone()).await
            }
            Err(error) => {
                let until = again(&error);
                warn!(seq = due.seq, about = %due.key, %error, again = until.is_some(), "a notice could not be told");
                self.inbox.notice_postponed(due.seq, due.key.clone(), until).await
            }
        }
    }
}

/// When to try again; `None` when it is no use (the message is gone, the bot is not in the channel).
fn again(error: &ApiError) -> Option<Timestamp> {
    let wait = match error {
        ApiError::Refused { .. } | ApiError::NoToken => return None,
        ApiError::RateLimited { retry_after } => *retry_after,
        ApiError::NeedsAttention { .. } | ApiError::MissingScope { .. } => Duration::from_secs(300),
        ApiError::Transport(_) => AGAIN,
    };
    Timestamp::now().checked_add(SignedDuration::try_from(wait).unwrap_or(SignedDuration::from_secs(300))).ok()
}

async fn until(moment: Option<Timestamp>) {
    match moment {
        Some(moment) => sleep(Duration::try_from(moment.duration_since(Timestamp::now())).unwrap_or_default()).await,
        None => std::future::pending().await,
    }
}
