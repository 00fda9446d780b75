//! Health: whether usher turns, and whether it reaches what it works with.
//!
//! Owns `/healthz` and `/readyz`. What is not ready is told with its reason, one line each; a single session's trouble is
//! not (`usher sessions` tells it). It must not know the webhook beside it, nor mend anything.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::sync::{Mutex, watch};
use tokio::time::{Instant, timeout};

use crate::github::api::{Api, Standing};
use crate::inbox::Inbox;
use crate::slack::socket::Link;

/// The store answers in milliseconds; after this long it does not.
const STORE_LIMIT: Duration = Duration::from_secs(2);

/// GitHub is asked anew, when it did not answer last, at most so often, however often anybody asks usher.
const ASK_AGAIN: Duration = Duration::from_secs(10);

/// Below this much free space the store may fail any time.
const NO_SPACE: u64 = 64 * 1024 * 1024;

/// What is looked at.
#[derive(Debug)]
pub struct Health {
    /// The store.
    pub inbox: Inbox,
    /// GitHub.
    pub github: Api,
    /// Slack's socket, `None`: off.
    pub slack: Option<watch::Receiver<Link>>,
    /// The state root.
    pub root: PathBuf,
    /// When GitHub was last asked for this.
    pub asked: Mutex<Option<Instant>>,
}

/// One part and how it is.
type Part = (&'static str, Result<&'static str, String>);

/// The routes.
pub fn routes(health: Health) -> Router {
    let turns = get(|| async { (StatusCode::OK, "ok\n") });
    Router::new().route("/healthz", turns).route("/readyz", get(ready)).with_state(Arc::new(health))
}

async fn ready(State(health): State<Arc<Health>>) -> impl IntoResponse {
    let parts = [
        ("slack", health.slack()),
        ("github", health.github().await),
        ("store", health.store().await),
        ("disk", health.disk()),
    ];
    told(&parts)
}

fn told(parts: &[Part]) -> (StatusCode, String) {
    let is_ready = parts.iter().all(|(_, part)| part.is_ok());
    let status = if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let line = |(name, part): &Part| match part {
        Ok(how) => format!("{name} {how}\n"),
        Err(why) => format!("{name} down: {why}\n"),
    };
    (status, parts.iter().map(line).collect())
}

impl Health {
    fn slack(&self) -> Result<&'static str, String> {
        match self.slack.as_ref().map(|link| link.borrow().clone()) {
            None => Ok("off"),
            Some(Link::Up { .. }) => Ok("up"),
            Some(Link::Connecting) => Err("still connecting".to_owned()),
            Some(Link::Down { why, .. }) => Err(why),
        }
    }

    async fn github(&self) -> Result<&'static str, String> {
        if !self.github.has_token() {
            return Ok("off");
        }
        if self.github.standing() != Standing::Up {
            self.ask_github().await;
        }
        match self.github.standing() {
            Standing::Up => Ok("up"),
            Standing::Unknown => Err("not asked yet".to_owned()),
            Standing::Down(why) => Err(why),
        }
    }

    async fn ask_github(&self) {
        let mut asked = self.asked.lock().await;
        if asked.is_none_or(|last| last.elapsed() >= ASK_AGAIN) {
            *asked = Some(Instant::now());
            // Whatever the answer is, the client's standing tells it.
            drop(timeout(STORE_LIMIT, self.github.user()).await);
        }
    }

    async fn store(&self) -> Result<&'static str, String> {
        match timeout(STORE_LIMIT, self.inbox.is_writable().into_future()).await {
            Ok(Ok(())) => Ok("up"),
            Ok(Err(error)) => Err(format!("{error:#}")),
            Err(_) => Err("the inbox does not answer".to_owned()),
        }
    }

    fn disk(&self) -> Result<&'static str, String> {
        match rustix::fs::statvfs(&self.root) {
            Ok(stat) => match stat.f_bavail.saturating_mul(stat.f_frsize) {
                free if free < NO_SPACE => Err(format!("only {} MB are free below the state root", free / 1_000_000)),
                _ => Ok("up"),
            },
            Err(error) => Err(format!("the state root cannot be looked at ({error})")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_ready_is_told_with_its_reason() {
        let well = [("slack", Ok("up")), ("github", Ok("off"))];
        assert_eq!(told(&well), (StatusCode::OK, "slack up\ngithub off\n".to_owned()));
        let ill = [("slack", Ok("up")), ("disk", Err("full".to_owned()))];
        assert_eq!(told(&ill), (StatusCode::SERVICE_UNAVAILABLE, "slack up\ndisk down: full\n".to_owned()));
    }
}
