//! GitHub as far as usher may use it: repositories, issues, pull requests and what people say there, kept and handed out
//! over its REST API as the real one does (platform-facts G); its files are in `assets`, its webhook events in `events`.

mod assets;
pub mod events;

mod rest;

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::http::{self, BrokenOff, Call, Reply};
use super::shared::{Secrets, Shared, Unexpected};

pub use assets::AssetRequest;

/// The account behind the token.
pub const LOGIN: &str = "usher-bot";
/// The longest body that GitHub takes, in characters.
const MAX_BODY: usize = 65_536;

/// The fake GitHub. Cheap to clone; every clone is the same one.
#[derive(Clone)]
pub struct FakeGitHub {
    state: Shared<State>,
    secrets: Secrets,
    unexpected: Unexpected,
}

struct State {
    token: String,
    token_revoked: bool,
    assets: assets::Assets,
    /// By `owner/repo`.
    repositories: BTreeMap<String, Repository>,
    /// By `owner/repo#12`.
    issues: BTreeMap<String, Issue>,
    next_id: u64,
    faults: VecDeque<WriteFault>,
    writes: Vec<Write>,
    calls: Vec<String>,
    rest: rest::Rest,
}

struct Repository {
    private: bool,
    archived: bool,
}

struct Issue {
    title: String,
    author: String,
    body: Option<String>,
    labels: Vec<String>,
    comments: Vec<Comment>,
    /// The branch, when it is a pull request.
    branch: Option<String>,
    reviews: Vec<Review>,
}

/// A comment on an issue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comment {
    pub id: u64,
    pub author: String,
    pub body: String,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub html_url: String,
}

/// A review of a pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Review {
    pub id: u64,
    pub author: String,
    pub state: String,
    /// GitHub writes null for a review of inline comments alone.
    pub body: Option<String>,
    /// In the order in which they were written.
    pub comments: Vec<InlineComment>,
}

/// A comment on a line of a pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InlineComment {
    pub id: u64,
    pub path: String,
    pub line: u64,
    pub body: String,
}

/// A comment that usher wrote, and when.
#[derive(Debug, Clone)]
pub struct Write {
    pub item: String,
    pub at: Instant,
}

/// A way in which writing a comment goes wrong.
#[derive(Debug, Clone)]
enum WriteFault {
    Refuse { status: u16, headers: Vec<(String, String)>, body: Value },
    SwallowAnswer,
    Hold(Duration),
}

impl FakeGitHub {
    pub fn new(secrets: &Secrets, unexpected: Unexpected) -> Self {
        let state = State {
            token: secrets.issue("github token", "ghp_"),
            token_revoked: false,
            assets: assets::Assets::default(),
            repositories: BTreeMap::new(),
            issues: BTreeMap::new(),
            next_id: 3_000_000_000,
            faults: VecDeque::new(),
            writes: Vec::new(),
            calls: Vec::new(),
            rest: rest::Rest::default(),
        };
        Self { state: Shared::new(state), secrets: secrets.clone(), unexpected }
    }

    pub fn token(&self) -> String {
        self.state.with(|state| state.token.clone())
    }

    /// The token stops working, or works again.
    pub fn revoke_token(&self, revoked: bool) {
        self.state.with(|state| state.token_revoked = revoked);
    }

    /// A repository, private or public.
    pub fn add_repository(&self, name: &str, private: bool) {
        self.state.with(|state| state.repositories.insert(name.to_owned(), Repository { private, archived: false }));
    }

    /// The repository becomes read-only.
    pub fn archive(&self, name: &str) {
        self.state.with(|state| state.repositories.get_mut(name).expect("a repository of this world").archived = true);
    }

    /// An open issue of a repository that exists, by `owner/repo#12`.
    pub fn add_issue(&self, item: &str, title: &str) {
        self.state.with(|state| state.issues.insert(item.to_owned(), Issue::new(title)));
    }

    /// An open pull request, with what its description says and the branch that it comes from.
    pub fn add_pull_request(&self, item: &str, title: &str, body: &str, branch: &str) {
        let (body, branch) = (Some(body.to_owned()), Some(branch.to_owned()));
        let issue = Issue { body, branch, ..Issue::new(title) };
        self.state.with(|state| state.issues.insert(item.to_owned(), issue));
    }

    /// What the description of an issue says.
    pub fn describe(&self, item: &str, body: &str) {
        self.state.with(|state| state.issue(item).body = Some(body.to_owned()));
    }

    /// Somebody reviews a pull request: words over all (empty: none) and inline comments.
    pub fn review(&self, item: &str, author: &str, body: &str, inline: &[&str]) -> Review {
        self.state.with(|state| {
            let comments = inline.iter().zip(10..).map(|(body, line)| state.inline_comment(body, line)).collect();
            let body = Some(body.to_owned()).filter(|body| !body.is_empty());
            let (id, author, review_state) = (state.next_id(), author.to_owned(), "commented".to_owned());
            let review = Review { id, author, state: review_state, body, comments };
            state.issue(item).reviews.push(review.clone());
            review
        })
    }

    /// A comment reads otherwise from now on.
    pub fn edit(&self, item: &str, id: u64, body: &str) -> Comment {
        self.state.with(|state| {
            let comment = state.issue(item).comments.iter_mut().find(|comment| comment.id == id);
            let comment = comment.expect("a comment of this world");
            comment.body = body.to_owned();
            comment.updated_at += jiff::SignedDuration::from_secs(1);
            comment.clone()
        })
    }

    /// Puts these labels on an issue, instead of those it had.
    pub fn label(&self, item: &str, labels: &[&str]) {
        let labels = labels.iter().map(ToString::to_string).collect();
        self.state.with(|state| state.issue(item).labels = labels);
    }

    /// Somebody comments on GitHub itself.
    pub fn comment(&self, item: &str, author: &str, body: &str) -> Comment {
        self.state.with(|state| state.store_comment(item, author, body))
    }

    /// The comments on an issue, oldest first.
    pub fn comments(&self, item: &str) -> Vec<Comment> {
        self.state.with(|state| state.issue(item).comments.clone())
    }

    /// The next `times` comments that usher writes are refused.
    pub fn fail_next(&self, times: usize, status: u16, headers: &[(&str, &str)], body: &Value) {
        let headers: Vec<_> = headers.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let fault = WriteFault::Refuse { status, headers, body: body.clone() };
        self.state.with(|state| state.faults.extend(std::iter::repeat_n(fault, times)));
    }

    /// The next comment is stored, and the connection closed without an answer.
    pub fn swallow_answer(&self) {
        self.state.with(|state| state.faults.push_back(WriteFault::SwallowAnswer));
    }

    /// The next comment is stored and answered only after this time.
    pub fn hold(&self, time: Duration) {
        self.state.with(|state| state.faults.push_back(WriteFault::Hold(time)));
    }

    /// What usher wrote and when, refused attempts left out.
    pub fn writes(&self) -> Vec<Write> {
        self.state.with(|state| state.writes.clone())
    }

    /// The calls so far, as `GET /repos/acme/widgets`.
    pub fn calls(&self) -> Vec<String> {
        self.state.with(|state| state.calls.clone())
    }

    /// Answers for api.github.com.
    pub async fn api(&self, call: Call) -> Result<Reply, BrokenOff> {
        self.state.with(|state| state.calls.push(format!("{} {}", call.method, call.path)));
        if !call.headers.contains_key(hyper::header::USER_AGENT) {
            return Ok(http::whole(403, "text/html", "Request forbidden by administrative rules."));
        }
        let segments: Vec<&str> = call.path.trim_matches('/').split('/').collect();
        if let Some(reply) = self.app(&call, &segments) {
            return Ok(reply);
        }
        let bears_token = call.bears(&self.token()) && !self.state.with(|state| state.token_revoked);
        if !bears_token && !self.bears_installation_token(&call) {
            return Ok(http::json(401, &json!({"message": "Bad credentials", "status": "401"})));
        }
        match (call.method.as_str(), segments.as_slice()) {
            ("GET", ["user"]) => Ok(user(LOGIN).reply(200)),
            ("GET", ["repos", owner, repo]) => Ok(self.repository(&format!("{owner}/{repo}"))),
            ("GET", ["repos", owner, repo, "issues", number]) => {
                Ok(self.rendered(&call, &format!("{owner}/{repo}#{number}"), |issue, item| Some(issue.json(item))))
            }
            ("GET", ["repos", owner, repo, "issues", "comments", id]) => {
                Ok(self.comment_by_id(&call, &format!("{owner}/{repo}#"), id))
            }
            ("GET", ["repos", owner, repo, "pulls", number]) => {
                let item = format!("{owner}/{repo}#{number}");
                Ok(self.rendered(&call, &item, |issue, item| issue.branch.is_some().then(|| issue.json(item))))
            }
            ("GET", ["repos", owner, repo, "pulls", number, "reviews", id]) => {
                let item = format!("{owner}/{repo}#{number}");
                Ok(self.rendered(&call, &item, |issue, item| Some(events::review(issue.review(id)?, item))))
            }
            ("GET", ["repos", owner, repo, "pulls", number, "reviews", id, "comments"]) => {
                let item = format!("{owner}/{repo}#{number}");
                Ok(self.rendered(&call, &item, |issue, item| Some(events::inline_comments(issue.review(id)?, item))))
            }
            ("GET", ["repos", owner, repo, "issues", number, "comments"]) => {
                Ok(self.list_comments(&format!("{owner}/{repo}#{number}"), &call))
            }
            ("POST", ["repos", owner, repo, "issues", number, "comments"]) => {
                self.write_comment(&format!("{owner}/{repo}#{number}"), &call).await
            }
            (_, segments) => Ok(self.rest(&call, segments).unwrap_or_else(|| self.unknown(&call))),
        }
    }

    fn unknown(&self, call: &Call) -> Reply {
        self.unexpected.record(format!("{} https://{}{}", call.method, call.host, call.path));
        not_found()
    }

    fn repository(&self, name: &str) -> Reply {
        self.state.with(|state| match state.repositories.get(name) {
            Some(found) => repository(name, found).reply(200),
            None => not_found(),
        })
    }

    /// What an item holds; with freshly signed URLs of its files when the caller asks for rendered bodies.
    fn rendered(&self, call: &Call, item: &str, find: impl FnOnce(&Issue, &str) -> Option<Value>) -> Reply {
        match self.state.with(|state| find(state.issues.get(item)?, item)) {
            Some(found) => self.as_accepted(call, found).reply(200),
            None => not_found(),
        }
    }

    fn comment_by_id(&self, call: &Call, repository: &str, id: &str) -> Reply {
        let found = self.state.with(|state| {
            let issues = state.issues.iter().filter(|(item, _)| item.starts_with(repository));
            let mut comments = issues.flat_map(|(item, issue)| issue.comments.iter().map(move |it| (item, it)));
            comments.find(|(_, comment)| comment.id.to_string() == id).map(|(item, comment)| comment.json(item))
        });
        match found {
            Some(found) => self.as_accepted(call, found).reply(200),
            None => not_found(),
        }
    }

    /// One page, oldest first, with a `Link` to the next one.
    fn list_comments(&self, item: &str, call: &Call) -> Reply {
        let Some(comments) = self.state.with(|state| state.issues.get(item).map(|issue| issue.comments.clone())) else {
            return not_found();
        };
        let since: Option<Timestamp> = call.parameter("since").parse().ok();
        let recent = comments.iter().filter(|comment| since.is_none_or(|since| comment.updated_at >= since));
        let per_page: usize = call.parameter("per_page").parse().unwrap_or(30).clamp(1, 100);
        let page: usize = call.parameter("page").parse().unwrap_or(1).max(1);
        let mut rest = recent.skip((page - 1) * per_page).peekable();
        let listed: Vec<Value> = rest.by_ref().take(per_page).map(|comment| comment.json(item)).collect();
        let reply = json!(listed).reply(200);
        if rest.peek().is_none() {
            return reply;
        }
        let since = since.map_or_else(String::new, |since| format!("&since={since}"));
        let next = format!("https://{}{}?per_page={per_page}&page={}{since}", call.host, call.path, page + 1);
        http::with_header(reply, "link", &format!("<{next}>; rel=\"next\""))
    }

    async fn write_comment(&self, item: &str, call: &Call) -> Result<Reply, BrokenOff> {
        let fault = self.state.with(|state| state.faults.pop_front());
        if let Some(WriteFault::Refuse { status, headers, body }) = &fault {
            let reply = body.clone().reply(*status);
            return Ok(headers.iter().fold(reply, |reply, (name, value)| http::with_header(reply, name, value)));
        }
        let reply = self.store_written(item, call);
        match fault {
            Some(WriteFault::SwallowAnswer) => return Err(BrokenOff),
            Some(WriteFault::Hold(time)) => tokio::time::sleep(time).await,
            Some(WriteFault::Refuse { .. }) | None => {}
        }
        Ok(reply)
    }

    fn store_written(&self, item: &str, call: &Call) -> Reply {
        let body = call.json["body"].as_str().unwrap_or("");
        if body.is_empty() || body.chars().count() > MAX_BODY {
            return body_refused().reply(422);
        }
        self.state.with(|state| {
            if !state.issues.contains_key(item) {
                return not_found();
            }
            state.writes.push(Write { item: item.to_owned(), at: Instant::now() });
            state.store_comment(item, LOGIN, body).json(item).reply(201)
        })
    }
}

impl State {
    fn issue(&mut self, item: &str) -> &mut Issue {
        self.issues.get_mut(item).expect("an issue of this world")
    }

    fn next_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    fn inline_comment(&mut self, body: &str, line: u64) -> InlineComment {
        InlineComment { id: self.next_id(), path: "src/squeak.rs".to_owned(), line, body: body.to_owned() }
    }

    fn store_comment(&mut self, item: &str, author: &str, body: &str) -> Comment {
        let now = Timestamp::from_second(Timestamp::now().as_second()).expect("the present");
        let (author, body, id) = (author.to_owned(), body.to_owned(), self.next_id());
        let issue = self.issue(item);
        let html_url = format!("{}#issuecomment-{id}", issue.html_url(item));
        let comment = Comment { id, author, body, created_at: now, updated_at: now, html_url };
        issue.comments.push(comment.clone());
        comment
    }
}

impl Issue {
    fn new(title: &str) -> Self {
        Self {
            title: title.to_owned(),
            author: "dana".to_owned(),
            body: None,
            labels: Vec::new(),
            comments: Vec::new(),
            branch: None,
            reviews: Vec::new(),
        }
    }

    fn html_url(&self, item: &str) -> String {
        let kind = if self.branch.is_some() { "pull" } else { "issues" };
        format!("https://github.com/{}", item.replace('#', &format!("/{kind}/")))
    }

    fn review(&self, id: &str) -> Option<&Review> {
        self.reviews.iter().find(|review| review.id.to_string() == id)
    }

    fn json(&self, item: &str) -> Value {
        let (repository, number) = item.split_once('#').expect("owner/repo#12");
        let labels: Vec<Value> = self.labels.iter().map(|label| json!({"name": label})).collect();
        let mut issue = json!({
            "id": 1_000_000, "number": number.parse::<u64>().unwrap_or(0), "title": self.title, "state": "open",
            "locked": false, "user": user(&self.author), "labels": labels, "assignees": [], "milestone": null,
            "body": self.body, "comments": self.comments.len(), "author_association": "OWNER",
            "url": format!("https://api.github.com/repos/{repository}/issues/{number}"),
            "html_url": self.html_url(item),
            "created_at": "2026-11-01T09:00:00Z", "updated_at": "2026-11-01T09:00:00Z", "closed_at": null,
        });
        if let Some(branch) = &self.branch {
            issue["head"] = json!({"ref": branch, "sha": "0".repeat(40)});
            issue["draft"] = json!(false);
            issue["merged"] = json!(false);
        }
        issue
    }
}

impl Comment {
    fn json(&self, item: &str) -> Value {
        let (repository, number) = item.split_once('#').expect("owner/repo#12");
        let id = self.id;
        json!({
            "id": id, "user": user(&self.author), "body": self.body, "author_association": "MEMBER",
            "created_at": self.created_at, "updated_at": self.updated_at, "performed_via_github_app": null,
            "url": format!("https://api.github.com/repos/{repository}/issues/comments/{id}"),
            "issue_url": format!("https://api.github.com/repos/{repository}/issues/{number}"),
            "html_url": self.html_url,
        })
    }
}

fn user(login: &str) -> Value {
    json!({"login": login, "id": 4242, "type": "User", "html_url": format!("https://github.com/{login}")})
}

fn repository(name: &str, Repository { private, archived }: &Repository) -> Value {
    let (owner, short) = name.split_once('/').expect("owner/repo");
    json!({
        "id": 777, "name": short, "full_name": name, "owner": user(owner), "private": private,
        "visibility": if *private { "private" } else { "public" }, "archived": archived, "has_issues": true,
        "html_url": format!("https://github.com/{name}"), "default_branch": "main",
        "permissions": {"admin": false, "maintain": false, "push": true, "triage": true, "pull": true},
    })
}

fn not_found() -> Reply {
    json!({"message": "Not Found", "status": "404"}).reply(404)
}

fn body_refused() -> Value {
    json!({"message": "Validation Failed", "status": "422", "errors": [{
        "resource": "IssueComment", "code": "unprocessable", "field": "data",
        "message": "Body is too long (maximum is 65536 characters)",
    }]})
}

/// JSON as GitHub sends it, with the rate-limit headers that every answer has.
trait GitHubReply {
    fn reply(&self, status: u16) -> Reply;
}

impl GitHubReply for Value {
    fn reply(&self, status: u16) -> Reply {
        let headers =
            [("x-ratelimit-limit", "5000"), ("x-ratelimit-remaining", "4990"), ("x-oauth-scopes", "repo, read:org")];
        headers.iter().fold(http::json(status, self), |reply, (name, value)| http::with_header(reply, name, value))
    }
}
