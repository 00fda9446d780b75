//! The pipeline: what happens to a message, from the inbox to the pane. Read top to bottom, it is the whole story.
//!
//! Owns the order of the steps and what is written between them. It must not know how a step is done: each lives in a
//! module of its own, and each takes what only the step before makes.

mod admission;
mod delivery;
mod files;
mod supplements;
mod transcripts;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use jiff::Timestamp;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use tracing::{error, info};

use crate::core::attachment::Attachment;
use crate::core::classify::{Bound, classify};
use crate::core::envelope::EnvelopeKey;
use crate::core::grant::{Authorised, Grants, Verdict, authorise};
use crate::core::message::{ConversationKind, Place, Supplement};
use crate::core::prompt::Prompt;
use crate::core::record::{Disclosure, Record};
use crate::core::session::Listen;
use crate::core::work_item::WorkItem;
use crate::fetch::Fetcher;
use crate::inbox::records::Progress;
use crate::inbox::{Inbox, Row, Stage};
use crate::layout::Layout;
use crate::slack::Workspace;
use crate::slack::event::Names;
use crate::tmux::Tmux;
use crate::{config, github, slack};

pub use files::Downloads;

/// Everything that the steps work with.
#[derive(Debug)]
pub struct Pipeline {
    /// The durable truth.
    pub inbox: Inbox,
    /// Who may do what.
    pub grants: Grants,
    /// The names of people, for mentions.
    pub names: Names,
    /// Which messages of a bound thread or DM count, when the binding does not say.
    pub listen: Listen,
    /// Whether words of private conversations may stand on a public ticket.
    pub disclose_private: bool,
    /// Slack's Web API.
    pub slack: slack::api::Api,
    /// The Slack workspace, once Slack said which.
    pub workspace: watch::Receiver<Option<Workspace>>,
    /// GitHub's REST API.
    pub github: github::api::Api,
    /// Downloads.
    pub fetcher: Fetcher,
    /// Downloads that outlived their message's deadline.
    pub downloads: Downloads,
    /// When a work item last took no more from GitHub, so that the log says it once.
    pub tripped: Mutex<BTreeMap<WorkItem, Timestamp>>,
    /// Panes.
    pub tmux: Tmux,
    /// When the ticket may be written to again.
    pub next_write: watch::Receiver<Instant>,
    /// How a GitHub event reads in the pane.
    pub prompt: Prompt,
    /// The Enterprise host, `None` for github.com.
    pub github_host: Option<String>,
    /// The key that signs records.
    pub key: EnvelopeKey,
    /// Where everything is.
    pub layout: Layout,
    /// Caps and deadlines of files.
    pub limits: config::Attachments,
    /// How long the delivery waits for the record.
    pub patience: Duration,
    /// Rings a lane when a message enters it.
    pub nudges: Nudges,
    /// How often a held pane is looked at.
    pub pane: config::Pane,
}

/// A bell for each lane that was ever held or entered: a new message makes its own held pane be looked at, and no other.
#[derive(Debug, Default)]
pub struct Nudges(Mutex<HashMap<WorkItem, Arc<Notify>>>);

impl Nudges {
    fn of(&self, lane: &WorkItem) -> Arc<Notify> {
        let mut bells = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(bells.entry(lane.clone()).or_default())
    }
}

/// Why a lane stops before its message ended.
enum Pause {
    /// usher is stopping; the message resumes from its stage.
    Stopping,
    /// The operator dropped it.
    Dropped,
}

impl Pipeline {
    /// Admits what arrives and keeps one task for each lane that has work, until told to stop.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) -> anyhow::Result<()> {
        let mut changes = self.inbox.changes();
        let mut lanes = JoinSet::new();
        let mut running = BTreeSet::new();
        let mut lookups = admission::Lookups::default();
        let mut late = JoinSet::new();
        late.spawn(Arc::clone(&self).follow_late_files(stop.clone()));
        late.spawn(Arc::clone(&self).follow_transcripts(stop.clone()));
        while !stop.is_cancelled() {
            changes.mark_unchanged();
            let next_twin = self.admit(&mut lookups).await?;
            for lane in self.inbox.open_lanes().await? {
                if running.insert(lane.clone()) {
                    lanes.spawn(Arc::clone(&self).lane(lane, stop.clone()));
                }
            }
            tokio::select! {
                changed = changes.changed() => changed.context("the inbox has stopped")?,
                Some(ended) = lanes.join_next() => { running.remove(&ended.context("a lane panicked")?); }
                Some(ended) = lookups.next_ended() => ended?,
                () = sleep_until(next_twin) => {}
                Some(ended) = late.join_next() => ended.context("the task for late files or transcripts panicked")??,
                () = stop.cancelled() => {}
            }
        }
        while lanes.join_next().await.is_some() {}
        while late.join_next().await.is_some() {}
        Ok(())
    }

    /// Carries the messages of one work item, strictly in order of arrival; answers its name when it has no more work.
    async fn lane(self: Arc<Self>, lane: WorkItem, stop: CancellationToken) -> WorkItem {
        loop {
            let row = match self.inbox.first_in_lane(&lane).await {
                Ok(Some(row)) if !stop.is_cancelled() => row,
                Ok(_) => return lane,
                Err(error) => {
                    error!(%lane, error = format!("{error:#}"), "the lane waits: its messages could not be read");
                    self.pause(self.pane.retry_max, &stop).await;
                    return lane;
                }
            };
            let id = row.message.id.clone();
            match self.carry(row, &stop).await {
                Ok(Ok(()) | Err(Pause::Dropped)) => {}
                Ok(Err(Pause::Stopping)) => return lane,
                Err(error) => {
                    error!(%id, %lane, error = format!("{error:#}"), "a step failed; it is repeated");
                    self.pause(self.pane.retry_min, &stop).await;
                }
            }
        }
    }

    async fn pause(&self, time: Duration, stop: &CancellationToken) {
        tokio::select! {
            () = sleep(time) => {}
            () = stop.cancelled() => {}
        }
    }

    /// One message from its lane to its end. A message that was interrupted begins again after its last stage.
    async fn carry(&self, row: Row, stop: &CancellationToken) -> anyhow::Result<Result<(), Pause>> {
        let allowed = match self.authorise(&row) {
            Verdict::Allowed(allowed) => allowed,
            Verdict::Refused(refusal) => {
                info!(id = %row.message.id, reason = refusal.code(), "refused");
                self.inbox.refuse(row.seq, refusal.code(), None, Timestamp::now()).await?;
                return Ok(Ok(()));
            }
        };
        let files = match self.files(&allowed, &row, stop).await? {
            Ok(files) => files,
            Err(pause) => return Ok(Err(pause)),
        };
        // What was said on GitHub is its own record.
        match allowed.message().place {
            Place::Slack(_) => self.record(&allowed, &files, &row, stop).await?,
            Place::GitHub(_) => self.inbox.needs_no_record(row.seq, files.clone(), Timestamp::now()).await?,
        }
        if let Some(Supplement::Deleted { .. }) = allowed.message().supplement {
            return self.end_as_note(&row).await.map(Ok);
        }
        self.deliver(&allowed, &files, &row, stop).await
    }

    /// Whether its author may still do it: authority is judged when a step is taken, not when the message came.
    fn authorise(&self, row: &Row) -> Verdict {
        let bound = Bound { work_item: row.work_item.clone(), listen: Listen::All };
        let classification = classify(&row.message, Some(&bound));
        authorise(&self.grants, row.message.clone(), classification)
    }

    /// Puts the record into the outbox and waits a little for it to land, when it can be written at once: unless others
    /// wait already, or the ticket must not be written to yet.
    async fn record(
        &self,
        allowed: &Authorised,
        files: &[Attachment],
        row: &Row,
        stop: &CancellationToken,
    ) -> anyhow::Result<()> {
        let mut changes = self.inbox.changes();
        if row.stage != Stage::Recorded {
            let disclosure = self.disclosure(allowed).await;
            let record = Record::new(allowed, files, disclosure, &self.key);
            let (item, parts) = (allowed.work_item(), record.parts().to_vec());
            self.inbox.recorded(row.seq, item, parts, files.to_vec(), Timestamp::now()).await?;
        }
        let deadline = Instant::now() + self.patience;
        while self.inbox.record_progress(row.seq).await? == Progress::Next
            && *self.next_write.borrow() <= Instant::now()
        {
            tokio::select! {
                changed = changes.changed() => changed.context("the inbox has stopped")?,
                () = sleep_until(deadline) => break,
                () = stop.cancelled() => break,
            }
        }
        Ok(())
    }

    /// Whether the ticket may read the words: a private conversation's not on a public repository (field report L4).
    async fn disclosure(&self, allowed: &Authorised) -> Disclosure {
        if self.disclose_private || !self.is_private(&allowed.message().place).await {
            return Disclosure::Words;
        }
        match self.github.repository(&allowed.work_item().repository()).await {
            Ok(repository) if repository.private => Disclosure::Words,
            Ok(_) => Disclosure::Stub,
            Err(error) => {
                info!(id = %allowed.message().id, %error, "whether the repository is public is unknown: the record is a stub");
                Disclosure::Stub
            }
        }
    }

    /// Whether a conversation is private; what cannot be found out is taken as private.
    async fn is_private(&self, place: &Place) -> bool {
        let Place::Slack(place) = place else { return false };
        match place.conversation {
            ConversationKind::Channel => false,
            ConversationKind::Private | ConversationKind::Direct | ConversationKind::GroupDirect => true,
            ConversationKind::Unknown => self
                .slack
                .conversation_info(&place.channel)
                .await
                .map_or(true, |info| info.is_private || info.is_im || info.is_mpim),
        }
    }
}
