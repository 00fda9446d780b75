//! Admission: from accepted to a lane, or refused.
//!
//! Owns the wait for a mention's twin and the second look at the platform. Nothing of a stranger's is read, fetched or
//! said here; a refused message loses its words.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use jiff::Timestamp;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tracing::{info, warn};

use super::Pipeline;
use crate::core::breaker;
use crate::core::classify::{Bound, classify};
use crate::core::feedback;
use crate::core::grant::{Authorised, Refusal, Verdict, authorise};
use crate::core::message::{Message, MessageId, Place, Platform, SlackPlace, Spot};
use crate::core::session::{Conversation, Listen};
use crate::core::work_item::WorkItem;
use crate::github::completion::completed;
use crate::inbox::messages::Newcomer;
use crate::slack::event::{PostedIn, What, read_post};

/// How long admission sleeps when nobody waits for a twin.
const NO_TWIN: Duration = Duration::from_secs(3_600);

/// How many posts are read again at once.
const MAX_LOOKUPS: usize = 8;

/// How long GitHub may take to complete a message, which holds its lane that long.
const GITHUB_PATIENCE: Duration = Duration::from_secs(5);

/// The second looks under way, each message in one at most.
#[derive(Default)]
pub(super) struct Lookups {
    tasks: JoinSet<MessageId>,
    running: BTreeSet<MessageId>,
}

impl Lookups {
    /// Waits until one ends; `None` when there is none.
    pub(super) async fn next_ended(&mut self) -> Option<anyhow::Result<()>> {
        let ended = self.tasks.join_next().await?.context("a second look panicked");
        Some(ended.map(|id| {
            self.running.remove(&id);
        }))
    }

    fn begin(&mut self, pipeline: &Arc<Pipeline>, message: Message) {
        if self.running.len() < MAX_LOOKUPS && self.running.insert(message.id.clone()) {
            self.tasks.spawn(Arc::clone(pipeline).look_again(message));
        }
    }
}

/// The order that a newcomer must not leave: its lane's, or while a pull request's is being asked for, its own.
fn lane(newcomer: &Newcomer) -> Option<WorkItem> {
    match (&newcomer.bound, &newcomer.message.place) {
        (Some((work_item, _)), _) => Some(work_item.clone()),
        (None, Place::GitHub(place)) => Some(place.item.clone()),
        (None, Place::Slack(_)) => None,
    }
}

/// Whose session a comment on a pull request speaks to is asked for only when the pull request has none of its own.
fn may_lack_something(newcomer: &Newcomer) -> bool {
    match &newcomer.message.place {
        Place::GitHub(place) => matches!(place.spot, Spot::Review(_)) || newcomer.bound.is_none(),
        Place::Slack(_) => true,
    }
}

impl Pipeline {
    /// Admits or refuses everybody who does not wait for a twin, in order of arrival; answers when the next wait ends.
    ///
    /// A message whose twin may still come holds its own lane, so that nothing overtakes it, and no other.
    pub(super) async fn admit(self: &Arc<Self>, lookups: &mut Lookups) -> anyhow::Result<Instant> {
        let now = Timestamp::now();
        let mut next = Instant::now() + NO_TWIN;
        let mut waiting: BTreeSet<WorkItem> = BTreeSet::new();
        for newcomer in self.inbox.newcomers().await? {
            let lane = lane(&newcomer);
            if lane.as_ref().is_some_and(|lane| waiting.contains(lane)) {
                continue;
            }
            if self.is_stranger(&newcomer.message) {
                self.refuse_or_admit(newcomer, now).await?;
                continue;
            }
            match newcomer.twin_until.filter(|_| may_lack_something(&newcomer)) {
                None => self.refuse_or_admit(newcomer, now).await?,
                Some(until) => {
                    waiting.extend(lane);
                    match Duration::try_from(until.duration_since(now)).unwrap_or_default() {
                        Duration::ZERO => lookups.begin(self, newcomer.message),
                        left => next = next.min(Instant::now() + left),
                    }
                }
            }
        }
        Ok(next)
    }

    fn is_stranger(&self, message: &Message) -> bool {
        self.grants.name_of(&message.author).is_none()
    }

    async fn refuse_or_admit(&self, newcomer: Newcomer, now: Timestamp) -> anyhow::Result<()> {
        let bound =
            newcomer.bound.map(|(work_item, conversation)| Bound { work_item, listen: self.listen(&conversation) });
        let classification = classify(&newcomer.message, bound.as_ref());
        let (id, addressed) = (newcomer.message.id.clone(), newcomer.message.addressed);
        let platform = newcomer.message.place.platform();
        let is_supplement = newcomer.message.supplement.is_some();
        let mut verdict = self.not_too_fast(authorise(&self.grants, newcomer.message, classification)).await?;
        if let Verdict::Allowed(allowed) = &verdict
            && let Some(refusal) = self.supplement(allowed, newcomer.seq, now).await?
        {
            verdict = Verdict::Refused(refusal);
        }
        match verdict {
            Verdict::Allowed(allowed) => {
                info!(%id, work_item = %allowed.work_item(), act = %allowed.act(), "admitted");
                let permalink = self.permalink(&allowed);
                self.inbox.admit(newcomer.seq, allowed.work_item().clone(), permalink, now).await?;
                self.nudges.of(allowed.work_item()).notify_one();
                Ok(())
            }
            Verdict::Refused(refusal) => {
                info!(%id, reason = refusal.code(), "refused");
                // Why the message was refused was told then; what is added to it tells nothing more.
                let told = feedback::refused(refusal, addressed, platform).filter(|_| !is_supplement);
                self.inbox.refuse(newcomer.seq, refusal.code(), told, now).await
            }
        }
    }

    /// A work item takes so much from GitHub and no more. What was taken is in the store, so that a restart changes nothing.
    async fn not_too_fast(&self, verdict: Verdict) -> anyhow::Result<Verdict> {
        let Verdict::Allowed(allowed) = &verdict else { return Ok(verdict) };
        let (work_item, said) = (allowed.work_item(), allowed.message().sent_at);
        if allowed.message().place.platform() != Platform::GitHub {
            return Ok(verdict);
        }
        let taken = self.inbox.taken_from_github(work_item, breaker::counted_since(said), said).await?;
        if !breaker::is_too_fast(taken) {
            return Ok(verdict);
        }
        if self
            .tripped
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(work_item.clone(), said)
            .is_none_or(|last| last < breaker::counted_since(said))
        {
            warn!(%work_item, most = breaker::MOST, "more is said on GitHub than people say, so the rest is refused: is a bot answering?");
        }
        Ok(Verdict::Refused(Refusal::TooFast))
    }

    /// As the binding says; else threads and DMs as configured, rooms only when usher is mentioned.
    fn listen(&self, conversation: &Conversation) -> Listen {
        let is_room = conversation.thread.is_none() && !conversation.channel.starts_with('D');
        conversation.listen.unwrap_or(if is_room { Listen::Mentions } else { self.listen })
    }

    fn permalink(&self, allowed: &Authorised) -> Option<String> {
        let Place::Slack(place) = &allowed.message().place else { return None };
        self.workspace.borrow().as_ref().map(|workspace| workspace.permalink(place))
    }

    /// The twin did not come: the post itself, read by its time stamp, has what the mention lacked.
    async fn look_again(self: Arc<Self>, message: Message) -> MessageId {
        let id = message.id.clone();
        let found = self.read_again(&message).await;
        if let Err(error) = self.inbox.complete(id.clone(), found, Timestamp::now()).await {
            warn!(%id, error = format!("{error:#}"), "the second look could not be stored");
        }
        id
    }

    async fn read_again(&self, message: &Message) -> Option<Message> {
        match &message.place {
            Place::Slack(place) => self.read_post_again(message, place).await,
            Place::GitHub(_) => self.ask_github(message).await,
        }
    }

    async fn ask_github(&self, message: &Message) -> Option<Message> {
        let asked = completed(&self.github, message, self.github_host.as_deref());
        match timeout(GITHUB_PATIENCE, asked).await {
            Ok(Ok(whole)) => Some(whole),
            Ok(Err(error)) => {
                warn!(id = %message.id, %error, "GitHub did not say the rest: it goes on as its events brought it");
                None
            }
            Err(_) => {
                warn!(id = %message.id, "GitHub takes too long to say the rest: it goes on as its events brought it");
                None
            }
        }
    }

    async fn read_post_again(&self, message: &Message, place: &SlackPlace) -> Option<Message> {
        let post = match self.slack.post_at(&place.channel, &place.ts, place.thread.as_deref()).await {
            Ok(post) => post?,
            Err(error) => {
                warn!(id = %message.id, %error, "the post could not be read again: it goes on as the mention brought it");
                return None;
            }
        };
        let workspace = self.workspace.borrow().clone();
        let own = workspace.as_ref().map(|workspace| workspace.user_id.as_str());
        let posted_in = PostedIn { team: &place.team, channel: &place.channel, kind: place.conversation };
        match read_post(&post, posted_in, own, &self.names) {
            What::Message { message, .. } => Some(*message),
            What::FileChanged(_) | What::PassedOver(_) => None,
        }
    }
}
