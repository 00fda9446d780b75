//! The ledger's hand: takes records out of the outbox and writes them on the ticket.
//!
//! Owns patience with GitHub: order within a work item, the space between writes, limits, and reading back before
//! writing again. It must not know what a record says, only that its last line is an envelope.

use std::time::Duration;

use anyhow::Context as _;
use jiff::{SignedDuration, Timestamp};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::api::{Api, ApiError};
use super::pace::{Pace, Turn};
use crate::core::envelope::{Envelope, EnvelopeKey};
use crate::core::feedback;
use crate::inbox::records::Waiting;
use crate::inbox::{Inbox, until};

/// Longest wait after failures that say nothing about when to come back.
const LONGEST_WAIT: Duration = Duration::from_secs(300);

/// Longest wait for a limit that comes again and again.
const LONGEST_LIMIT: Duration = Duration::from_secs(3_600);

/// Shortest wait for a person to mend the token.
const ATTENTION: Duration = Duration::from_secs(30);

/// How far clocks may differ when the ticket is read back.
const CLOCK_SLACK: SignedDuration = SignedDuration::from_mins(5);

/// Writes the outbox to GitHub.
#[derive(Debug)]
pub struct Ledger {
    inbox: Inbox,
    api: Api,
    key: EnvelopeKey,
    started: Timestamp,
    pace: Pace,
}

/// What became of one attempt.
enum Attempt {
    Landed(String),
    Later(ApiError),
    Never(ApiError),
}

impl Ledger {
    /// A ledger; `started` is when this process did: what arrived before may have been written by another one.
    pub fn new(inbox: Inbox, api: Api, key: EnvelopeKey, started: Timestamp, pace: Pace) -> Self {
        Self { inbox, api, key, started, pace }
    }

    /// Works until told to stop; the write under way is finished.
    pub async fn run(self, stop: CancellationToken) -> anyhow::Result<()> {
        let mut changes = self.inbox.changes();
        while !stop.is_cancelled() {
            changes.mark_unchanged();
            let (due, next) = self.inbox.records_due(Timestamp::now()).await?;
            if due.is_some() {
                tokio::select! {
                    turn = self.pace.turn() => self.write_next(turn).await?,
                    () = stop.cancelled() => {}
                }
                continue;
            }
            tokio::select! {
                changed = changes.changed() => changed.context("the inbox has stopped")?,
                () = until(next) => {}
                () = stop.cancelled() => {}
            }
        }
        Ok(())
    }

    /// Writes what is due now that the turn has come: a limit may have held for an hour, and the operator may have dropped
    /// what waited.
    async fn write_next(&self, turn: Turn<'_>) -> anyhow::Result<()> {
        match self.inbox.records_due(Timestamp::now()).await? {
            (Some(waiting), _) => self.write(waiting, turn).await,
            (None, _) => Ok(()),
        }
    }

    async fn write(&self, waiting: Waiting, turn: Turn<'_>) -> anyhow::Result<()> {
        let (seq, part) = (waiting.seq, waiting.part);
        let attempt = self.attempt(&waiting, &turn).await?;
        let now = Timestamp::now();
        match attempt {
            Attempt::Landed(link) => {
                info!(id = %waiting.id, work_item = %waiting.work_item, part, "recorded");
                self.inbox.record_landed(seq, part, link, now).await
            }
            Attempt::Later(error) => {
                let wait = self.wait_after(&error, waiting.tries);
                warn!(id = %waiting.id, work_item = %waiting.work_item, %error, wait_s = wait.as_secs(), "the record waits");
                self.inbox.record_postponed(seq, part, error.to_string(), now + SignedDuration::try_from(wait)?).await
            }
            Attempt::Never(error) => {
                warn!(id = %waiting.id, work_item = %waiting.work_item, %error, "the ticket refused the record");
                let told = feedback::record_refused(&error.to_string());
                self.inbox.record_refused(seq, error.to_string(), told, now).await
            }
        }
    }

    async fn attempt(&self, waiting: &Waiting, turn: &Turn<'_>) -> anyhow::Result<Attempt> {
        if waiting.may_be_there || waiting.arrived_at < self.started {
            match self.read_back(waiting).await {
                Ok(Some(link)) => return Ok(Attempt::Landed(link)),
                Ok(None) => {}
                Err(error) => return Ok(sorted(error)),
            }
        }
        self.inbox.record_posting(waiting.seq, waiting.part).await?;
        let outcome = self.api.comment(&waiting.work_item, &waiting.body).await;
        turn.wrote();
        Ok(match outcome {
            Ok(comment) => Attempt::Landed(comment.html_url),
            Err(error) => sorted(error),
        })
    }

    /// The link of the record, if an earlier attempt wrote it.
    async fn read_back(&self, waiting: &Waiting) -> Result<Option<String>, ApiError> {
        let since = waiting.arrived_at.checked_sub(CLOCK_SLACK).unwrap_or(waiting.arrived_at);
        let comments = self.api.comments_since(&waiting.work_item, since).await?;
        let ours = comments.into_iter().find(|comment| {
            let envelope = comment.body.as_deref().and_then(|body| Envelope::of_comment(body, &self.key));
            envelope
                .is_some_and(|envelope| envelope.id == waiting.id && i64::try_from(envelope.part) == Ok(waiting.part))
        });
        Ok(ours.map(|comment| comment.html_url))
    }

    /// A limit holds every write; other trouble holds its own work item.
    fn wait_after(&self, error: &ApiError, tries: u32) -> Duration {
        let wait = wait_after(error, tries);
        if matches!(error, ApiError::RateLimited(_)) {
            self.pace.hold(wait);
        }
        wait
    }
}

/// How long a record waits after a failure: longer each time.
fn wait_after(error: &ApiError, tries: u32) -> Duration {
    let growing = Duration::from_secs(1 << tries.min(9)).min(LONGEST_WAIT);
    match error {
        ApiError::RateLimited(wait) => wait.saturating_mul(1 << tries.min(4)).min(LONGEST_LIMIT),
        ApiError::Unauthorized | ApiError::NoToken => growing.max(ATTENTION),
        ApiError::NotFound(_) | ApiError::Refused { .. } | ApiError::Transport(_) => growing,
    }
}

fn sorted(error: ApiError) -> Attempt {
    match error {
        ApiError::NotFound(_) | ApiError::Refused { .. } => Attempt::Never(error),
        ApiError::NoToken | ApiError::Unauthorized | ApiError::RateLimited(_) | ApiError::Transport(_) => {
            Attempt::Later(error)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors() -> [(ApiError, bool); 6] {
        [
            (ApiError::NotFound("o/r#1".into()), true),
            (ApiError::Refused { status: 410, message: "locked".into() }, true),
            (ApiError::NoToken, false),
            (ApiError::Unauthorized, false),
            (ApiError::RateLimited(Duration::from_secs(60)), false),
            (ApiError::Transport(anyhow::anyhow!("reset")), false),
        ]
    }

    #[test]
    fn only_what_github_will_never_take_is_given_up() {
        for (error, never) in errors() {
            let name = error.to_string();
            assert_eq!(matches!(sorted(error), Attempt::Never(_)), never, "{name}");
        }
    }

    #[test]
    fn waits_grow_and_end_somewhere() {
        let seconds = |error: &ApiError, tries| wait_after(error, tries).as_secs();
        let table = errors().map(|(error, _)| [0, 1, 3, 9, u32::MAX].map(|tries| seconds(&error, tries)));
        let [_, _, no_token, unauthorized, limited, transport] = table;
        assert_eq!(transport, [1, 2, 8, 300, 300]);
        assert_eq!(no_token, [30, 30, 30, 300, 300]);
        assert_eq!(unauthorized, no_token);
        assert_eq!(limited, [60, 120, 480, 960, 960]);
        assert_eq!(seconds(&ApiError::RateLimited(Duration::from_secs(3_000)), 4), 3_600);
    }
}
