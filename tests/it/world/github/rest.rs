//! More of GitHub's REST API: reactions.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{FakeGitHub, GitHubReply as _, LOGIN, State, not_found, user};
use crate::world::http::{self, Call, Reply};

/// What this part keeps.
#[derive(Default)]
pub(super) struct Rest {
    /// By the path of what they are on: the content and the id of each.
    reactions: BTreeMap<String, BTreeMap<String, u64>>,
    next_reaction: u64,
}

impl FakeGitHub {
    /// usher's reactions on a comment.
    pub fn reactions_on(&self, repository: &str, comment: u64) -> BTreeSet<String> {
        let path = format!("/repos/{repository}/issues/comments/{comment}");
        self.state
            .with(|state| state.rest.reactions.get(&path).map(|on| on.keys().cloned().collect()).unwrap_or_default())
    }

    /// Answers what the main part does not.
    pub(super) fn rest(&self, call: &Call, segments: &[&str]) -> Option<Reply> {
        self.state.with(|state| match (call.method.as_str(), segments) {
            ("POST", ["repos", owner, repo, "issues", spot @ .., "reactions"]) => {
                Some(state.react(&format!("{owner}/{repo}"), spot, call))
            }
            ("DELETE", ["repos", _, _, "issues", .., "reactions", id]) => Some(state.unreact(call, id)),
            _ => None,
        })
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

    fn unreact(&mut self, call: &Call, id: &str) -> Reply {
        let path = call.path.split("/reactions").next().unwrap_or_default();
        let on = self.rest.reactions.entry(path.to_owned()).or_default();
        let before = on.len();
        on.retain(|_, known| known.to_string() != id);
        if on.len() == before { not_found() } else { http::whole(204, "text/plain", "") }
    }
}
