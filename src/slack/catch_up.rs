//! Catch-up: what was said while usher was away, or while a socket was deaf.
//!
//! Owns reading every bound conversation again from where it was read to, page by page. Whatever it finds goes the way of
//! a live message, with the same identity, so that nothing arrives twice. It must not know what a message is for.
//!
//! Slack repeats an event for some six minutes and then never again (platform-facts A4); this is what makes the promise
//! hold over a night. A limit is waited out where it is met: live messages have a way of their own.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::api::{Api, ApiError, Page};
use super::event::{Names, PostedIn, What, read_post};
use super::socket::Link;
use super::workspace::Workspace;
use crate::core::grant::Grants;
use crate::core::message::{ConversationKind, Message, Place, SlackPlace};
use crate::core::session::Conversation;
use crate::inbox::Inbox;
use crate::inbox::messages::{Arrival, Put};

/// A message that was said longer ago than this when it is found is marked as late.
const LATE: SignedDuration = SignedDuration::from_secs(60);

/// A post may show in a conversation's history a moment after a later one; so much is read twice.
const OVERLAP: SignedDuration = SignedDuration::from_secs(60);

/// Reads the bound conversations again.
#[derive(Debug)]
pub struct CatchUp {
    /// Where what is found goes.
    pub inbox: Inbox,
    /// Slack's Web API.
    pub api: Api,
    /// Who may speak: of anybody else nothing is kept.
    pub grants: Grants,
    /// The names of people, for mentions.
    pub names: Names,
    /// The workspace, once it is known.
    pub workspace: watch::Receiver<Option<Workspace>>,
    /// Rings when a socket is up again.
    pub link: watch::Receiver<Link>,
    /// How often it is done while nothing happens.
    pub every: Duration,
}

impl CatchUp {
    /// Catches up at start, after every reconnect, and on schedule, until told to stop.
    pub async fn run(mut self, stop: CancellationToken) -> anyhow::Result<()> {
        loop {
            tokio::select! {
                up = wait_until_up(&mut self.link) => if !up { return Ok(()) },
                () = stop.cancelled() => return Ok(()),
            }
            let next = Instant::now() + self.every;
            self.link.mark_unchanged();
            tokio::select! {
                () = self.all() => {}
                () = stop.cancelled() => return Ok(()),
            }
            tokio::select! {
                () = sleep_until(next) => {}
                _ = self.link.changed() => {}
                () = stop.cancelled() => return Ok(()),
            }
        }
    }

    /// Every bound conversation; one that cannot be read does not keep the others from being read.
    async fn all(&mut self) {
        let Ok(workspace) = self.workspace.wait_for(Option::is_some).await.map(|known| known.clone()) else { return };
        let Some(workspace) = workspace else { return };
        let conversations = match self.inbox.conversations().await {
            Ok(conversations) => conversations,
            Err(error) => return warn!(error = format!("{error:#}"), "the bindings could not be read"),
        };
        for conversation in conversations {
            if let Err(error) = self.one(&workspace, &conversation).await {
                warn!(channel = %conversation.channel, error = format!("{error:#}"), "a conversation could not be caught up");
            }
        }
    }

    async fn one(&self, workspace: &Workspace, conversation: &Conversation) -> anyhow::Result<()> {
        let started = Timestamp::now();
        let mut posts = self.posts(conversation, conversation.thread.as_deref(), conversation.read_to).await?;
        if conversation.thread.is_none() {
            let threads: Vec<String> =
                posts.iter().filter_map(|post| opened_thread(post, conversation.read_to)).collect();
            for thread in threads {
                posts.extend(self.posts(conversation, Some(&thread), conversation.read_to).await?);
            }
        }
        posts.sort_by(|one, other| time_stamp(one).cmp(time_stamp(other)));
        let said: Vec<Message> = posts.iter().filter_map(|post| self.message(workspace, conversation, post)).collect();
        let is_known = |message: &Message| self.grants.name_of(&message.author).is_some();
        let kind = if said.iter().any(is_known) { self.kind(conversation).await } else { ConversationKind::Unknown };
        let mut found = 0;
        for message in said {
            found += usize::from(self.put(of_kind(message, kind), started).await? == Put::New);
        }
        if found > 0 {
            info!(channel = %conversation.channel, found, "caught up");
        }
        let read_to = started.checked_sub(OVERLAP).unwrap_or(started).max(conversation.read_to);
        self.inbox.read_to(conversation.clone(), read_to).await
    }

    /// The posts of a thread, or of the top level, since a moment: every page.
    async fn posts(
        &self,
        conversation: &Conversation,
        thread: Option<&str>,
        since: Timestamp,
    ) -> anyhow::Result<Vec<Value>> {
        let oldest = format!("{}.{:06}", since.as_second(), since.subsec_microsecond());
        let (mut posts, mut cursor) = (Vec::new(), None);
        loop {
            let page = match self.api.posts_since(&conversation.channel, thread, &oldest, cursor.as_deref()).await {
                Ok(page) => page,
                Err(ApiError::RateLimited { retry_after }) => {
                    info!(channel = %conversation.channel, wait_s = retry_after.as_secs(), "catching up waits for Slack's limit");
                    sleep(retry_after).await;
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let Page { posts: found, next } = page;
            posts.extend(found);
            match next {
                Some(next) => cursor = Some(next),
                None => return Ok(posts),
            }
        }
    }

    /// History does not say what kind of conversation it is; a private one must not be taken for a public one.
    async fn kind(&self, conversation: &Conversation) -> ConversationKind {
        match self.api.conversation_info(&conversation.channel).await {
            Ok(info) if info.is_im => ConversationKind::Direct,
            Ok(info) if info.is_mpim => ConversationKind::GroupDirect,
            Ok(info) if info.is_private => ConversationKind::Private,
            Ok(_) => ConversationKind::Channel,
            Err(_) => ConversationKind::Unknown,
        }
    }

    fn message(&self, workspace: &Workspace, conversation: &Conversation, post: &Value) -> Option<Message> {
        let kind = ConversationKind::Unknown;
        let posted_in = PostedIn { team: &workspace.team_id, channel: &conversation.channel, kind };
        match read_post(post, posted_in, Some(&workspace.user_id), &self.names) {
            What::Message { message, .. } if message.sent_at >= conversation.since => Some(*message),
            What::Message { .. } | What::FileChanged(_) | What::PassedOver(_) => None,
        }
    }

    async fn put(&self, message: Message, now: Timestamp) -> anyhow::Result<Put> {
        let late = now.duration_since(message.sent_at) > LATE;
        let message = self.grants.keepable(Message { late, ..message });
        self.inbox.put(Arrival { message, event: String::new(), twin_until: None, now }).await
    }
}

fn of_kind(message: Message, kind: ConversationKind) -> Message {
    match message.place {
        Place::Slack(place) => Message { place: Place::Slack(SlackPlace { conversation: kind, ..place }), ..message },
        Place::GitHub(_) => message,
    }
}

/// Answers false when there is no socket any more.
async fn wait_until_up(link: &mut watch::Receiver<Link>) -> bool {
    link.wait_for(|link| matches!(link, Link::Up { .. })).await.is_ok()
}

/// The thread that a top-level post opens, when something was said in it since.
fn opened_thread(post: &Value, since: Timestamp) -> Option<String> {
    let latest = post.get("latest_reply")?.as_str()?;
    let seconds: i64 = latest.split('.').next()?.parse().ok()?;
    (seconds >= since.as_second()).then(|| time_stamp(post).to_owned()).filter(|ts| !ts.is_empty())
}

fn time_stamp(post: &Value) -> &str {
    post.get("ts").and_then(Value::as_str).unwrap_or_default()
}
