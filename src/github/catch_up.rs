//! Catch-up: what was said on GitHub while usher was away, or while nothing delivered to it.
//!
//! Owns reading the declared repositories again from where they were read to. What it finds is written as the event that
//! was missed and goes the way of a delivery, with the same identity, so that nothing arrives twice. It must not know what
//! a message is for.
//!
//! GitHub never repeats a delivery by itself (field report W6). The hook's own list of deliveries is not asked: it needs
//! rights that usher wants for nothing else, goes back three days, and knows nothing of a hook that was not there. What the
//! tickets say is there for ever. Only new words are found this way; an edit that was missed stays missed.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::api::{Api, ApiError};
use super::completion::incomplete_until;
use super::event::{Own, Scope, What, read};
use crate::core::grant::Grants;
use crate::core::loose::{count, field, text};
use crate::core::message::{GitHubPlace, Message, MessageId, Place, Spot};
use crate::core::work_item::WorkItem;
use crate::inbox::Inbox;
use crate::inbox::messages::{Arrival, Put};

/// A message that was said longer ago than this when it is found is marked as late.
const LATE: SignedDuration = SignedDuration::from_secs(60);

/// GitHub's clock and this one may differ, and lists lag a little: so much is read twice.
const OVERLAP: SignedDuration = SignedDuration::from_mins(5);

/// How long the first reading waits for usher's own login. Own records are known by their envelope as well.
const OWN_LOGIN: Duration = Duration::from_secs(10);

/// Reads the declared repositories again.
#[derive(Debug)]
pub struct CatchUp {
    /// Where what is found goes.
    pub inbox: Inbox,
    /// GitHub.
    pub api: Api,
    /// Who may speak: of anybody else nothing is kept.
    pub grants: Grants,
    /// The repositories that are usher's business, `owner/repo`, lower-cased.
    pub repositories: Vec<String>,
    /// The Enterprise host, `None` for github.com.
    pub host: Option<String>,
    /// Who usher itself is on GitHub.
    pub own: watch::Receiver<Own>,
    /// How often it is done.
    pub every: Duration,
}

impl CatchUp {
    /// Catches up at start and on schedule, until told to stop.
    pub async fn run(mut self, stop: CancellationToken) -> anyhow::Result<()> {
        tokio::select! {
            // Whichever way it ends, it is time to read.
            _ = timeout(OWN_LOGIN, self.own.wait_for(|own| own.login.is_some())) => {}
            () = stop.cancelled() => return Ok(()),
        }
        loop {
            let next = Instant::now() + self.every;
            tokio::select! {
                () = self.all() => {}
                () = stop.cancelled() => return Ok(()),
            }
            tokio::select! {
                () = sleep_until(next) => {}
                () = stop.cancelled() => return Ok(()),
            }
        }
    }

    /// Every repository; one that cannot be read does not keep the others from being read.
    async fn all(&self) {
        for repository in &self.repositories {
            if let Err(error) = self.one(repository).await {
                warn!(%repository, error = format!("{error:#}"), "a repository could not be caught up; it is read again next time");
            }
        }
    }

    async fn one(&self, repository: &str) -> anyhow::Result<()> {
        let started = Timestamp::now();
        // What was said before usher came is none of its business.
        let Some(since) = self.inbox.repository_read_to(repository.to_owned()).await? else {
            info!(%repository, "what is said from now on is caught up");
            return self.inbox.repository_read(repository.to_owned(), started).await;
        };
        let mut said = Vec::new();
        for ticket in self.paged(&format!("/repos/{repository}/issues"), &[("state", "all")], since).await? {
            match self.ticket(repository, &ticket, since).await {
                Ok(messages) => said.extend(messages),
                // A ticket that GitHub will not show must not keep everything else from arriving, now or next time.
                Err(Trouble::Api(error @ (ApiError::NotFound(_) | ApiError::Refused { .. }))) => {
                    warn!(%repository, number = count(&ticket, "number"), %error, "a ticket could not be caught up");
                }
                Err(Trouble::Api(error)) => return Err(error.into()),
                Err(Trouble::Store(error)) => return Err(error),
            }
        }
        let mut found = 0;
        for message in in_order(said) {
            found += usize::from(self.put(message, started).await? == Put::New);
        }
        if found > 0 {
            info!(%repository, found, "caught up");
        }
        let read_to = started.checked_sub(OVERLAP).unwrap_or(started).max(since);
        self.inbox.repository_read(repository.to_owned(), read_to).await
    }

    /// What was said on a ticket that changed, when it is bound.
    async fn ticket(&self, repository: &str, ticket: &Value, since: Timestamp) -> Result<Vec<Message>, Trouble> {
        let Some(number) = count(ticket, "number") else { return Ok(Vec::new()) };
        let is_pull_request = field(ticket, "pull_request").is_object();
        // Only the pull request itself tells its branch, and so the issue that it may speak for.
        let pull_request = match is_pull_request {
            true => Some(self.api.value(&format!("/repos/{repository}/pulls/{number}")).await?),
            false => None,
        };
        let events = Events { repository, ticket, pull_request: pull_request.as_ref(), since };
        if !self.is_bound(&events).await? {
            return Ok(Vec::new());
        }
        let mut payloads = events.opened();
        let path = format!("/repos/{repository}/issues/{number}/comments");
        payloads.extend(self.paged(&path, &[], since).await?.iter().filter_map(|one| events.commented(one)));
        if is_pull_request {
            let path = format!("/repos/{repository}/pulls/{number}");
            let reviews = self.paged(&format!("{path}/reviews"), &[], since).await?;
            payloads.extend(reviews.iter().filter_map(|one| events.reviewed(one)));
            let inline = self.paged(&format!("{path}/comments"), &[], since).await?;
            payloads.extend(inline.iter().filter_map(|one| events.commented_inline(one)));
        }
        let own = self.own.borrow().clone();
        let scope = Scope { host: self.host.as_deref(), repositories: &self.repositories };
        let message = |(event, payload): &(&str, Value)| match read(event, payload, scope, &own) {
            What::Message(message) => Some(*message),
            What::PassedOver(_) => None,
        };
        Ok(payloads.iter().filter_map(message).collect())
    }

    async fn is_bound(&self, events: &Events<'_>) -> Result<bool, Trouble> {
        let item = |number: u64| {
            let host = self.host.as_deref().map(|host| format!("{host}/")).unwrap_or_default();
            format!("{host}{}#{number}", events.repository).parse::<WorkItem>().ok()
        };
        let Some(item) = count(events.ticket, "number").and_then(item) else { return Ok(false) };
        let closes = events.pull_request.map(|it| super::event::closed_by(it, &item)).unwrap_or_default();
        let place = Place::GitHub(GitHubPlace { item, closes, spot: Spot::Description });
        self.inbox.bound_item(place).await.map(|bound| bound.is_some()).map_err(Trouble::Store)
    }

    /// Every page of a list. A limit is waited out where it is met: deliveries have a way of their own.
    async fn paged(&self, path: &str, more: &[(&str, &str)], since: Timestamp) -> Result<Vec<Value>, ApiError> {
        let (mut entries, mut page) = (Vec::new(), 1);
        loop {
            match self.api.page(path, more, since, page).await {
                Ok(found) => {
                    let full = found.len() >= super::api::PAGE;
                    entries.extend(found);
                    if !full {
                        return Ok(entries);
                    }
                    page += 1;
                }
                Err(ApiError::RateLimited(wait)) => {
                    info!(wait_s = wait.as_secs(), "catching up waits for GitHub's limit");
                    sleep(wait).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn put(&self, message: Message, now: Timestamp) -> anyhow::Result<Put> {
        let late = now.duration_since(message.sent_at) > LATE;
        let message = self.grants.keepable(Message { late, ..message });
        let twin_until = incomplete_until(&message, now);
        self.inbox.put(Arrival { message, event: String::new(), twin_until, now }).await
    }
}

/// Why a ticket could not be read.
enum Trouble {
    Api(ApiError),
    Store(anyhow::Error),
}

impl From<ApiError> for Trouble {
    fn from(error: ApiError) -> Self {
        Self::Api(error)
    }
}

/// Writes what a ticket says as the events that GitHub would have delivered.
struct Events<'a> {
    repository: &'a str,
    ticket: &'a Value,
    pull_request: Option<&'a Value>,
    since: Timestamp,
}

type Event = (&'static str, Value);

impl Events<'_> {
    fn opened(&self) -> Vec<Event> {
        let name = if self.pull_request.is_some() { "pull_request" } else { "issues" };
        self.event(name, "opened", None, self.ticket, "created_at").into_iter().collect()
    }

    fn commented(&self, comment: &Value) -> Option<Event> {
        self.event("issue_comment", "created", Some("comment"), comment, "created_at")
    }

    /// GitHub writes a review's state in capitals here and in small letters in a delivery (platform-facts D).
    fn reviewed(&self, review: &Value) -> Option<Event> {
        let mut review = review.clone();
        if let Some(state) = review.get_mut("state") {
            *state = json!(state.as_str().unwrap_or_default().to_lowercase());
        }
        self.event("pull_request_review", "submitted", Some("review"), &review, "submitted_at")
    }

    fn commented_inline(&self, comment: &Value) -> Option<Event> {
        self.event("pull_request_review_comment", "created", Some("comment"), comment, "created_at")
    }

    /// `None` for what was said before: lists tell what changed since, and an old comment changes too.
    fn event(&self, name: &'static str, action: &str, holder: Option<&str>, said: &Value, when: &str) -> Option<Event> {
        let moment: Timestamp = text(said, when)?.parse().ok()?;
        // GitHub's times are whole seconds.
        if moment.as_second() < self.since.as_second() {
            return None;
        }
        let mut payload = json!({
            "action": action,
            "repository": { "full_name": self.repository },
            "sender": field(said, "user"),
        });
        let fields = payload.as_object_mut()?;
        // As in a delivery: a comment on a pull request comes with an issue, everything else of it with the pull request.
        match self.pull_request.filter(|_| name != "issue_comment") {
            Some(pull_request) => fields.insert("pull_request".to_owned(), pull_request.clone()),
            None => fields.insert("issue".to_owned(), self.ticket.clone()),
        };
        if let Some(holder) = holder {
            fields.insert(holder.to_owned(), said.clone());
        }
        Some((name, payload))
    }
}

/// One message for each identity, oldest first: a review comes in as many pieces as it has inline comments.
fn in_order(said: Vec<Message>) -> Vec<Message> {
    let mut whole: BTreeMap<MessageId, Message> = BTreeMap::new();
    for message in said {
        match whole.get_mut(&message.id) {
            Some(known) => drop(known.merge(message)),
            None => drop(whole.insert(message.id.clone(), message)),
        }
    }
    let mut whole: Vec<Message> = whole.into_values().collect();
    whole.sort_by(|one, other| (one.sent_at, &one.id).cmp(&(other.sent_at, &other.id)));
    whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::message::Person;

    const SINCE: &str = "2026-12-01T10:00:00Z";

    fn events<'a>(ticket: &'a Value, pull_request: Option<&'a Value>) -> Events<'a> {
        Events { repository: "acme/widgets", ticket, pull_request, since: SINCE.parse().unwrap() }
    }

    fn understood((event, payload): Event) -> Message {
        let repositories = ["acme/widgets".to_owned()];
        match read(event, &payload, Scope { host: None, repositories: &repositories }, &Own::default()) {
            What::Message(message) => *message,
            What::PassedOver(why) => panic!("{why:?}: {payload}"),
        }
    }

    fn said(id: u64, minute: u8, body: &str) -> Value {
        let moment = format!("2026-12-01T10:{minute:02}:00Z");
        json!({"id": id, "user": {"login": "Dana"}, "body": body, "created_at": moment, "submitted_at": moment, "state": "APPROVED"})
    }

    #[test]
    fn what_is_found_has_the_identity_that_its_delivery_would_have_had() {
        let ticket = json!({"number": 12, "title": "Squeak", "body": "It squeaks", "user": {"login": "dana"}, "created_at": "2026-12-01T10:01:00Z"});
        let mut inline = said(8, 3, "Why?");
        inline["pull_request_review_id"] = json!(7);
        let messages = [
            understood(events(&ticket, None).opened().remove(0)),
            understood(events(&ticket, None).commented(&said(5, 2, "Oil it")).unwrap()),
            understood(events(&ticket, Some(&ticket)).reviewed(&said(7, 3, "Fine")).unwrap()),
            understood(events(&ticket, Some(&ticket)).commented_inline(&inline).unwrap()),
        ];
        let ids: Vec<&str> = messages.iter().map(|message| message.id.as_str()).collect();
        let review = "github:acme/widgets#12/review/7";
        assert_eq!(ids, ["github:acme/widgets#12", "github:acme/widgets#12/comment/5", review, review]);
        assert!(messages.iter().all(|message| message.author == Person::GitHub("dana".into())));
        assert_eq!(messages[2].github.as_ref().unwrap().fields["review"]["state"], "approved");
        assert_eq!(in_order(messages.into()).len(), 3);
    }

    #[test]
    fn an_old_comment_that_changed_lately_is_not_new() {
        let ticket = json!({"number": 12});
        let mut old = said(5, 2, "Oil it");
        old["created_at"] = json!("2026-12-01T09:59:59Z");
        assert!(events(&ticket, None).commented(&old).is_none());
    }

    #[test]
    fn what_was_found_is_told_oldest_first() {
        let ticket = json!({"number": 12});
        let messages = [(6, 9), (5, 2), (7, 4)]
            .map(|(id, minute)| understood(events(&ticket, None).commented(&said(id, minute, "x")).unwrap()));
        let order: Vec<i64> =
            in_order(messages.into()).iter().map(|message| message.sent_at.as_second() / 60 % 60).collect();
        assert_eq!(order, [2, 4, 9]);
    }
}
