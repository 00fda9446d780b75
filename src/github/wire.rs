//! One call of GitHub's REST API on the wire.
//!
//! Owns the base URL, the headers that every call has, and the reading of GitHub's refusals into a closed set of classes.
//! It must not know what is asked or with which credential. Facts: platform-facts G.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use reqwest::header::{self, HeaderMap};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::api::ApiError;
use crate::net::{Net, without_url};

/// The usual form of an answer.
pub(super) const JSON: &str = "application/vnd.github+json";

/// GitHub itself gives up after ten seconds (platform-facts G); a little more covers the way there.
const TIMEOUT: Duration = Duration::from_secs(15);

/// The way to one GitHub host.
#[derive(Debug, Clone)]
pub(super) struct Wire {
    net: Net,
    base: String,
    limit_wait: Duration,
    standing: Arc<Mutex<Standing>>,
}

/// How the last call ended, as far as the way itself and the credential go.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Standing {
    /// Nothing was asked yet.
    #[default]
    Unknown,
    /// GitHub answers usher.
    Up,
    /// It does not; why, for people.
    Down(String),
}

impl Wire {
    pub(super) fn new(net: Net, host: &str, limit_wait: Duration) -> Self {
        let base =
            if host == "github.com" { "https://api.github.com".to_owned() } else { format!("https://{host}/api/v3") };
        Self { net, base, limit_wait, standing: Arc::default() }
    }

    pub(super) fn standing(&self) -> Standing {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn request(&self, method: Method, path: &str, accept: &str) -> RequestBuilder {
        let request = self.net.client().request(method, format!("{}{path}", self.base));
        request.header(header::ACCEPT, accept).header("X-GitHub-Api-Version", "2022-11-28").timeout(TIMEOUT)
    }

    /// Sends; `what` is what a 404 is about.
    pub(super) async fn send(&self, request: RequestBuilder, what: &str) -> Result<Response, ApiError> {
        let answer = self.answer(request, what).await;
        let standing = match &answer {
            Err(error @ (ApiError::Transport(_) | ApiError::Unauthorized | ApiError::NoToken)) => {
                Standing::Down(error.to_string())
            }
            Ok(_) | Err(ApiError::RateLimited(_) | ApiError::NotFound(_) | ApiError::Refused { .. }) => Standing::Up,
        };
        *self.standing.lock().unwrap_or_else(PoisonError::into_inner) = standing;
        answer
    }

    async fn answer(&self, request: RequestBuilder, what: &str) -> Result<Response, ApiError> {
        let response = request.send().await.map_err(transport)?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let headers = response.headers().clone();
        let message = refusal(response).await;
        if let Some(wait) = limited(status, &headers, &message, self.limit_wait, Timestamp::now()) {
            return Err(ApiError::RateLimited(wait));
        }
        Err(match status {
            StatusCode::UNAUTHORIZED => ApiError::Unauthorized,
            StatusCode::NOT_FOUND => ApiError::NotFound(what.to_owned()),
            _ if status.is_server_error() => ApiError::Transport(anyhow::anyhow!("HTTP {}", status.as_u16())),
            _ => ApiError::Refused { status: status.as_u16(), message },
        })
    }
}

pub(super) async fn read<T: DeserializeOwned>(response: Response) -> Result<T, ApiError> {
    response.json().await.map_err(transport)
}

fn transport(error: reqwest::Error) -> ApiError {
    ApiError::Transport(without_url(error))
}

/// GitHub's own sentence, one line, never the whole body.
async fn refusal(response: Response) -> String {
    #[derive(Deserialize)]
    struct Body {
        message: String,
    }
    let message = response.json::<Body>().await.map_or_else(|_| "no reason given".to_owned(), |body| body.message);
    message.chars().filter(|c| !c.is_control()).take(200).collect()
}

/// How long a limit asks to wait: `Retry-After`, else the reset of an exhausted budget, else the configured least wait.
///
/// GitHub answers limits with 403 or 429 (platform-facts G). A secondary limit may come without any header that says so,
/// and then only the sentence tells it from a refusal, which would give the record up.
fn limited(
    status: StatusCode,
    headers: &HeaderMap,
    message: &str,
    least: Duration,
    now: Timestamp,
) -> Option<Duration> {
    if status != StatusCode::FORBIDDEN && status != StatusCode::TOO_MANY_REQUESTS {
        return None;
    }
    let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<i64>().ok();
    if let Some(seconds) = number("retry-after") {
        return Some(Duration::from_secs(u64::try_from(seconds).unwrap_or_default().clamp(1, 3_600)));
    }
    if number("x-ratelimit-remaining") == Some(0) {
        let seconds = number("x-ratelimit-reset").map_or(0, |reset| reset.saturating_sub(now.as_second()));
        return Some(Duration::from_secs(u64::try_from(seconds).unwrap_or_default().clamp(1, 3_600)));
    }
    let says_so = message.to_ascii_lowercase().contains("rate limit");
    (says_so || status == StatusCode::TOO_MANY_REQUESTS).then_some(least)
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::header::{HeaderName, HeaderValue};

    const NOW: i64 = 1_800_000_000;

    fn wait(status: u16, headers: &[(&'static str, &str)], message: &str) -> Option<u64> {
        let status = StatusCode::from_u16(status).unwrap();
        let pair = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
        };
        let headers: HeaderMap = headers.iter().map(pair).collect();
        let now = Timestamp::from_second(NOW).unwrap();
        limited(status, &headers, message, Duration::from_secs(60), now).map(|wait| wait.as_secs())
    }

    #[test]
    fn a_limit_is_told_from_a_refusal_and_says_how_long_to_wait() {
        let reset = |seconds: i64| (NOW + seconds).to_string();
        let (soon, past, late) = (reset(90), reset(-5), reset(90_000));
        let secondary = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.";
        for (status, headers, message, expected) in [
            (403, vec![("retry-after", "7")], "", Some(7)),
            (429, vec![("retry-after", " 7 ")], "", Some(7)),
            (429, vec![("retry-after", "0")], "", Some(1)),
            (429, vec![("retry-after", "-3")], "", Some(1)),
            (429, vec![("retry-after", "99999999")], "", Some(3_600)),
            (429, vec![("retry-after", "Wed, 21 Oct 2026 07:28:00 GMT")], "", Some(60)),
            (403, vec![("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", soon.as_str())], "", Some(90)),
            (403, vec![("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", past.as_str())], "", Some(1)),
            (403, vec![("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", late.as_str())], "", Some(3_600)),
            (403, vec![("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "-9223372036854775808")], "", Some(1)),
            (403, vec![("x-ratelimit-remaining", "0")], "", Some(1)),
            (403, vec![("x-ratelimit-remaining", "4999")], secondary, Some(60)),
            (403, vec![("x-ratelimit-remaining", "4999")], "Resource not accessible by integration", None),
            (429, vec![], "", Some(60)),
            (403, vec![], "", None),
            (404, vec![("retry-after", "7")], "rate limit", None),
            (500, vec![("retry-after", "7")], "rate limit", None),
        ] {
            assert_eq!(wait(status, &headers, message), expected, "{status} {headers:?} {message}");
        }
    }

    #[test]
    fn an_enterprise_host_has_its_api_below_v3() {
        let base = |host| Wire::new(Net::new().unwrap(), host, Duration::from_secs(60)).base;
        assert_eq!(base("github.com"), "https://api.github.com");
        assert_eq!(base("ghe.example.org"), "https://ghe.example.org/api/v3");
    }

    #[tokio::test]
    async fn without_a_token_nothing_is_asked() {
        let api = super::super::api::Api::new(Net::new().unwrap(), "github.com", None, Duration::from_secs(60));
        assert!(matches!(api.user().await, Err(ApiError::NoToken)));
    }
}
