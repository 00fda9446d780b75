//! The GitHub REST calls that usher makes.
//!
//! Owns paths, paging, and the one retry with a renewed credential. It must not know what a comment says. Facts:
//! platform-facts G.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use reqwest::{Method, RequestBuilder, Response};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::auth::{Auth, TokenKind};
pub use super::wire::Standing;
use super::wire::{JSON, Wire, read};
use crate::core::message::{GitHubPlace, Spot};
use crate::core::work_item::WorkItem;
use crate::net::Net;

/// The entries of a full page, the most that GitHub gives.
pub(super) const PAGE: usize = 100;

/// Pages of 100 comments that a read back looks at; 10,000 comments in the time of one restart are not usher's.
const MAX_PAGES: usize = 100;

/// Bodies rendered as well, with freshly signed URLs (platform-facts E3).
const RENDERED: &str = "application/vnd.github.full+json";

/// The client of one GitHub host.
#[derive(Debug, Clone)]
pub struct Api {
    wire: Wire,
    auth: Option<Arc<Auth>>,
}

/// A call, and the repository that it is about: an app has a token for each owner.
struct Call {
    request: RequestBuilder,
    repository: Option<String>,
}

impl Call {
    fn json(self, body: &Value) -> Self {
        Self { request: self.request.json(body), ..self }
    }

    fn query(self, query: &[(&str, String)]) -> Self {
        Self { request: self.request.query(query), ..self }
    }
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
    /// The login; an app's ends in `[bot]`.
    pub login: String,
    /// The id of the app, when it is one.
    #[serde(skip)]
    pub app_id: Option<u64>,
}

/// What went wrong, as far as a caller branches on it.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// There is no token.
    #[error("usher holds no GitHub token: set GH_TOKEN")]
    NoToken,
    /// The token is not accepted.
    #[error("GitHub does not accept the token (HTTP 401): renew GH_TOKEN, or the key of the app")]
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
    pub fn new(net: Net, host: &str, auth: Option<Auth>, limit_wait: Duration) -> Self {
        Self { wire: Wire::new(net, host, limit_wait), auth: auth.map(Arc::new) }
    }

    /// Whether there is a credential at all.
    pub fn has_token(&self) -> bool {
        self.auth.is_some()
    }

    /// What the token is.
    pub async fn token_kind(&self) -> Option<TokenKind> {
        match &self.auth {
            Some(auth) => Some(auth.kind().await),
            None => None,
        }
    }

    /// The token for the first hop of a work item's attachments; without one, public ones are reachable still.
    pub async fn bearer(&self, item: &WorkItem) -> Option<SecretString> {
        self.auth.as_ref()?.bearer(&self.wire, Some(&item.repository())).await.ok()
    }

    /// How the last call ended.
    pub fn standing(&self) -> Standing {
        self.wire.standing()
    }

    /// Who the credential belongs to.
    pub async fn user(&self) -> Result<User, ApiError> {
        let auth = self.auth.as_ref().ok_or(ApiError::NoToken)?;
        match auth.user(&self.wire).await? {
            Some(app) => Ok(app),
            None => self.get("/user", "user").await,
        }
    }

    /// A repository, by `owner/repo`.
    pub async fn repository(&self, repository: &str) -> Result<Repository, ApiError> {
        self.get(&format!("/repos/{repository}"), &format!("repository {repository}")).await
    }

    /// Writes a comment. Not idempotent: read back before writing again.
    pub async fn comment(&self, item: &WorkItem, body: &str) -> Result<Comment, ApiError> {
        let request = self.request(Method::POST, &comments_path(item)).json(&serde_json::json!({ "body": body }));
        read(self.send(request, &item.to_string()).await?).await
    }

    /// The comments that changed since a moment, oldest first, all pages.
    pub async fn comments_since(&self, item: &WorkItem, since: Timestamp) -> Result<Vec<Comment>, ApiError> {
        let mut comments = Vec::new();
        for page in 1..=MAX_PAGES {
            let query = [("per_page", "100".to_owned()), ("page", page.to_string()), ("since", whole_seconds(since))];
            let request = self.request(Method::GET, &comments_path(item)).query(&query);
            let found: Vec<Comment> = read(self.send(request, &item.to_string()).await?).await?;
            let full = found.len() == 100;
            comments.extend(found);
            if !full {
                break;
            }
        }
        Ok(comments)
    }

    /// Anything, as it is.
    pub(super) async fn value(&self, path: &str) -> Result<Value, ApiError> {
        self.get(path, path).await
    }

    /// One page of a list, what changed longest ago first; lists that know no `since` give everything.
    pub(super) async fn page(
        &self,
        path: &str,
        more: &[(&str, &str)],
        since: Timestamp,
        page: usize,
    ) -> Result<Vec<Value>, ApiError> {
        let mut query: Vec<(&str, String)> = more.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        query.extend([("per_page", PAGE.to_string()), ("page", page.to_string()), ("since", whole_seconds(since))]);
        query.extend([("sort", "updated".to_owned()), ("direction", "asc".to_owned())]);
        let call = self.request(Method::GET, path).query(&query);
        read(self.send(call, path).await?).await
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
        let request = self.request_as(Method::GET, &path, RENDERED);
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
        self.pages(&path, JSON, &pull_request.to_string()).await
    }

    /// A pull request.
    pub async fn pull_request(&self, item: &WorkItem) -> Result<Value, ApiError> {
        self.get(&pull_path(item), &item.to_string()).await
    }

    async fn pages<T: DeserializeOwned>(&self, path: &str, accept: &str, what: &str) -> Result<Vec<T>, ApiError> {
        let mut all = Vec::new();
        for page in 1..=MAX_PAGES {
            let query = [("per_page", "100".to_owned()), ("page", page.to_string())];
            let request = self.request_as(Method::GET, path, accept).query(&query);
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
        let request = self.request(Method::DELETE, &format!("{path}/{id}"));
        self.send(request, "reaction").await.map(drop)
    }

    /// The path of a spot's reactions, and the id of this one after putting it there.
    async fn reaction(&self, place: &GitHubPlace, reaction: Reaction) -> Result<Option<(String, u64)>, ApiError> {
        #[derive(Deserialize)]
        struct Put {
            id: u64,
        }
        let Some(path) = reactions_path(place) else { return Ok(None) };
        let request = self.request(Method::POST, &path).json(&serde_json::json!({ "content": reaction.content() }));
        let put: Put = read(self.send(request, &place.item.to_string()).await?).await?;
        Ok(Some((path, put.id)))
    }

    async fn get<T: DeserializeOwned>(&self, path: &str, what: &str) -> Result<T, ApiError> {
        read(self.send(self.request(Method::GET, path), what).await?).await
    }

    fn request(&self, method: Method, path: &str) -> Call {
        self.request_as(method, path, JSON)
    }

    fn request_as(&self, method: Method, path: &str, accept: &str) -> Call {
        Call { request: self.wire.request(method, path, accept), repository: repository_of(path) }
    }

    /// Sends; a credential that GitHub no longer takes is renewed once.
    async fn send(&self, call: Call, what: &str) -> Result<Response, ApiError> {
        let auth = self.auth.as_ref().ok_or(ApiError::NoToken)?;
        let repository = call.repository.as_deref();
        let bearer = auth.bearer(&self.wire, repository).await?;
        let again = call.request.try_clone();
        match (self.wire.send(call.request.bearer_auth(bearer.expose_secret()), what).await, again) {
            (Err(ApiError::Unauthorized), Some(again)) => {
                let renewed = auth.renewed(&self.wire, repository, &bearer).await?.ok_or(ApiError::Unauthorized)?;
                self.wire.send(again.bearer_auth(renewed.expose_secret()), what).await
            }
            (answer, _) => answer,
        }
    }
}

/// The repository of a path, `owner/repo`.
fn repository_of(path: &str) -> Option<String> {
    let mut names = path.strip_prefix("/repos/")?.split('/');
    Some(format!("{}/{}", names.next()?, names.next()?))
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
