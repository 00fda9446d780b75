//! What only `files.info` knows: where a stub's bytes are, and how far a transcript is.
//!
//! Owns the waiting for Slack to be ready. It must not download anything.

use std::time::Duration;

use tokio::time::sleep;
use tracing::info;

use super::api::{Api, ApiError};
use super::file::read_file;
use crate::core::attachment::{AttachmentRef, Reason, Transcript, Whereabouts};

/// A fresh upload has no URL for a moment (field report F3).
const FRESH_UPLOAD: [Duration; 3] = [Duration::from_millis(500), Duration::from_secs(1), Duration::from_secs(2)];

/// Completes a file whose event named nothing but its id: Slack Connect stubs, fresh uploads.
///
/// What stays a stub is named with a reason, never asked for again.
pub async fn ask(api: &Api, file: AttachmentRef) -> AttachmentRef {
    for wait in FRESH_UPLOAD.into_iter().map(Some).chain([None]) {
        match api.files_info(&file.id).await {
            Ok(answer) => match read_file(&answer).map(|found| completed(&file, found)) {
                Some(found) if found.bytes != Whereabouts::Ask => return found,
                _ => {}
            },
            Err(error) => {
                info!(file = %file.id, %error, "files.info");
                return AttachmentRef { bytes: Whereabouts::Nowhere(reason(&error)), ..file };
            }
        }
        match wait {
            Some(wait) => sleep(wait).await,
            None => break,
        }
    }
    AttachmentRef { bytes: Whereabouts::Nowhere(Reason::TransferFailed), ..file }
}

/// The transcript's state once Slack has ended its work on it, or after the last look.
pub async fn await_transcript(api: &Api, file: &AttachmentRef, looks: u32, wait: Duration) -> Transcript {
    let mut state = file.transcript.clone();
    for _ in 0..looks {
        if state != Transcript::Processing {
            break;
        }
        sleep(wait).await;
        if let Some(found) = api.files_info(&file.id).await.ok().and_then(|answer| read_file(&answer)) {
            state = found.transcript;
        }
    }
    state
}

/// How far a transcript is now. A file object that cannot be read says nothing new.
pub async fn transcript(api: &Api, file: &str) -> Result<Transcript, ApiError> {
    let answer = api.files_info(file).await?;
    Ok(read_file(&answer).map_or(Transcript::Processing, |found| found.transcript))
}

/// Whether Slack has no such file any more.
pub fn is_gone(error: &ApiError) -> bool {
    error.is_refusal("file_deleted") || error.is_refusal("file_not_found")
}

/// What the event said stays, where `files.info` says less.
fn completed(file: &AttachmentRef, found: AttachmentRef) -> AttachmentRef {
    let name = if found.name.is_empty() { file.name.clone() } else { found.name };
    AttachmentRef { name, link: found.link.or_else(|| file.link.clone()), id: file.id.clone(), ..found }
}

fn reason(error: &ApiError) -> Reason {
    match error {
        ApiError::NoToken => Reason::NoToken,
        ApiError::MissingScope { .. } | ApiError::NeedsAttention { .. } => Reason::NoScope,
        _ if is_gone(error) => Reason::Deleted,
        _ if error.is_refusal("access_denied") => Reason::NoScope,
        _ => Reason::TransferFailed,
    }
}
