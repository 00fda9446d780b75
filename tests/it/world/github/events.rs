//! GitHub's webhook events, in the shape of the real ones (platform-facts D). A story lays what it wants otherwise over
//! them.

use serde_json::{Value, json};

use super::{Comment, FakeGitHub, InlineComment, Issue, Review, repository, user};

/// Lays fields over a payload: objects are merged, everything else is replaced.
pub fn with(mut payload: Value, fields: Value) -> Value {
    lay_over(&mut payload, fields);
    payload
}

fn lay_over(payload: &mut Value, fields: Value) {
    match (payload, fields) {
        (Value::Object(below), Value::Object(above)) => {
            above.into_iter().for_each(|(name, value)| lay_over(below.entry(name).or_insert(Value::Null), value));
        }
        (below, above) => *below = above,
    }
}

/// A user who may be a bot.
pub fn bot(login: &str) -> Value {
    with(user(login), json!({"type": "Bot"}))
}

impl FakeGitHub {
    /// `issue_comment`; on a pull request too, where GitHub calls it the issue.
    pub fn comment_event(&self, item: &str, action: &str, comment: &Comment) -> Value {
        let fields = json!({"action": action, "comment": comment.json(item), "sender": user(&comment.author)});
        with(self.issue_event(item), fields)
    }

    /// `issue_comment` for words that replaced others.
    pub fn edited_event(&self, item: &str, comment: &Comment, before: &str, editor: &str) -> Value {
        let fields = json!({"changes": {"body": {"from": before}}, "sender": user(editor)});
        with(self.comment_event(item, "edited", comment), fields)
    }

    /// `issues` with the action `opened`.
    pub fn opened_event(&self, item: &str) -> Value {
        with(self.issue_event(item), json!({"action": "opened", "sender": user("dana")}))
    }

    /// `pull_request` with the action `opened`.
    pub fn pull_request_event(&self, item: &str) -> Value {
        with(self.pull_event(item), json!({"action": "opened", "number": number(item), "sender": user("dana")}))
    }

    /// `pull_request_review`, then one `pull_request_review_comment` for each inline comment; as event and payload.
    pub fn review_events(&self, item: &str, of: &Review) -> Vec<(&'static str, Value)> {
        let said = json!({"action": "submitted", "review": review(of, item), "sender": user(&of.author)});
        let submitted = ("pull_request_review", with(self.pull_event(item), said));
        let inline = of.comments.iter().map(|comment| {
            let comment = inline_comment(of, comment, item);
            let created = json!({"action": "created", "comment": comment, "sender": user(&of.author)});
            ("pull_request_review_comment", with(self.pull_event(item), created))
        });
        std::iter::once(submitted).chain(inline).collect()
    }

    fn issue_event(&self, item: &str) -> Value {
        let mut payload = self.event(item, "issue");
        if self.state.with(|state| state.issue(item).branch.is_some()) {
            payload["issue"]["pull_request"] = json!({"url": "https://api.github.com/"});
        }
        payload
    }

    fn pull_event(&self, item: &str) -> Value {
        self.event(item, "pull_request")
    }

    fn event(&self, item: &str, container: &str) -> Value {
        let name = item.split_once('#').expect("owner/repo#12").0;
        self.state.with(|state| {
            let issue = state.issues.get(item).map(|issue| Issue::json(issue, item));
            let found = state.repositories.get(name).map(|found| repository(name, found));
            json!({container: issue, "repository": found, "organization": {"login": "acme", "id": 1}, "future": [{}]})
        })
    }
}

/// A review as REST and webhooks show it; only webhooks write its state in lower case.
pub fn review(review: &Review, item: &str) -> Value {
    json!({
        "id": review.id, "node_id": "PRR_x", "user": user(&review.author), "body": review.body, "state": review.state,
        "html_url": format!("https://github.com/{}/pull/{}#pullrequestreview-{}", name(item), number(item), review.id),
        "submitted_at": "2026-12-01T10:00:00Z", "commit_id": "0".repeat(40), "author_association": "NONE",
    })
}

/// The inline comments of a review as REST lists them.
pub fn inline_comments(review: &Review, item: &str) -> Value {
    review.comments.iter().map(|comment| inline_comment(review, comment, item)).collect()
}

fn inline_comment(review: &Review, comment: &InlineComment, item: &str) -> Value {
    json!({
        "id": comment.id, "pull_request_review_id": review.id, "user": user(&review.author), "body": comment.body,
        "path": comment.path, "line": comment.line, "start_line": null, "side": "RIGHT", "diff_hunk": "@@ -1 +1 @@",
        "html_url": format!("https://github.com/{}/pull/{}#discussion_r{}", name(item), number(item), comment.id),
        "created_at": "2026-12-01T10:00:00Z", "updated_at": "2026-12-01T10:00:00Z", "author_association": "NONE",
    })
}

fn name(item: &str) -> &str {
    item.split_once('#').map_or(item, |(name, _)| name)
}

fn number(item: &str) -> u64 {
    item.split_once('#').and_then(|(_, number)| number.parse().ok()).unwrap_or_default()
}
