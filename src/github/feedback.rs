//! Feedback on GitHub: reactions on what was said, and rare notices as comments.
//!
//! Owns putting what the store wants to be shown where people see it, at the pace of all writes. It must not know what a
//! mark means. A comment is read by everybody and mailed to many, so that only what a person must know becomes one; a
//! reaction tells the rest, and triggers no webhook.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use super::api::{Api, ApiError, Reaction};
use super::pace::Pace;
use crate::core::act::Act;
use crate::core::envelope::{Envelope, EnvelopeKey};
use crate::core::feedback::Mark;
use crate::core::message::{GitHubPlace, MessageId, Place, Platform};
use crate::core::record;
use crate::inbox::Inbox;
use crate::inbox::notices::{Due, Marking};

/// How long a mark waits after trouble that says nothing about when to come back.
const AGAIN: Duration = Duration::from_secs(10);

/// How far back a notice is looked for before it is written again.
const LOOK_BACK: SignedDuration = SignedDuration::from_hours(24);

/// Shows what the store wants to be shown on GitHub.
#[derive(Debug)]
pub struct Feedback {
    /// What is to be shown.
    pub inbox: Inbox,
    /// GitHub.
    pub api: Api,
    /// When it may be written to.
    pub pace: Pace,
    /// Signs notices, so that they never come back as messages.
    pub key: EnvelopeKey,
}

impl Feedback {
    /// Works until told to stop; a write under way is finished.
    pub async fn run(self, stop: CancellationToken) -> anyhow::Result<()> {
        let mut changes = self.inbox.changes();
        while !stop.is_cancelled() {
            changes.mark_unchanged();
            let now = Timestamp::now();
            let (marking, next_mark) = self.inbox.marking(Platform::GitHub, now).await?;
            if let Some(marking) = &marking {
                self.mark(marking, &stop).await?;
            }
            let (due, next_notice) = self.inbox.take_notice(Platform::GitHub, now).await?;
            if let Some(due) = &due {
                self.say(due, &stop).await?;
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

    async fn mark(&self, marking: &Marking, stop: &CancellationToken) -> anyhow::Result<()> {
        match self.change(marking, stop).await {
            Ok(true) => self.inbox.marked(marking.seq, &marking.wanted).await,
            Ok(false) => Ok(()),
            Err(error) => {
                let until = self.again(&error);
                warn!(seq = marking.seq, %error, again = until.is_some(), "a reaction could not be shown");
                self.inbox.marks_postponed(marking.seq, until).await
            }
        }
    }

    /// Answers false when usher stops before it is done: nothing is lost, a reaction may be put twice.
    async fn change(&self, marking: &Marking, stop: &CancellationToken) -> Result<bool, ApiError> {
        let place = match &marking.place {
            Place::GitHub(place) if place.takes_reactions() => place,
            _ => return Ok(true),
        };
        let (wanted, shown) = (reactions(&marking.wanted), reactions(&marking.shown));
        for reaction in wanted.difference(&shown) {
            let Some(()) = self.in_turn(self.api.react(place, *reaction), stop).await.transpose()? else {
                return Ok(false);
            };
        }
        for reaction in shown.difference(&wanted) {
            let Some(()) = self.in_turn(self.api.unreact(place, *reaction), stop).await.transpose()? else {
                return Ok(false);
            };
        }
        Ok(true)
    }

    async fn say(&self, due: &Due, stop: &CancellationToken) -> anyhow::Result<()> {
        let place = match &due.place {
            Place::GitHub(place) if deserves_a_comment(&due.key) => place,
            _ => return self.inbox.notice_said(due.seq, due.key.clone()).await,
        };
        match self.in_turn(self.comment(place, due), stop).await {
            None => self.inbox.notice_postponed(due.seq, due.key.clone(), Some(Timestamp::now())).await,
            Some(Ok(())) => {
                debug!(seq = due.seq, about = %due.key, "told");
                self.inbox.notice_said(due.seq, due.key.clone()).await
            }
            Some(Err(error)) => {
                let until = self.again(&error);
                warn!(seq = due.seq, about = %due.key, %error, again = until.is_some(), "a notice could not be told");
                self.inbox.notice_postponed(due.seq, due.key.clone(), until).await
            }
        }
    }

    /// Writes a notice unless it is there: an answer may have been lost on the way. Notices are rare, one look is cheap.
    async fn comment(&self, place: &GitHubPlace, due: &Due) -> Result<(), ApiError> {
        let now = Timestamp::now();
        let id = due.id.followed_by(&format!("notice/{}", due.key));
        let since = now.checked_sub(LOOK_BACK).unwrap_or(now);
        let comments = self.api.comments_since(&place.item, since).await?;
        if comments.iter().filter_map(|comment| comment.body.as_deref()).any(|body| self.is_notice(body, &id)) {
            return Ok(());
        }
        let (act, actor) = (Act::WorkItemReply, due.author.to_string());
        let envelope = Envelope { id, act, actor, time: now, part: 1, parts: 1 };
        let body = record::notice(&due.text, &envelope, &self.key);
        self.api.comment(&place.item, &body).await.map(drop)
    }

    fn is_notice(&self, body: &str, id: &MessageId) -> bool {
        Envelope::of_comment(body, &self.key).is_some_and(|envelope| envelope.id == *id)
    }

    /// Does one write when it is its turn; `None` when usher stops before that.
    async fn in_turn<T>(&self, write: impl Future<Output = T>, stop: &CancellationToken) -> Option<T> {
        let turn = tokio::select! {
            turn = self.pace.turn() => turn,
            () = stop.cancelled() => return None,
        };
        let done = write.await;
        turn.wrote();
        Some(done)
    }

    /// When to try again; `None` when it is no use (the comment is gone, the repository is read-only).
    fn again(&self, error: &ApiError) -> Option<Timestamp> {
        let wait = match error {
            ApiError::NotFound(_) | ApiError::Refused { .. } => return None,
            ApiError::RateLimited(wait) => {
                self.pace.hold(*wait);
                *wait
            }
            ApiError::NoToken | ApiError::Unauthorized => Duration::from_secs(300),
            ApiError::Transport(_) => AGAIN,
        };
        Timestamp::now().checked_add(SignedDuration::try_from(wait).unwrap_or(SignedDuration::from_secs(300))).ok()
    }
}

/// The reactions for these marks. GitHub has eight and no hourglass: a wait that ends by itself shows nothing.
fn reactions(marks: &BTreeSet<Mark>) -> BTreeSet<Reaction> {
    let reaction = |mark: &Mark| match mark {
        Mark::Received => Some(Reaction::Eyes),
        Mark::Waiting => None,
        Mark::Done => Some(Reaction::Rocket),
        Mark::Unsure | Mark::Failed => Some(Reaction::Confused),
    };
    marks.iter().filter_map(reaction).collect()
}

/// A hold ends by itself, and a comment about comments that come too fast would be one more of them.
fn deserves_a_comment(key: &str) -> bool {
    !key.starts_with("held:") && key != "refused:too-fast"
}

async fn until(moment: Option<Timestamp>) {
    match moment {
        Some(moment) => sleep(Duration::try_from(moment.duration_since(Timestamp::now())).unwrap_or_default()).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::feedback::{Fate, marks};

    #[test]
    fn a_fate_is_told_in_the_reactions_that_github_has() {
        for (fate, expected) in [
            (Fate::Silent, vec![]),
            (Fate::UnderWay, vec![Reaction::Eyes]),
            (Fate::Held, vec![Reaction::Eyes]),
            (Fate::Done, vec![Reaction::Eyes, Reaction::Rocket]),
            (Fate::Unsure, vec![Reaction::Eyes, Reaction::Confused]),
            (Fate::Failed, vec![Reaction::Eyes, Reaction::Confused]),
        ] {
            assert_eq!(reactions(&marks(fate)), expected.into_iter().collect(), "{fate:?}");
        }
    }

    #[test]
    fn only_what_a_person_must_know_becomes_a_comment() {
        for key in ["files", "refused:not-published", "unsure", "record", "dropped"] {
            assert!(deserves_a_comment(key), "{key}");
        }
        assert!(!deserves_a_comment("held:typing") && !deserves_a_comment("refused:too-fast"));
    }
}
