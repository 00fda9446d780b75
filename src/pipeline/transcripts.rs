//! Transcripts that come late: Slack makes them after the clip was posted.
//!
//! Owns when Slack is asked again, and the message that brings what was found. It must not know where a file is stored.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use jiff::{SignedDuration, Timestamp};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::Pipeline;
use crate::core::attachment::{Attachment, AttachmentRef, Outcome, Reason, Source, Transcript};
use crate::core::grant::Verdict;
use crate::core::message::{Message, Supplement};
use crate::inbox::transcripts::Awaited;
use crate::inbox::{Row, until};
use crate::slack;
use crate::slack::api::ApiError;

/// A transcript is looked for at least so often; how long Slack takes for one was never measured (platform-facts B4).
const LONGEST_WAIT: Duration = Duration::from_secs(3_600);

/// After this long there will be none.
const GIVEN_UP_AFTER: SignedDuration = SignedDuration::from_hours(24);

/// Captions that cannot be read are asked for this often again, before the preview has to do.
const CAPTIONS_TRIES: u32 = 3;

impl Pipeline {
    /// Remembers the files whose transcripts Slack was still making, before their message goes on.
    pub(super) async fn await_transcripts(&self, row: &Row, files: &[Attachment]) -> anyhow::Result<()> {
        let unready: Vec<String> = files.iter().filter(|file| is_awaited(file)).map(|file| file.id.clone()).collect();
        if unready.is_empty() {
            return Ok(());
        }
        let now = Timestamp::now();
        self.inbox.await_transcripts(row.seq, unready, after(now, self.limits.transcript_poll), now).await
    }

    /// Looks for transcripts when Slack says that a file changed, and from time to time because it may not say so.
    pub(super) async fn follow_transcripts(self: Arc<Self>, stop: CancellationToken) -> anyhow::Result<()> {
        let mut changes = self.inbox.changes();
        while !stop.is_cancelled() {
            changes.mark_unchanged();
            let (due, next) = self.inbox.next_transcript(Timestamp::now()).await?;
            if let Some(awaited) = due {
                tokio::select! {
                    looked = self.look_for(awaited) => looked?,
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

    async fn look_for(&self, awaited: Awaited) -> anyhow::Result<()> {
        let (id, file) = (awaited.row.message.id.clone(), awaited.file.clone());
        let state = match slack::files::transcript(&self.slack, &file).await {
            Ok(state) => state,
            Err(error) if slack::files::is_gone(&error) => Transcript::None,
            Err(error) => {
                warn!(%id, %file, %error, "a transcript could not be looked for");
                return self.look_later(&awaited, least_wait(&error)).await;
            }
        };
        match state {
            Transcript::Processing => self.look_later(&awaited, Duration::ZERO).await,
            Transcript::None => {
                info!(%id, %file, "there is no transcript");
                self.inbox.transcript_given_up(awaited.row.seq, file).await
            }
            Transcript::Ready { captions, preview } => self.bring(awaited, captions, preview).await,
        }
    }

    async fn look_later(&self, awaited: &Awaited, least: Duration) -> anyhow::Result<()> {
        let (now, file) = (Timestamp::now(), awaited.file.clone());
        if now.duration_since(awaited.since) > GIVEN_UP_AFTER {
            info!(id = %awaited.row.message.id, %file, "the transcript did not come");
            return self.inbox.transcript_given_up(awaited.row.seq, file).await;
        }
        let due = after(now, wait(self.limits.transcript_poll, awaited.tries).max(least));
        self.inbox.transcript_postponed(awaited.row.seq, file, due).await
    }

    /// Puts the transcript into the lane, when the author of the clip may still speak.
    async fn bring(&self, awaited: Awaited, captions: Option<String>, preview: Option<String>) -> anyhow::Result<()> {
        let Awaited { row, file, tries, .. } = &awaited;
        let (Verdict::Allowed(allowed), Some(clip), Some(attached)) = (
            self.authorise(row),
            row.attachments.iter().find(|clip| clip.id == *file),
            row.message.attachments.iter().find(|attached| attached.id == *file),
        ) else {
            return self.inbox.transcript_given_up(row.seq, file.clone()).await;
        };
        let has_captions = captions.is_some();
        let words = self.captions(&allowed, captions).await;
        if words.is_none() && has_captions && *tries < CAPTIONS_TRIES {
            return self.look_later(&awaited, Duration::ZERO).await;
        }
        let Some(words) = words.or(preview) else {
            info!(id = %row.message.id, %file, "the transcript is empty");
            return self.inbox.transcript_given_up(row.seq, file.clone()).await;
        };
        info!(id = %row.message.id, %file, "a transcript came");
        let clip = Attachment { transcript: Some(words), transcript_pending: false, ..clip.clone() };
        self.inbox.transcript_came(row.seq, brought_by(&row.message, attached), clip, Timestamp::now()).await
    }
}

/// The message that brings a transcript.
fn brought_by(message: &Message, clip: &AttachmentRef) -> Message {
    Message {
        id: message.id.followed_by(&format!("transcript/{}", clip.id)),
        text: String::new(),
        quotes: Vec::new(),
        attachments: vec![clip.clone()],
        late: false,
        supplement: Some(Supplement::Transcript { of: message.id.clone(), name: clip.name.clone() }),
        ..message.clone()
    }
}

/// Whether a transcript may come that was not there yet. A pending file waits for it as a message of its own; of what was
/// not to be fetched, nothing is asked.
fn is_awaited(file: &Attachment) -> bool {
    let was_tried = match &file.outcome {
        Outcome::Saved(_) => true,
        Outcome::NotFetched(reason) => matches!(reason, Reason::TransferFailed | Reason::OverCap { .. }),
    };
    file.source == Source::Slack && file.transcript_pending && was_tried
}

fn least_wait(error: &ApiError) -> Duration {
    match error {
        ApiError::RateLimited { retry_after } => *retry_after,
        _ => Duration::ZERO,
    }
}

/// Twice as long after each look.
fn wait(first: Duration, tries: u32) -> Duration {
    first.saturating_mul(2_u32.saturating_pow(tries.saturating_add(1))).min(LONGEST_WAIT.max(first))
}

fn after(now: Timestamp, wait: Duration) -> Timestamp {
    SignedDuration::try_from(wait).ok().and_then(|wait| now.checked_add(wait).ok()).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_waits_for_a_transcript_double_up_to_an_hour() {
        let minute = Duration::from_secs(60);
        let minutes = |tries| wait(minute, tries).as_secs() / 60;
        assert_eq!([0, 1, 4, 5, 40, u32::MAX].map(minutes), [2, 4, 32, 60, 60, 60]);
    }
}
