//! Supplements: edits and deletions of a message that usher knows already.
//!
//! Owns whether one is anybody's business. A supplement is a message like any other from then on; it must not know how one
//! is fetched, recorded or delivered.

use jiff::Timestamp;

use super::Pipeline;
use crate::core::grant::{Authorised, Refusal};
use crate::core::message::{Place, Supplement};

impl Pipeline {
    /// Why an edit or a deletion is not acted on, if it is not. A deletion drops what was not typed yet.
    ///
    /// What never went to the agent needs no correction. On GitHub the item may well be older than usher.
    pub(super) async fn supplement(
        &self,
        allowed: &Authorised,
        seq: i64,
        now: Timestamp,
    ) -> anyhow::Result<Option<Refusal>> {
        let message = allowed.message();
        let (of, is_deletion) = match &message.supplement {
            Some(Supplement::Edited { of }) => (of, false),
            Some(Supplement::Deleted { of }) => (of, true),
            Some(Supplement::LateFile { .. } | Supplement::Transcript { .. }) | None => return Ok(None),
        };
        if let Place::Slack(_) = message.place {
            match self.inbox.words_before(of.clone(), seq).await? {
                None => return Ok(Some(Refusal::UnknownOriginal)),
                Some(words) if !is_deletion && words == message.text && message.attachments.is_empty() => {
                    return Ok(Some(Refusal::Unchanged));
                }
                Some(_) => {}
            }
        }
        if is_deletion {
            self.inbox.withdraw(of.clone(), now).await?;
        }
        Ok(None)
    }
}
