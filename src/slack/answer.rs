//! What an answer of the Web API means: the document that was asked for, or a class of failure.
//!
//! Owns Slack's words for errors, its rate limit headers and the shapes around a document. It must not know requests,
//! tokens or what an answer is used for.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::anyhow;
use jiff::Timestamp;
use reqwest::StatusCode;
use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};
use serde_json::Value;

use super::api::{ApiError, AuthTest, Page};
use crate::net::without_url;

/// The largest answer that is read: one message or one file object is a small fraction of it.
const MAX_ANSWER: usize = 4 * 1024 * 1024;

/// The wait after a rate limit that names none; the Python SDK's (platform-facts A1).
const DEFAULT_RETRY_AFTER: Duration = Duration::from_secs(30);

/// The longest wait that is believed.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(3600);

/// Errors that only a person can mend: a token, an app or a workspace is not what it was (platform-facts A1).
const NEEDS_ATTENTION: [&str; 15] = [
    "accesslimited",
    "account_inactive",
    "forbidden_team",
    "invalid_auth",
    "link_disabled",
    "no_permission",
    "not_allowed_token_type",
    "not_authed",
    "org_login_required",
    "team_access_not_granted",
    "team_disabled",
    "token_expired",
    "token_revoked",
    "two_factor_setup_required",
    "user_removed_from_team",
];

/// An `ok: true`.
#[derive(Debug)]
pub(super) struct Answer {
    method: &'static str,
    headers: HeaderMap,
    /// The document, `ok` included.
    pub(super) body: Value,
}

impl Answer {
    /// The object of this name in it.
    pub(super) fn part(mut self, name: &str) -> Result<Value, ApiError> {
        match self.body.get_mut(name).map(Value::take) {
            Some(part @ Value::Object(_)) => Ok(part),
            _ => Err(unexpected(self.method)),
        }
    }

    /// The post with this time stamp among those in it.
    pub(super) fn post(mut self, ts: &str) -> Option<Value> {
        let posts = self.body.get_mut("messages")?.as_array_mut()?;
        posts.iter_mut().find(|post| text_at(post, "/ts") == ts).map(Value::take)
    }

    /// The posts in it, and where the next page begins.
    pub(super) fn page(mut self) -> Page {
        let next =
            Some(text_at(&self.body, "/response_metadata/next_cursor").to_owned()).filter(|next| !next.is_empty());
        let posts = self.body.get_mut("messages").and_then(Value::as_array_mut).map(std::mem::take).unwrap_or_default();
        Page { posts, next }
    }

    /// The identity in it, with what the headers add.
    pub(super) fn auth_test(self) -> Result<AuthTest, ApiError> {
        let identity = serde_json::from_value(self.body).map_err(|_| unexpected(self.method))?;
        Ok(AuthTest { scopes: scopes(&self.headers), server_date: server_date(&self.headers), ..identity })
    }
}

/// Sorts an answer: what was asked for, or the class of the failure.
pub(super) fn parse(
    method: &'static str,
    status: StatusCode,
    headers: HeaderMap,
    body: &[u8],
) -> Result<Answer, ApiError> {
    let named_wait = retry_after(&headers);
    if status == StatusCode::TOO_MANY_REQUESTS || (!status.is_success() && named_wait.is_some()) {
        return Err(ApiError::RateLimited { retry_after: named_wait.unwrap_or(DEFAULT_RETRY_AFTER) });
    }
    if !status.is_success() {
        return Err(ApiError::Transport(anyhow!("{method} was answered with HTTP {}", status.as_u16())));
    }
    let body: Value = serde_json::from_slice(body).map_err(|_| unexpected(method))?;
    match body.get("ok").and_then(Value::as_bool) {
        Some(true) => Ok(Answer { method, headers, body }),
        Some(false) => Err(refusal(&body, named_wait)),
        None => Err(unexpected(method)),
    }
}

fn refusal(body: &Value, named_wait: Option<Duration>) -> ApiError {
    let error = word(text_at(body, "/error"));
    match error.as_str() {
        "ratelimited" => ApiError::RateLimited { retry_after: named_wait.unwrap_or(DEFAULT_RETRY_AFTER) },
        "missing_scope" => ApiError::MissingScope { needed: word(text_at(body, "/needed")) },
        known if NEEDS_ATTENTION.contains(&known) => ApiError::NeedsAttention { error },
        _ => ApiError::Refused { error },
    }
}

/// Slack's words are codes and scopes; anything else in their place must not reach a log.
fn word(text: &str) -> String {
    let safe = |c: &char| c.is_ascii_alphanumeric() || "_:.,-".contains(*c);
    let word: String = text.chars().filter(safe).take(200).collect();
    if word.is_empty() { "unknown".to_owned() } else { word }
}

/// The failure of an answer that has another shape than documented; says nothing of what was in it.
pub(super) fn unexpected(method: &str) -> ApiError {
    ApiError::Transport(anyhow!("the answer to {method} is not what Slack documents"))
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).min(MAX_RETRY_AFTER))
}

fn scopes(headers: &HeaderMap) -> Option<BTreeSet<String>> {
    let list = headers.get("x-oauth-scopes")?.to_str().ok()?;
    Some(list.split(',').map(str::trim).filter(|scope| !scope.is_empty()).map(str::to_owned).collect())
}

fn server_date(headers: &HeaderMap) -> Option<Timestamp> {
    let date = headers.get(DATE)?.to_str().ok()?;
    jiff::fmt::rfc2822::parse(date).ok().map(|date| date.timestamp())
}

/// A text inside a document; empty when it is missing or something else.
pub(super) fn text_at<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Reads a body up to [`MAX_ANSWER`], whatever its length header says.
pub(super) async fn read(mut response: reqwest::Response) -> anyhow::Result<Vec<u8>> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(without_url)? {
        if MAX_ANSWER < body.len() + chunk.len() {
            return Err(anyhow!("the answer is longer than {MAX_ANSWER} bytes"));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderName, HeaderValue};
    use serde_json::json;

    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        pairs.iter().map(pair).collect()
    }

    fn answer(pairs: &[(&'static str, &'static str)], body: &Value) -> Answer {
        parse("test.method", StatusCode::OK, headers(pairs), body.to_string().as_bytes()).expect("ok")
    }

    /// The class and the words of a failure.
    fn check(status: u16, pairs: &[(&'static str, &'static str)], body: &str, expected: &str) {
        let status = StatusCode::from_u16(status).expect("a status");
        let error = parse("test.method", status, headers(pairs), body.as_bytes()).expect_err(body);
        let class = match &error {
            ApiError::NoToken => "no token",
            ApiError::NeedsAttention { .. } => "attention",
            ApiError::MissingScope { .. } => "scope",
            ApiError::RateLimited { .. } => "limited",
            ApiError::Refused { .. } => "refused",
            ApiError::Transport(_) => "transport",
        };
        assert_eq!(format!("{class}: {error}"), expected, "{status} {body}");
        assert_eq!(error.is_lasting(), ["attention", "scope"].contains(&class), "{error}");
    }

    #[test]
    fn failures_have_their_class_and_words() {
        let in_30 = "limited: Slack limits the rate of calls, the next is allowed in 30 seconds";
        let undocumented =
            "transport: Slack could not be reached: the answer to test.method is not what Slack documents";
        check(429, &[], "", in_30);
        check(429, &[("retry-after", "soon")], "", in_30);
        check(200, &[], r#"{"ok":false,"error":"ratelimited"}"#, in_30);
        check(429, &[("retry-after", "7")], "", &in_30.replace("30", "7"));
        check(200, &[("retry-after", "7")], r#"{"ok":false,"error":"ratelimited"}"#, &in_30.replace("30", "7"));
        check(503, &[("retry-after", "18446744073709551615")], "", &in_30.replace("30", "3600"));
        check(
            503,
            &[],
            "upstream down",
            "transport: Slack could not be reached: test.method was answered with HTTP 503",
        );
        check(302, &[], "", "transport: Slack could not be reached: test.method was answered with HTTP 302");
        for body in ["", "<!doctype html>", "[]", "{}", r#"{"ok":"yes"}"#] {
            check(200, &[], body, undocumented);
        }
        check(
            200,
            &[],
            r#"{"ok":false,"error":"channel_not_found"}"#,
            "refused: Slack refused the call (channel_not_found)",
        );
        check(200, &[], r#"{"ok":false}"#, "refused: Slack refused the call (unknown)");
        check(200, &[], r#"{"ok":false,"error":"a\u001b[1m b"}"#, "refused: Slack refused the call (a1mb)");
        check(
            200,
            &[],
            r#"{"ok":false,"error":"missing_scope","needed":"channels:history,groups:history","provided":"chat:write"}"#,
            "scope: the Slack app lacks the scope channels:history,groups:history, or was not reinstalled after it was added",
        );
    }

    #[test]
    fn every_error_that_a_person_must_mend_is_lasting() {
        for error in NEEDS_ATTENTION {
            let body = json!({"ok": false, "error": error}).to_string();
            check(200, &[], &body, &format!("attention: Slack does not accept the token or the app ({error})"));
        }
    }

    #[test]
    fn auth_test_brings_scopes_and_the_clock_from_the_headers() {
        let pairs =
            [("x-oauth-scopes", "chat:write, files:read,,reactions:write"), ("date", "Tue, 04 Aug 2026 08:09:07 GMT")];
        let body = json!({"ok": true, "team": "Acme", "team_id": "T1", "user_id": "U1", "bot_id": "B1", "url": "https://acme.slack.com/"});
        let found = answer(&pairs, &body).auth_test().expect("an identity");
        let scopes = ["chat:write", "files:read", "reactions:write"].map(str::to_owned);
        let expected = AuthTest {
            team: "Acme".to_owned(),
            team_id: "T1".to_owned(),
            user_id: "U1".to_owned(),
            bot_id: Some("B1".to_owned()),
            url: "https://acme.slack.com/".to_owned(),
            scopes: Some(BTreeSet::from(scopes)),
            server_date: Some("2026-08-04T08:09:07Z".parse().expect("a time")),
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn auth_test_without_headers_knows_neither_scopes_nor_time() {
        let body = json!({"ok": true, "team_id": "T1", "user_id": "U1"});
        let found = answer(&[("date", "yesterday")], &body).auth_test().expect("an identity");
        assert_eq!((found.scopes, found.server_date, found.bot_id), (None, None, None));
        assert!(answer(&[], &json!({"ok": true})).auth_test().is_err());
    }

    #[test]
    fn no_scopes_at_all_differ_from_unknown_scopes() {
        assert_eq!(scopes(&headers(&[("x-oauth-scopes", "")])), Some(BTreeSet::new()));
    }

    #[test]
    fn a_post_is_found_by_its_time_stamp_beside_its_threads_first() {
        let body = json!({"ok": true, "messages": [{"ts": "1.0", "text": "first"}, {"ts": "2.0", "text": "it"}]});
        assert_eq!(answer(&[], &body).post("2.0"), Some(json!({"ts": "2.0", "text": "it"})));
        assert_eq!(answer(&[], &body).post("3.0"), None);
        assert_eq!(answer(&[], &json!({"ok": true, "messages": {}})).post("1.0"), None);
    }

    #[test]
    fn a_part_must_be_an_object() {
        assert_eq!(
            answer(&[], &json!({"ok": true, "file": {"id": "F1"}})).part("file").ok(),
            Some(json!({"id": "F1"}))
        );
        assert!(answer(&[], &json!({"ok": true, "file": []})).part("file").is_err());
        assert!(answer(&[], &json!({"ok": true})).part("file").is_err());
    }
}
