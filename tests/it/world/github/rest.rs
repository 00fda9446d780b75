//! More of GitHub's REST API: reactions, lists of issues, and apps with their installation tokens.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use serde_json::{Value, json};

use super::{FakeGitHub, GitHubReply as _, Issue, LOGIN, State, not_found, user};
use crate::world::http::{self, Call, Reply};

/// What this part keeps.
#[derive(Default)]
pub(super) struct Rest {
    /// By the path of what they are on: the content and the id of each.
    reactions: BTreeMap<String, BTreeMap<String, u64>>,
    next_reaction: u64,
    app: Option<App>,
}

/// A GitHub App that is installed on every repository.
struct App {
    id: u64,
    public_key: String,
    life: Duration,
    tokens: Vec<(String, Timestamp)>,
}

impl FakeGitHub {
    /// usher's reactions on a comment.
    pub fn reactions_on(&self, repository: &str, comment: u64) -> BTreeSet<String> {
        let path = format!("/repos/{repository}/issues/comments/{comment}");
        self.state
            .with(|state| state.rest.reactions.get(&path).map(|on| on.keys().cloned().collect()).unwrap_or_default())
    }

    /// Makes an app and answers its private key; its installation tokens hold for this long.
    pub fn add_app(&self, id: u64, life: Duration) -> String {
        let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_RSA_SHA256).expect("a key of the world");
        let app = App { id, public_key: key.public_key_pem(), life, tokens: Vec::new() };
        self.state.with(|state| state.rest.app = Some(app));
        key.serialize_pem()
    }

    /// The installation tokens that are out are no longer taken.
    pub fn revoke_installation_tokens(&self) {
        self.state.with(|state| state.rest.app.as_mut().expect("an app").tokens.clear());
    }

    /// How often usher asked for an installation token.
    pub fn tokens_asked(&self) -> usize {
        self.calls().iter().filter(|call| call.ends_with("/access_tokens")).count()
    }

    /// Another token instead of the one so far, which is no longer taken.
    pub fn renew_token(&self) -> String {
        let token = self.secrets.issue("renewed github token", "ghp_");
        self.state.with(|state| state.token.clone_from(&token));
        token
    }

    pub(super) fn bears_installation_token(&self, call: &Call) -> bool {
        let now = Timestamp::now();
        self.state.with(|state| {
            let tokens = state.rest.app.iter().flat_map(|app| &app.tokens);
            tokens.into_iter().any(|(token, until)| *until > now && call.bears(token))
        })
    }

    /// What an app asks with its own token.
    pub(super) fn app(&self, call: &Call, segments: &[&str]) -> Option<Reply> {
        let is_app_call = matches!(segments, ["app", ..] | ["repos", _, _, "installation"]);
        if !is_app_call {
            return None;
        }
        let secret = self.secrets.issue("installation token", "ghs_7_eyJ.");
        Some(self.state.with(|state| {
            let Some(app) = state.rest.app.as_mut().filter(|app| app.signed(call)) else {
                return json!({"message": "A JSON web token could not be decoded"}).reply(401);
            };
            match (call.method.as_str(), segments) {
                ("GET", ["app"]) => json!({"id": app.id, "slug": "usher-app", "name": "usher"}).reply(200),
                ("GET", ["repos", owner, _, "installation"]) => json!({"id": 99, "account": user(owner)}).reply(200),
                ("POST", ["app", "installations", "99", "access_tokens"]) => {
                    let until = Timestamp::now() + app.life;
                    app.tokens.push((secret.clone(), until));
                    json!({"token": secret, "expires_at": until, "permissions": {"issues": "write"}}).reply(201)
                }
                _ => not_found(),
            }
        }))
    }

    /// Answers what the main part does not.
    pub(super) fn rest(&self, call: &Call, segments: &[&str]) -> Option<Reply> {
        self.state.with(|state| match (call.method.as_str(), segments) {
            ("POST", ["repos", owner, repo, "issues", spot @ .., "reactions"]) => {
                Some(state.react(&format!("{owner}/{repo}"), spot, call))
            }
            ("GET", ["repos", owner, repo, "issues"]) => Some(state.list_issues(&format!("{owner}/{repo}"), call)),
            ("DELETE", ["repos", _, _, "issues", .., "reactions", id]) => Some(state.unreact(call, id)),
            _ => None,
        })
    }
}

impl App {
    /// Whether the call bears a token that this app signed for itself, dated and short-lived as GitHub demands.
    fn signed(&self, call: &Call) -> bool {
        let Some(token) = call.authorization().and_then(|value| value.strip_prefix("Bearer ")) else { return false };
        let key = DecodingKey::from_rsa_pem(self.public_key.as_bytes()).expect("the key of the world");
        let mut validation = Validation::new(Algorithm::RS256);
        validation.set_issuer(&[self.id.to_string()]);
        let Ok(claims) = jsonwebtoken::decode::<Value>(token, &key, &validation) else { return false };
        let (issued, ends) = (claims.claims["iat"].as_i64().unwrap_or(0), claims.claims["exp"].as_i64().unwrap_or(0));
        let now = Timestamp::now().as_second();
        issued <= now && ends <= now + 600
    }
}

impl State {
    fn react(&mut self, repository: &str, spot: &[&str], call: &Call) -> Reply {
        let is_there = match spot {
            ["comments", id] => self.issues.iter().any(|(item, issue)| {
                item.starts_with(&format!("{repository}#"))
                    && issue.comments.iter().any(|one| one.id.to_string() == *id)
            }),
            [number] => self.issues.contains_key(&format!("{repository}#{number}")),
            _ => false,
        };
        let content = call.json["content"].as_str().unwrap_or("");
        if !is_there {
            return not_found();
        }
        if !["+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes"].contains(&content) {
            return json!({"message": "Validation Failed", "status": "422"}).reply(422);
        }
        let path = call.path.trim_end_matches("/reactions").to_owned();
        let next = self.rest.next_reaction + 1;
        let id = *self.rest.reactions.entry(path).or_default().entry(content.to_owned()).or_insert(next);
        self.rest.next_reaction = next;
        let status = if id == next { 201 } else { 200 };
        json!({"id": id, "user": user(LOGIN), "content": content, "created_at": "2026-11-01T09:00:00Z"}).reply(status)
    }

    /// The issues that changed since, longest ago first.
    fn list_issues(&self, repository: &str, call: &Call) -> Reply {
        let since: Option<Timestamp> = call.parameter("since").parse().ok();
        let changed = |issue: &Issue| issue.comments.iter().map(|comment| comment.updated_at).max();
        let ours = self.issues.iter().filter(|(item, _)| item.starts_with(&format!("{repository}#")));
        let mut listed: Vec<_> = ours.filter(|(_, issue)| changed(issue) >= since).collect();
        listed.sort_by_key(|(_, issue)| changed(issue));
        let per_page: usize = call.parameter("per_page").parse().unwrap_or(30).clamp(1, 100);
        let page: usize = call.parameter("page").parse().unwrap_or(1).max(1);
        let page = listed.into_iter().skip((page - 1) * per_page).take(per_page);
        json!(page.map(|(item, issue)| issue.json(item)).collect::<Vec<_>>()).reply(200)
    }

    fn unreact(&mut self, call: &Call, id: &str) -> Reply {
        let path = call.path.split("/reactions").next().unwrap_or_default();
        let on = self.rest.reactions.entry(path.to_owned()).or_default();
        let before = on.len();
        on.retain(|_, known| known.to_string() != id);
        if on.len() == before { not_found() } else { http::whole(204, "text/plain", "") }
    }
}
