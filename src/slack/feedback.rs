//! Feedback in Slack: marks on the message itself, and notices that only its sender sees.
//!
//! Owns putting what the store wants to be shown where people see it. It must not know what a mark means: which marks a
//! message should carry is in the inbox, so that a restart shows what is true.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context as _;
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use super::api::{Api, ApiError, escape};
use crate::core::feedback::Mark;
use crate::core::message::{Person, Place, Platform};
use crate::inbox::notices::{Due, Marking};
use crate::inbox::{Inbox, until};

/// How long a mark waits after trouble that says nothing about when to come back.
const AGAIN: Duration = Duration::from_secs(10);

/// How long a mark waits for a person to mend the app.
const ATTENTION: Duration = Duration::from_secs(300);

/// How long everything waits after such trouble, so that a Slack that is away is not asked once a message.
const BREATH: Duration = Duration::from_secs(1);

/// Shows what the store wants to be shown.
#[derive(Debug)]
pub struct Feedback {
    inbox: Inbox,
    api: Api,
    emoji: BTreeMap<Mark, String>,
    marks_from: Timestamp,
    notices_from: Timestamp,
}

impl Feedback {
    /// `emoji`: the reaction for each mark; a mark without one is not shown.
    pub fn new(inbox: Inbox, api: Api, emoji: BTreeMap<Mark, String>) -> Self {
        let from = Timestamp::UNIX_EPOCH;
        Self { inbox, api, emoji, marks_from: from, notices_from: from }
    }

    /// Works until told to stop.
    pub async fn run(mut self, stop: CancellationToken) -> anyhow::Result<()> {
        let mut changes = self.inbox.changes();
        while !stop.is_cancelled() {
            changes.mark_unchanged();
            let (marked, next_mark) = self.next_mark().await?;
            let (said, next_notice) = self.next_notice().await?;
            if marked || said {
                continue;
            }
            tokio::select! {
                changed = changes.changed() => changed.context("the inbox has stopped")?,
                () = until(next_mark.into_iter().chain(next_notice).min()) => {}
                () = stop.cancelled() => {}
            }
        }
        Ok(())
    }

    /// Whether there was a message to mark, else when to look again. A limit holds the marks of every message: Slack
    /// counts by method.
    async fn next_mark(&mut self) -> anyhow::Result<(bool, Option<Timestamp>)> {
        let now = Timestamp::now();
        if now < self.marks_from {
            return Ok((false, Some(self.marks_from)));
        }
        let (marking, next) = self.inbox.marking(Platform::Slack, now).await?;
        let Some(marking) = marking else { return Ok((false, next)) };
        match self.change(&marking).await {
            Ok(()) => self.inbox.marked(marking.seq, &marking.wanted).await?,
            Err(error) => {
                let now = Timestamp::now();
                let until = again(&error, now);
                warn!(seq = marking.seq, %error, again = until.is_some(), "a mark could not be shown");
                self.marks_from = after(now, pause(&error));
                self.inbox.marks_postponed(marking.seq, until).await?;
            }
        }
        Ok((true, None))
    }

    /// As [`Self::next_mark`], for notices.
    async fn next_notice(&mut self) -> anyhow::Result<(bool, Option<Timestamp>)> {
        let now = Timestamp::now();
        if now < self.notices_from {
            return Ok((false, Some(self.notices_from)));
        }
        let (due, next) = self.inbox.take_notice(Platform::Slack, now).await?;
        let Some(due) = due else { return Ok((false, next)) };
        self.say(&due).await?;
        Ok((true, None))
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

    async fn say(&mut self, due: &Due) -> anyhow::Result<()> {
        let (Place::Slack(place), Person::Slack(user)) = (&due.place, &due.author) else {
            return self.inbox.notice_said(due.seq, due.key.clone()).await;
        };
        match self.api.post_ephemeral(&place.channel, user, place.thread.as_deref(), &escape(&due.text)).await {
            Ok(()) => {
                debug!(seq = due.seq, about = %due.key, "told");
                self.inbox.notice_said(due.seq, due.key.clone()).await
            }
            Err(error) => {
                let now = Timestamp::now();
                let until = again(&error, now);
                self.notices_from = after(now, pause(&error));
                warn!(seq = due.seq, about = %due.key, %error, again = until.is_some(), "a notice could not be told");
                self.inbox.notice_postponed(due.seq, due.key.clone(), until).await
            }
        }
    }
}

/// When to try again; `None` when it is no use (the message is gone, the bot is not in the channel).
fn again(error: &ApiError, now: Timestamp) -> Option<Timestamp> {
    let wait = match error {
        ApiError::Refused { .. } | ApiError::NoToken => return None,
        ApiError::RateLimited { retry_after } => *retry_after,
        ApiError::NeedsAttention { .. } | ApiError::MissingScope { .. } => ATTENTION,
        ApiError::Transport(_) => AGAIN,
    };
    Some(after(now, wait))
}

/// How long this failure holds the other messages too.
const fn pause(error: &ApiError) -> Duration {
    match error {
        ApiError::RateLimited { retry_after } => *retry_after,
        ApiError::Transport(_) | ApiError::NeedsAttention { .. } | ApiError::MissingScope { .. } => BREATH,
        ApiError::Refused { .. } | ApiError::NoToken => Duration::ZERO,
    }
}

fn after(now: Timestamp, wait: Duration) -> Timestamp {
    now.checked_add(wait).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_shown_later_is_tried_later_and_a_limit_holds_everybody() {
        let limited = ApiError::RateLimited { retry_after: Duration::from_secs(7) };
        let attention = ApiError::NeedsAttention { error: "invalid_auth".into() };
        let scope = ApiError::MissingScope { needed: "reactions:write".into() };
        let refused = ApiError::Refused { error: "message_not_found".into() };
        let now = Timestamp::UNIX_EPOCH;
        for (error, postponed, held) in [
            (limited, Some(7), 7),
            (ApiError::Transport(anyhow::anyhow!("reset")), Some(10), 1),
            (attention, Some(300), 1),
            (scope, Some(300), 1),
            (refused, None, 0),
            (ApiError::NoToken, None, 0),
        ] {
            assert_eq!(again(&error, now).map(Timestamp::as_second), postponed, "{error}");
            assert_eq!(pause(&error).as_secs(), held, "{error}");
        }
    }
}
