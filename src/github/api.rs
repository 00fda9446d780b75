//! The GitHub REST calls that usher makes.
//!
//! Owns the base URL, the headers, paging, and the reading of GitHub's refusals into a closed set of classes. It must
//! not know what a comment says. Facts: platform-facts G.

use std::time::Duration;

use jiff::Timestamp;
use reqwest::header::{self, HeaderMap};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::core::message::{GitHubPlace, Spot};
use crate::core::work_item::WorkItem;
use crate::net::{Net, without_url};

/// GitHub itself gives up after ten seconds (platform-facts G); a little more covers the way there.
const TIMEOUT: Duration = Duration::from_secs(15);

/// Pages of 100 comments that a read back looks at; 10,000 comments in the time of one restart are not usher's.
const MAX_PAGES: usize = 100;

/// Bodies as they were written.
const PLAIN: &str = "application/vnd.github+json";

/// Bodies rendered as well, with freshly signed URLs (platform-facts E3).
const RENDERED: &str = "application/vnd.github.full+json";

/// The client of one GitHub host.
#[derive(Debug, Clone)]
pub struct Api {
    net: Net,
    base: String,
    token: Option<SecretString>,
    limit_wait: Duration,
}

/// A comment on an issue or pull request.
#[derive(Debug, Clone, Deserialize)]
pub struct Comment {
    /// Markdown, with CRLF line ends when a browser wrote it.
    #[serde(default)]
    pub body: Option<String>,
    /// A link for people.
    #[serde(default)]
    pub html_url: String,
}

/// A repository, as far as usher looks at it.
#[derive(Debug, Clone, Deserialize)]
pub struct Repository {
    /// Whether strangers cannot read it.
    #[serde(default)]
    pub private: bool,
    /// What the token may do in it; GitHub leaves it out for some tokens.
    #[serde(default)]
    pub permissions: Option<Permissions>,
    /// Whether it is read-only.
    #[serde(default)]
    pub archived: bool,
}

/// What the token may do in a repository.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct Permissions {
    /// Read.
    #[serde(default)]
    pub pull: bool,
}

/// A reaction that usher uses, by GitHub's name for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reaction {
    /// 👀
    Eyes,
    /// 🚀
    Rocket,
    /// 😕
    Confused,
}

impl Reaction {
    const fn content(self) -> &'static str {
        match self {
            Self::Eyes => "eyes",
            Self::Rocket => "rocket",
            Self::Confused => "confused",
        }
    }
}

/// Who the token belongs to.
#[derive(Debug, Clone, Deserialize)]
pub struct User {
    /// The login.
    pub login: String,
}

/// What went wrong, as far as a caller branches on it.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// There is no token.
    #[error("usher holds no GitHub token: set GH_TOKEN")]
    NoToken,
    /// The token is not accepted.
    #[error("GitHub does not accept the token (HTTP 401): renew GH_TOKEN")]
    Unauthorized,
    /// A primary or secondary limit.
    #[error("GitHub's rate limit: again in {} s", .0.as_secs())]
    RateLimited(Duration),
    /// GitHub answers 404 for what this token may not see, too.
    #[error("GitHub shows no {0} to this token (HTTP 404): it does not exist, or the token may not read it")]
    NotFound(String),
    /// It will not be done, however often it is asked.
    #[error("GitHub refused it (HTTP {status}): {message}")]
    Refused {
        /// The status.
        status: u16,
        /// GitHub's sentence.
        message: String,
    },
    /// It may be done later.
    #[error("GitHub could not be reached")]
    Transport(#[source] anyhow::Error),
}

impl Api {
    /// A client for github.com, or for an Enterprise host.
    pub fn new(net: Net, host: &str, token: Option<SecretString>, limit_wait: Duration) -> Self {
        let base =
            if host == "github.com" { "https://api.github.com".to_owned() } else { format!("https://{host}/api/v3") };
        Self { net, base, token, limit_wait }
    }

    /// Whether there is a token at all.
    pub fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// Who the token belongs to.
    pub async fn user(&self) -> Result<User, ApiError> {
        self.get("/user", "user").await
    }

    /// A repository, by `owner/repo`.
    pub async fn repository(&self, repository: &str) -> Result<Repository, ApiError> {
        self.get(&format!("/repos/{repository}"), &format!("repository {repository}")).await
    }

    /// Writes a comment. Not idempotent: read back before writing again.
    pub async fn comment(&self, item: &WorkItem, body: &str) -> Result<Comment, ApiError> {
        let request = self.request(Method::POST, &comments_path(item))?.json(&serde_json::json!({ "body": body }));
        read(self.send(request, &item.to_string()).await?).await
    }

    /// The comments that changed since a moment, oldest first, all pages.
    pub async fn comments_since(&self, item: &WorkItem, since: Timestamp) -> Result<Vec<Comment>, ApiError> {
        let mut comments = Vec::new();
        for page in 1..=MAX_PAGES {
            let query = [("per_page", "100".to_owned()), ("page", page.to_string()), ("since", whole_seconds(since))];
            let request = self.request(Method::GET, &comments_path(item))?.query(&query);
            let found: Vec<Comment> = read(self.send(request, &item.to_string()).await?).await?;
            let full = found.len() == 100;
            comments.extend(found);
            if !full {
                break;
            }
        }
        Ok(comments)
    }

    /// What was said at a spot as GitHub renders it, with freshly signed URLs of private assets.
    pub async fn rendered(&self, item: &WorkItem, spot: Spot) -> Result<String, ApiError> {
        #[derive(Deserialize)]
        struct Rendered {
            #[serde(default)]
            body_html: String,
        }
        let (repository, number) = (item.repository(), item.number());
        let path = match spot {
            Spot::Description => format!("/repos/{repository}/issues/{number}"),
            Spot::Comment(id) => format!("/repos/{repository}/issues/comments/{id}"),
            Spot::Review(id) => format!("/repos/{repository}/pulls/{number}/reviews/{id}"),
        };
        let request = self.request_as(Method::GET, &path, RENDERED)?;
        let said: Rendered = read(self.send(request, &item.to_string()).await?).await?;
        let Spot::Review(_) = spot else { return Ok(said.body_html) };
        let inline: Vec<Rendered> = self.pages(&format!("{path}/comments"), RENDERED, &item.to_string()).await?;
        Ok(inline.into_iter().fold(said.body_html, |html, comment| html + "\n" + &comment.body_html))
    }

    /// A review, without its inline comments.
    pub async fn review(&self, pull_request: &WorkItem, id: u64) -> Result<Value, ApiError> {
        self.get(&format!("{}/reviews/{id}", pull_path(pull_request)), &pull_request.to_string()).await
    }

    /// The inline comments of a review, all pages.
    pub async fn review_comments(&self, pull_request: &WorkItem, id: u64) -> Result<Vec<Value>, ApiError> {
        let path = format!("{}/reviews/{id}/comments", pull_path(pull_request));
        self.pages(&path, PLAIN, &pull_request.to_string()).await
    }

    /// A pull request.
    pub async fn pull_request(&self, item: &WorkItem) -> Result<Value, ApiError> {
        self.get(&pull_path(item), &item.to_string()).await
    }

    async fn pages<T: DeserializeOwned>(&self, path: &str, accept: &str, what: &str) -> Result<Vec<T>, ApiError> {
        let mut all = Vec::new();
        for page in 1..=MAX_PAGES {
            let query = [("per_page", "100".to_owned()), ("page", page.to_string())];
            let request = self.request_as(Method::GET, path, accept)?.query(&query);
            let found: Vec<T> = read(self.send(request, what).await?).await?;
            let full = found.len() == 100;
            all.extend(found);
            if !full {
                break;
            }
        }
        Ok(all)
    }

    /// Puts a reaction on what was said; the same one a second time changes nothing.
    pub async fn react(&self, place: &GitHubPlace, reaction: Reaction) -> Result<(), ApiError> {
        self.reaction(place, reaction).await.map(drop)
    }

    /// Takes usher's own reaction off. GitHub takes reactions off by id alone, and putting one that is there tells its id.
    pub async fn unreact(&self, place: &GitHubPlace, reaction: Reaction) -> Result<(), ApiError> {
        let Some((path, id)) = self.reaction(place, reaction).await? else { return Ok(()) };
        let request = self.request(Method::DELETE, &format!("{path}/{id}"))?;
        self.send(request, "reaction").await.map(drop)
    }

    /// The path of a spot's reactions, and the id of this one after putting it there.
    async fn reaction(&self, place: &GitHubPlace, reaction: Reaction) -> Result<Option<(String, u64)>, ApiError> {
        #[derive(Deserialize)]
        struct Put {
            id: u64,
        }
        let Some(path) = reactions_path(place) else { return Ok(None) };
        let request = self.request(Method::POST, &path)?.json(&serde_json::json!({ "content": reaction.content() }));
        let put: Put = read(self.send(request, &place.item.to_string()).await?).await?;
        Ok(Some((path, put.id)))
    }

    async fn get<T: DeserializeOwned>(&self, path: &str, what: &str) -> Result<T, ApiError> {
        read(self.send(self.request(Method::GET, path)?, what).await?).await
    }

    fn request(&self, method: Method, path: &str) -> Result<RequestBuilder, ApiError> {
        self.request_as(method, path, PLAIN)
    }

    fn request_as(&self, method: Method, path: &str, accept: &str) -> Result<RequestBuilder, ApiError> {
        let token = self.token.as_ref().ok_or(ApiError::NoToken)?;
        let request = self.net.client().request(method, format!("{}{path}", self.base));
        Ok(request
            .bearer_auth(token.expose_secret())
            .header(header::ACCEPT, accept)
            .header("X-GitHub-Api-Version", "2022-11-28")
            .timeout(TIMEOUT))
    }

    async fn send(&self, request: RequestBuilder, what: &str) -> Result<Response, ApiError> {
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

fn comments_path(item: &WorkItem) -> String {
    format!("/repos/{}/issues/{}/comments", item.repository(), item.number())
}

fn pull_path(item: &WorkItem) -> String {
    format!("/repos/{}/pulls/{}", item.repository(), item.number())
}

/// GitHub has no reactions on a review: it stays without marks.
fn reactions_path(place: &GitHubPlace) -> Option<String> {
    let repository = place.item.repository();
    match place.spot {
        Spot::Description => Some(format!("/repos/{repository}/issues/{}/reactions", place.item.number())),
        Spot::Comment(id) => Some(format!("/repos/{repository}/issues/comments/{id}/reactions")),
        Spot::Review(_) => None,
    }
}

fn whole_seconds(moment: Timestamp) -> String {
    Timestamp::from_second(moment.as_second()).unwrap_or(moment).to_string()
}

async fn read<T: DeserializeOwned>(response: Response) -> Result<T, ApiError> {
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
        let base = |host| Api::new(Net::new().unwrap(), host, None, Duration::from_secs(60)).base;
        assert_eq!(base("github.com"), "https://api.github.com");
        assert_eq!(base("ghe.example.org"), "https://ghe.example.org/api/v3");
    }

    #[tokio::test]
    async fn without_a_token_nothing_is_asked() {
        let api = Api::new(Net::new().unwrap(), "github.com", None, Duration::from_secs(60));
        assert!(matches!(api.user().await, Err(ApiError::NoToken)));
    }
}
