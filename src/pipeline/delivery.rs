//! Delivery: into the pane, once, or held with a cause that the sender sees.
//!
//! Owns what is written around the one step that cannot be taken back: `pasting` durably before it, `pasted` and
//! `submitted` after. It must not know what a pane looks like; `tmux` says whether it may be typed into.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Context as _, bail};
use backon::{BackoffBuilder as _, ExponentialBuilder};
use jiff::Timestamp;
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::{Pause, Pipeline};
use crate::core::attachment::Attachment;
use crate::core::delivery::{compose, draw_nonce};
use crate::core::feedback;
use crate::core::grant::Authorised;
use crate::core::pane_text::{Nonce, PaneText};
use crate::core::session::Session;
use crate::inbox::{Paste, Row, Verdict};
use crate::tmux::{self, Aftermath, Hold, Pasted, Submit, Submitted};

/// A burst of news makes a held pane be looked at this often at most.
const LEAST_BETWEEN_LOOKS: Duration = Duration::from_millis(100);

/// How far the text is on its way into the pane.
enum Step {
    /// An earlier run was interrupted between typing and proof.
    Resume,
    /// Nothing is typed.
    Paste,
    /// It is in the composer.
    Submit(Pasted),
    /// The submit key was pressed.
    Confirm(Submitted),
    /// It waits, and then goes on with that step.
    Held(Cause, Box<Step>),
    /// It has its verdict.
    Ended(Verdict, String),
    /// The operator dropped it before anything was typed.
    Dropped,
}

impl Pipeline {
    /// Types the message into its work item's pane and finds out what became of it.
    pub(super) async fn deliver(
        &self,
        allowed: &Authorised,
        files: &[Attachment],
        row: &Row,
        stop: &CancellationToken,
    ) -> anyhow::Result<Result<(), Pause>> {
        let words = self.words(allowed);
        let nonce = nonce(allowed, &words, files, row)?;
        let delivery = Delivery { pipeline: self, allowed, words, files, row, nonce };
        let mut waits = Waits::new(self, row, stop);
        let mut step = if row.paste == Paste::NotYet { Step::Paste } else { Step::Resume };
        loop {
            let next = match step {
                Step::Resume => tokio::select! {
                    resumed = delivery.resume() => resumed?,
                    () = stop.cancelled() => return Ok(Err(Pause::Stopping)),
                },
                Step::Paste if stop.is_cancelled() => return Ok(Err(Pause::Stopping)),
                Step::Paste => delivery.paste(&mut waits).await?,
                Step::Submit(pasted) => delivery.submit(pasted).await?,
                Step::Confirm(submitted) => tokio::select! {
                    verdict = self.tmux.confirm(submitted) => ended(verdict),
                    () = stop.cancelled() => return Ok(Err(Pause::Stopping)),
                },
                Step::Dropped => return Ok(Err(Pause::Dropped)),
                Step::Ended(verdict, why) => return self.end(row, verdict, &why).await.map(Ok),
                Step::Held(cause, then) => match waits.out(&cause).await? {
                    Ok(()) => *then,
                    Err(pause) => return Ok(Err(pause)),
                },
            };
            step = next;
        }
    }

    /// What the agent reads of a message: the person's words, or the prompt of a GitHub event.
    fn words(&self, allowed: &Authorised) -> String {
        let message = allowed.message();
        match &message.github {
            Some(facts) => self.prompt.render(message, facts, allowed.work_item()),
            None => message.text.clone(),
        }
    }

    /// Ends a message that is a note for the ticket, and nothing for the agent.
    pub(super) async fn end_as_note(&self, row: &Row) -> anyhow::Result<()> {
        self.end(row, Verdict::Noted, "noted on the ticket, nothing for the agent").await
    }

    async fn end(&self, row: &Row, verdict: Verdict, why: &str) -> anyhow::Result<()> {
        info!(id = %row.message.id, work_item = %row.work_item, verdict = verdict.name(), why, "delivered");
        let told = (verdict == Verdict::Unsure).then(|| feedback::unsure(why));
        self.inbox.delivered(row.seq, verdict, why.to_owned(), told, Timestamp::now()).await
    }
}

/// The nonce of the message's frame: the stored one after a restart, so that what was typed is known again.
fn nonce(allowed: &Authorised, words: &str, files: &[Attachment], row: &Row) -> anyhow::Result<Nonce> {
    if let Some(stored) = Nonce::stored(&row.nonce) {
        return Ok(stored);
    }
    let mut seed = [0; 4];
    if getrandom::fill(&mut seed).is_err() {
        bail!("the system gives no random numbers: nothing can be framed");
    }
    let first = u32::from_be_bytes(seed);
    let candidates = (0..=u32::MAX).map(|offset| first.wrapping_add(offset).to_be_bytes());
    draw_nonce(allowed, words, files, candidates).context("no nonce is left that the message does not contain")
}

/// One message on its way into its pane.
struct Delivery<'a> {
    pipeline: &'a Pipeline,
    allowed: &'a Authorised,
    words: String,
    files: &'a [Attachment],
    row: &'a Row,
    nonce: Nonce,
}

impl Delivery<'_> {
    /// What an interrupted delivery left behind decides how it goes on; what is unknown is never typed again.
    async fn resume(&self) -> anyhow::Result<Step> {
        // The pane that was typed into, whichever is bound now.
        let Some(session) = self.row.typed_into.clone() else {
            return Ok(unsure("usher was interrupted while typing, and the pane is not known"));
        };
        let lines = tmux::line_feeds(&self.text(&session));
        let since = UNIX_EPOCH + Duration::try_from(self.row.arrived_at.as_duration()).unwrap_or_default();
        Ok(match self.pipeline.tmux.after_crash(&session, self.nonce.as_str(), lines, since).await {
            Aftermath::Delivered(evidence) => Step::Ended(Verdict::Submitted, evidence.to_string()),
            Aftermath::InComposer(pasted) => Step::Submit(pasted),
            Aftermath::Absent => Step::Paste,
            Aftermath::Held(hold) if hold.is_lasting() => {
                unsure("usher was interrupted while typing, and the pane is gone")
            }
            Aftermath::Held(hold) => Step::Held(Cause::of(&hold), Box::new(Step::Resume)),
            Aftermath::Unknown(why) => unsure(why),
        })
    }

    async fn paste(&self, waits: &mut Waits<'_>) -> anyhow::Result<Step> {
        let Some(session) = self.pipeline.inbox.session(&self.row.work_item).await? else {
            return Ok(Step::Held(Cause::unbound(), Box::new(Step::Paste)));
        };
        let clear = match self.pipeline.tmux.guard(&session).await {
            Ok(clear) => clear,
            Err(hold) => return Ok(Step::Held(Cause::of(&hold), Box::new(Step::Paste))),
        };
        if !self.pasting(&session).await? {
            return Ok(Step::Dropped);
        }
        waits.ended();
        match self.pipeline.tmux.paste(clear, &self.text(&session)).await {
            tmux::Paste::Seen(pasted) => {
                self.pipeline.inbox.pasted(self.row.seq, Paste::Pasted, Timestamp::now()).await?;
                Ok(Step::Submit(pasted))
            }
            tmux::Paste::NotPasted(hold) => {
                self.pipeline.inbox.pasted(self.row.seq, Paste::NotYet, Timestamp::now()).await?;
                Ok(Step::Held(Cause::of(&hold), Box::new(Step::Paste)))
            }
            tmux::Paste::Unseen(why) => Ok(unsure(why)),
        }
    }

    async fn pasting(&self, session: &Session) -> anyhow::Result<bool> {
        let nonce = self.nonce.as_str().to_owned();
        self.pipeline.inbox.pasting(self.row.seq, nonce, session.clone(), Timestamp::now()).await
    }

    async fn submit(&self, pasted: Pasted) -> anyhow::Result<Step> {
        match self.pipeline.tmux.submit(pasted).await {
            Submit::Pressed(submitted) => {
                self.pipeline.inbox.pasted(self.row.seq, Paste::Submitted, Timestamp::now()).await?;
                Ok(Step::Confirm(submitted))
            }
            Submit::Held(pasted, hold) => Ok(Step::Held(Cause::of(&hold), Box::new(Step::Submit(pasted)))),
        }
    }

    fn text(&self, session: &Session) -> PaneText {
        let manner =
            self.pipeline.tmux.profiles().get(&session.agent).map(|profile| profile.manner()).unwrap_or_default();
        compose(self.allowed, &self.words, self.files, &self.nonce, manner)
    }
}

fn unsure(why: &str) -> Step {
    Step::Ended(Verdict::Unsure, why.to_owned())
}

fn ended(verdict: tmux::Verdict) -> Step {
    match verdict {
        tmux::Verdict::Submitted { by } => Step::Ended(Verdict::Submitted, by.to_string()),
        tmux::Verdict::Unsure(why) => unsure(why),
    }
}

/// Why a message waits: a label for the store, and words for its sender.
struct Cause {
    code: String,
    words: String,
}

impl Cause {
    fn of(hold: &Hold) -> Self {
        Self { code: hold.code().to_owned(), words: hold.to_string() }
    }

    fn unbound() -> Self {
        Self { code: "unbound".to_owned(), words: "no pane is bound to the work item".to_owned() }
    }
}

/// The waits of one message: longer each time, cut short by news.
struct Waits<'a> {
    pipeline: &'a Pipeline,
    row: &'a Row,
    stop: &'a CancellationToken,
    news: watch::Receiver<u64>,
    nudge: Arc<Notify>,
    schedule: backon::ExponentialBackoff,
    longest: Duration,
    told: String,
}

impl<'a> Waits<'a> {
    fn new(pipeline: &'a Pipeline, row: &'a Row, stop: &'a CancellationToken) -> Self {
        let mut schedule = ExponentialBuilder::default()
            .with_min_delay(pipeline.pane.retry_min)
            .with_max_delay(pipeline.pane.retry_max)
            .without_max_times()
            .build();
        let longest = schedule.next().unwrap_or(pipeline.pane.retry_max);
        let mut news = pipeline.inbox.news();
        news.mark_unchanged();
        let nudge = pipeline.nudges.of(&row.work_item);
        Self { pipeline, row, stop, news, nudge, schedule, longest, told: row.held.clone() }
    }

    /// The store knows of no cause any more: the next one is a new one, even the same.
    fn ended(&mut self) {
        self.told.clear();
    }

    /// Waits until it is time to look again. News that came since the last look ends the wait at once.
    async fn out(&mut self, cause: &Cause) -> anyhow::Result<Result<(), Pause>> {
        if self.told != cause.code {
            warn!(id = %self.row.message.id, work_item = %self.row.work_item, cause = %cause.code, "held");
            let told = feedback::held(&cause.code, &cause.words);
            self.pipeline.inbox.hold(self.row.seq, cause.code.clone(), Some(told), Timestamp::now()).await?;
            self.told.clone_from(&cause.code);
        }
        let news = tokio::select! {
            news = news_within(&mut self.news, &self.nudge, self.longest) => news,
            () = self.stop.cancelled() => return Ok(Err(Pause::Stopping)),
        };
        // Only a wait that ran out says that the cause lasts: a burst of news must not put the next look off.
        if !news {
            self.longest = self.schedule.next().unwrap_or(self.pipeline.pane.retry_max);
        }
        Ok(if self.pipeline.inbox.is_open(self.row.seq).await? { Ok(()) } else { Err(Pause::Dropped) })
    }
}

/// Whether there was news within that time: from outside, or a further message in the lane.
async fn news_within(news: &mut watch::Receiver<u64>, nudge: &Notify, longest: Duration) -> bool {
    sleep(LEAST_BETWEEN_LOOKS.min(longest)).await;
    let any = async {
        tokio::select! {
            _ = news.changed() => {}
            () = nudge.notified() => {}
        }
    };
    timeout(longest.saturating_sub(LEAST_BETWEEN_LOOKS), any).await.is_ok()
}
