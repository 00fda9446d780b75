//! The ledger's hand: takes records out of the outbox and writes them on the ticket.
//!
//! Owns patience with GitHub: order within a work item, the space between writes, limits, and reading back before
//! writing again. It must not know what a record says, only that its last line is an envelope.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::api::{Api, ApiError};
use crate::core::envelope::{Envelope, EnvelopeKey};
use crate::core::feedback;
use crate::inbox::Inbox;
use crate::inbox::records::Waiting;

/// GitHub asks for a second between writes (platform-facts G); a lone write goes at once.
const SPACE: Duration = Duration::from_secs(1);

/// Longest wait after failures that say nothing about when to come back.
const LONGEST_WAIT: Duration = Duration::from_secs(300);

/// How far clocks may differ when the ticket is read back.
const CLOCK_SLACK: SignedDuration = SignedDuration::from_mins(5);

/// Writes the outbox to GitHub.
#[derive(Debug)]
pub struct Ledger {
    inbox: Inbox,
    api: Api,
    key: EnvelopeKey,
    started: Timestamp,
    next_write: watch::Sender<Instant>,
}

/// What became of one attempt.
enum Attempt {
    Landed(String),
    Later(ApiError),
    Never(ApiError),
}

impl Ledger {
    /// A ledger; `started` is when this process did: what arrived before may have been written by another one.
    pub fn new(inbox: Inbox, api: Api, key: EnvelopeKey, started: Timestamp) -> Self {
        Self { inbox, api, key, started, next_write: watch::Sender::new(Instant::now()) }
    }

    /// Since or until when the next write may begin: a record is not waited for while none may.
    pub fn next_write(&self) -> watch::Receiver<Instant> {
        self.next_write.subscribe()
    }

    /// Works until told to stop; the write under way is finished.
    pub async fn run(mut self, stop: CancellationToken) -> anyhow::Result<()> {
        let mut changes = self.inbox.changes();
        while !stop.is_cancelled() {
            changes.mark_unchanged();
            let (due, next) = self.inbox.records_due(Timestamp::now()).await?;
            if let Some(waiting) = due {
                let next_write = *self.next_write.borrow();
                tokio::select! {
                    () = sleep_until(next_write) => self.write(waiting).await?,
                    () = stop.cancelled() => {}
                }
                continue;
            }
            tokio::select! {
                changed = changes.changed() => if changed.is_err() { return Ok(()) },
                () = until(next) => {}
                () = stop.cancelled() => {}
            }
        }
        Ok(())
    }

    async fn write(&mut self, waiting: Waiting) -> anyhow::Result<()> {
        let now = Timestamp::now();
        let (seq, part) = (waiting.seq, waiting.part);
        match self.attempt(&waiting).await? {
            Attempt::Landed(link) => {
                info!(id = %waiting.id, work_item = %waiting.work_item, part, "recorded");
                self.inbox.record_landed(seq, part, link, Timestamp::now()).await
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

    async fn attempt(&mut self, waiting: &Waiting) -> anyhow::Result<Attempt> {
        if waiting.may_be_there || waiting.arrived_at < self.started {
            match self.read_back(waiting).await {
                Ok(Some(link)) => return Ok(Attempt::Landed(link)),
                Ok(None) => {}
                Err(error) => return Ok(sorted(error)),
            }
        }
        self.inbox.record_posting(waiting.seq, waiting.part).await?;
        let outcome = self.api.comment(&waiting.work_item, &waiting.body).await;
        self.next_write.send_replace(Instant::now() + SPACE);
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

    /// A limit holds every write; other trouble holds its own work item, longer each time.
    fn wait_after(&mut self, error: &ApiError, tries: u32) -> Duration {
        let growing = Duration::from_secs(1 << tries.min(9)).min(LONGEST_WAIT);
        match error {
            ApiError::RateLimited(wait) => {
                let wait = (*wait).saturating_mul(1 << tries.min(4)).min(Duration::from_secs(3_600));
                self.next_write.send_replace(Instant::now() + wait);
                wait
            }
            ApiError::Unauthorized | ApiError::NoToken => growing.max(Duration::from_secs(30)),
            _ => growing,
        }
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

async fn until(moment: Option<Timestamp>) {
    match moment {
        Some(moment) => sleep(Duration::try_from(moment.duration_since(Timestamp::now())).unwrap_or_default()).await,
        None => std::future::pending().await,
    }
}
