//! Files: from fetched nothing to saved, or named with a reason, before the message's deadline.
//!
//! Owns the parallelism, the deadline and the files that outlive it. A file's failure is an outcome, never an error: the
//! words go on either way.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use futures_util::future::join_all;
use jiff::Timestamp;
use secrecy::SecretString;
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet, spawn_blocking};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::{Pause, Pipeline};
use crate::core::attachment::{Attachment, AttachmentRef, Outcome, Reason, Source, Transcript, Whereabouts};
use crate::core::feedback;
use crate::core::grant::{Authorised, Refusal, Verdict};
use crate::core::hop::{self, AllowedUrl, HostTable};
use crate::core::message::{Message, Place, Supplement};
use crate::core::vtt;
use crate::core::work_item::WorkItem;
use crate::fetch::{Directory, Fetched, Policy, Wanted};
use crate::inbox::files::KnownFile;
use crate::inbox::{Row, Stage};
use crate::{github, slack};

/// Captions are read into memory; half an hour of speech is some 200 KiB.
const CAPTIONS_CAP: usize = 2 * 1024 * 1024;

/// Downloads that go on after their message had to go, by the platform's file id and the work item.
#[derive(Debug, Default)]
pub struct Downloads(Mutex<HashMap<(String, WorkItem), JoinHandle<Attachment>>>);

impl Downloads {
    fn keep(&self, file: &AttachmentRef, item: &WorkItem, download: JoinHandle<Attachment>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert((file.id.clone(), item.clone()), download);
    }

    fn take(&self, file: &AttachmentRef, item: &WorkItem) -> Option<JoinHandle<Attachment>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&(file.id.clone(), item.clone()))
    }
}

impl Pipeline {
    /// The files of a message: those of an earlier run, or fetched now, in the order in which they were attached.
    pub(super) async fn files(
        &self,
        allowed: &Authorised,
        row: &Row,
        stop: &CancellationToken,
    ) -> anyhow::Result<Result<Vec<Attachment>, Pause>> {
        let wanted = &allowed.message().attachments;
        if row.stage != Stage::Admitted || wanted.is_empty() {
            return Ok(Ok(row.attachments.clone()));
        }
        let deadline = Instant::now() + self.limits.deadline;
        let turns = self.turns();
        let fetches =
            wanted.iter().enumerate().map(|(index, file)| self.before_deadline(index, file, allowed, &turns, deadline));
        let files = tokio::select! {
            files = join_all(fetches) => files,
            () = stop.cancelled() => return Ok(Err(Pause::Stopping)),
        };
        let late = late_files(allowed.message(), &files);
        self.await_transcripts(row, &files).await?;
        self.inbox.fetched(row.seq, files.clone(), late, feedback::files_refused(&files), Timestamp::now()).await?;
        Ok(Ok(files))
    }

    /// One file, or `pending` when the message cannot wait for it any longer; its download goes on.
    async fn before_deadline(
        &self,
        index: usize,
        file: &AttachmentRef,
        allowed: &Authorised,
        turns: &Arc<Semaphore>,
        deadline: Instant,
    ) -> Attachment {
        if let Some(reason) = self.refusal(index, file) {
            return named(file, reason);
        }
        let mut download = tokio::spawn(self.download(allowed, turns).run(file.clone()));
        match timeout_at(deadline, &mut download).await {
            Ok(ended) => ended.unwrap_or_else(|_| named(file, Reason::TransferFailed)),
            Err(_) => {
                self.downloads.keep(file, allowed.work_item(), download);
                named(file, Reason::Pending)
            }
        }
    }

    /// Why a file is not even asked for.
    fn refusal(&self, index: usize, file: &AttachmentRef) -> Option<Reason> {
        let cap = self.limits.max_files as usize;
        if index >= cap {
            return Some(Reason::TooMany { cap });
        }
        if let Whereabouts::Nowhere(reason) = &file.bytes {
            return Some(reason.clone());
        }
        if !self.limits.receive {
            return Some(Reason::ReceiveOff);
        }
        let has_token = match file.source {
            Source::Slack => self.slack.bot_token().is_some(),
            // A public repository's assets need none.
            Source::GitHub => true,
        };
        (!has_token).then_some(Reason::NoToken)
    }

    /// The turns of one message's downloads. No other message waits for them: a slow file may take ten minutes, and holds
    /// up nothing but its own message.
    fn turns(&self) -> Arc<Semaphore> {
        Arc::new(Semaphore::new(self.limits.parallel as usize))
    }

    /// The words of a transcript's captions, fetched now.
    pub(super) async fn captions(&self, allowed: &Authorised, url: Option<String>) -> Option<String> {
        self.download(allowed, &self.turns()).captions(url).await
    }

    fn download(&self, allowed: &Authorised, turns: &Arc<Semaphore>) -> Download {
        Download {
            item: allowed.work_item().clone(),
            place: allowed.message().place.clone(),
            inbox: self.inbox.clone(),
            slack: self.slack.clone(),
            fetcher: self.fetcher.clone(),
            limits: self.limits.clone(),
            root: self.layout.attachments(),
            turns: Arc::clone(turns),
            slack_token: self.slack.bot_token(),
            github: self.github.clone(),
            github_host: self.github_host.clone(),
        }
    }

    /// Waits for late files, those of an earlier run too, and puts each into its lane when it has ended.
    pub(super) async fn follow_late_files(self: Arc<Self>, stop: CancellationToken) -> anyhow::Result<()> {
        let mut changes = self.inbox.changes();
        let (mut downloads, mut followed) = (JoinSet::new(), BTreeSet::new());
        while !stop.is_cancelled() {
            changes.mark_unchanged();
            for row in self.inbox.late_files().await? {
                if followed.insert(row.seq) {
                    downloads.spawn(Arc::clone(&self).follow(row, stop.clone()));
                }
            }
            tokio::select! {
                changed = changes.changed() => changed.context("the inbox has stopped")?,
                Some(ended) = downloads.join_next() => { followed.remove(&ended.context("a late file panicked")??); }
                () = stop.cancelled() => {}
            }
        }
        while downloads.join_next().await.is_some() {}
        Ok(())
    }

    /// One late file to its end; answers whose it is. When usher is stopping, the row stays and is followed after the
    /// next start.
    async fn follow(self: Arc<Self>, row: Row, stop: CancellationToken) -> anyhow::Result<i64> {
        let download = row.message.attachments.first().and_then(|file| self.downloads.take(file, &row.work_item));
        let allowed = match self.authorise(&row) {
            Verdict::Allowed(allowed) => allowed,
            Verdict::Refused(refusal) => return self.refuse_late(&row, refusal, download).await,
        };
        let mut files = Vec::new();
        if let Some(file) = allowed.message().attachments.first() {
            let Some(ended) = self.end_of(file, &allowed, download, &stop).await else { return Ok(row.seq) };
            files.push(ended);
        }
        let told = feedback::files_refused(&files);
        self.await_transcripts(&row, &files).await?;
        self.inbox.late_file_fetched(row.seq, files, told, Timestamp::now()).await?;
        Ok(row.seq)
    }

    /// What became of a late file; `None`: usher is stopping.
    async fn end_of(
        &self,
        file: &AttachmentRef,
        allowed: &Authorised,
        download: Option<JoinHandle<Attachment>>,
        stop: &CancellationToken,
    ) -> Option<Attachment> {
        let left = self.limits.file_deadline.saturating_sub(self.limits.deadline);
        let download =
            download.unwrap_or_else(|| tokio::spawn(self.download(allowed, &self.turns()).run(file.clone())));
        let abort = download.abort_handle();
        let ended = tokio::select! {
            ended = timeout_at(Instant::now() + left, download) => ended,
            () = stop.cancelled() => { abort.abort(); return None }
        };
        abort.abort();
        Some(ended.ok().and_then(Result::ok).unwrap_or_else(|| named(file, Reason::TransferFailed)))
    }

    /// Ends a late file whose author may no longer do it.
    async fn refuse_late(
        &self,
        row: &Row,
        refusal: Refusal,
        download: Option<JoinHandle<Attachment>>,
    ) -> anyhow::Result<i64> {
        if let Some(download) = download {
            download.abort();
        }
        info!(id = %row.message.id, reason = refusal.code(), "refused");
        self.inbox.refuse(row.seq, refusal.code(), None, Timestamp::now()).await?;
        Ok(row.seq)
    }
}

/// A message for each file that still downloads.
fn late_files(message: &Message, files: &[Attachment]) -> Vec<Message> {
    let pending =
        files.iter().zip(&message.attachments).filter(|(file, _)| file.outcome == Outcome::NotFetched(Reason::Pending));
    let late = |(_, file): (&Attachment, &AttachmentRef)| Message {
        id: message.id.followed_by(&format!("late/{}", file.id)),
        text: String::new(),
        quotes: Vec::new(),
        attachments: vec![file.clone()],
        supplement: Some(Supplement::LateFile { of: message.id.clone() }),
        ..message.clone()
    };
    pending.map(late).collect()
}

/// A file with its reason instead of its bytes, and with what the event itself says of its transcript.
fn named(file: &AttachmentRef, reason: Reason) -> Attachment {
    let (transcript, transcript_pending) = match &file.transcript {
        Transcript::None => (None, false),
        Transcript::Processing => (None, true),
        Transcript::Ready { preview, .. } => (preview.clone(), false),
    };
    Attachment {
        id: file.id.clone(),
        source: file.source,
        name: file.name.clone(),
        kind: file.kind,
        mimetype: file.mimetype.clone(),
        size: file.size,
        link: file.link.clone(),
        outcome: Outcome::NotFetched(reason),
        transcript,
        transcript_pending,
    }
}

/// One download, on a task of its own so that it can outlive its message's deadline.
struct Download {
    item: WorkItem,
    place: Place,
    inbox: crate::inbox::Inbox,
    slack: slack::api::Api,
    fetcher: crate::fetch::Fetcher,
    limits: crate::config::Attachments,
    root: std::path::PathBuf,
    turns: Arc<Semaphore>,
    slack_token: Option<SecretString>,
    github: github::api::Api,
    github_host: Option<String>,
}

impl Download {
    async fn run(self, file: AttachmentRef) -> Attachment {
        let Ok(_permit) = self.turns.acquire().await else { return named(&file, Reason::TransferFailed) };
        let file = match &file.bytes {
            Whereabouts::Ask => slack::files::ask(&self.slack, file).await,
            Whereabouts::Url(_) | Whereabouts::Nowhere(_) => file,
        };
        let (saved, (transcript, transcript_pending)) = tokio::join!(self.save(&file), self.transcript(&file));
        info!(file = %file.id, work_item = %self.item, outcome = code(&saved.outcome), "file");
        Attachment { transcript, transcript_pending, ..saved }
    }

    async fn save(&self, file: &AttachmentRef) -> Attachment {
        let item = &self.item;
        let url = match self.locate(file) {
            Ok(url) => url,
            Err(reason) => return named(file, reason),
        };
        let directory = match Directory::open(&self.root, &item.slug()) {
            Ok(directory) => directory,
            Err(error) => {
                warn!(work_item = %item, error = format!("{error:#}"), "the directory for attachments cannot be used");
                return named(file, Reason::TransferFailed);
            }
        };
        if let Some(known) = self.known(file, item, &directory).await {
            return known;
        }
        let wanted = Wanted {
            url: &url,
            source_id: &file.id,
            shown_name: &file.name,
            declared_size: file.size.filter(|_| file.size_is_exact),
            declared_media_type: file.mimetype.as_deref(),
            may_be_html: file.is_html,
            kind: file.kind,
        };
        let policy = self.policy(file.source).await;
        let mut fetched = self.fetcher.fetch(wanted, &policy, &directory).await;
        if matches!(fetched, Fetched::Not(Reason::NotReachableWithThisToken))
            && let Some(url) = self.signed(file).await
        {
            fetched = self.fetcher.fetch(Wanted { url: &url, ..wanted }, &policy, &directory).await;
        }
        match fetched {
            Fetched::Not(reason) => named(file, reason),
            Fetched::Saved { file: saved, size, media_type, kind } => {
                let name = saved.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
                let sha256 = saved.sha256.clone();
                let outcome = Outcome::Saved(saved);
                let attachment = Attachment {
                    outcome,
                    kind,
                    size: Some(size),
                    mimetype: media_type,
                    ..named(file, Reason::Pending)
                };
                let known = KnownFile { name, size, sha256, attachment: attachment.clone() };
                if let Err(error) = self.inbox.remember_file(item, known).await {
                    warn!(file = %file.id, error = format!("{error:#}"), "a saved file could not be remembered; it is fetched again next time");
                }
                attachment
            }
        }
    }

    /// The URL, if the host table allows it and the declared size does.
    fn locate(&self, file: &AttachmentRef) -> Result<AllowedUrl, Reason> {
        if file.size.is_some_and(|size| file.size_is_exact && size > self.limits.max_bytes) {
            return Err(Reason::OverCap { cap: self.limits.max_bytes });
        }
        match &file.bytes {
            Whereabouts::Url(url) => hop::first(&self.table(file.source), url),
            Whereabouts::Nowhere(reason) => Err(reason.clone()),
            Whereabouts::Ask => Err(Reason::TransferFailed),
        }
    }

    /// A file that was saved earlier, if its bytes are still what they were.
    async fn known(&self, file: &AttachmentRef, item: &WorkItem, directory: &Directory) -> Option<Attachment> {
        let known = self.inbox.known_file(file.source, &file.id, item).await.ok().flatten()?;
        let (on_disk, name, size, sha256) = (directory.clone(), known.name, known.size, known.sha256);
        let intact = spawn_blocking(move || on_disk.verify(&name, size, &sha256)).await.unwrap_or(false);
        intact.then(|| Attachment { name: file.name.clone(), link: file.link.clone(), ..known.attachment })
    }

    /// Which hosts may be asked.
    fn table(&self, source: Source) -> HostTable {
        match source {
            Source::Slack => HostTable::slack(),
            Source::GitHub => HostTable::github(self.github_host.as_deref()),
        }
    }

    /// Which hosts, which credential, and what the vendor's refusals mean.
    async fn policy(&self, source: Source) -> Policy {
        let (bearer, html_means, not_found_means) = match source {
            Source::Slack => (self.slack_token.clone(), Reason::NoScope, Reason::TransferFailed),
            Source::GitHub => {
                let hidden = Reason::NotReachableWithThisToken;
                (self.github.bearer(&self.item).await, hidden.clone(), hidden)
            }
        };
        Policy {
            table: self.table(source),
            bearer,
            cap: self.limits.max_bytes,
            idle: self.limits.timeout,
            mode: self.limits.mode,
            html_means,
            not_found_means,
        }
    }

    /// A private asset that GitHub hides from this kind of token is shown in the rendered text, by a URL signed for some
    /// five minutes (platform-facts E3): fetched at once, or not at all.
    async fn signed(&self, file: &AttachmentRef) -> Option<AllowedUrl> {
        let (Place::GitHub(place), Whereabouts::Url(url)) = (&self.place, &file.bytes) else { return None };
        let rendered = self.github.rendered(&place.item, place.spot).await.ok()?;
        let url = github::assets::signed_url(url, &rendered)?;
        hop::first(&self.table(file.source), &url).ok()
    }

    /// Slack's own transcript, verbatim; and whether Slack was still at it when the waiting ended.
    async fn transcript(&self, file: &AttachmentRef) -> (Option<String>, bool) {
        let attempts = self.limits.transcript_retries;
        match slack::files::await_transcript(&self.slack, file, attempts, self.limits.transcript_wait).await {
            Transcript::None => (None, false),
            Transcript::Processing => (None, true),
            Transcript::Ready { captions, preview } => (self.captions(captions).await.or(preview), false),
        }
    }

    async fn captions(&self, url: Option<String>) -> Option<String> {
        let url = hop::first(&HostTable::slack(), &url?).ok()?;
        let captions = self.fetcher.fetch_text(&url, &self.policy(Source::Slack).await, CAPTIONS_CAP).await?;
        vtt::words(&captions).filter(|words| !words.is_empty())
    }
}

const fn code(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Saved(_) => "saved",
        Outcome::NotFetched(reason) => reason.code(),
    }
}
