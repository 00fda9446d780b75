//! Asking for a file: one GET a hop, until a body or a reason.
//!
//! Owns the request, the reading of status and headers, and the walk along redirects that `core::hop` decides. It must
//! not know what a body holds or where it goes. No URL leaves it in an error.

use std::time::Duration;

use anyhow::anyhow;
use reqwest::header::{self, HeaderMap, HeaderName};
use reqwest::{Response, StatusCode};
use secrecy::ExposeSecret as _;
use tokio::time::timeout;

use super::Policy;
use super::failure::{Failure, How};
use crate::core::attachment::Reason;
use crate::core::hop::{self, AllowedUrl};
use crate::net::{Net, without_url};

/// Slack says here that a file was refused: `?;acl_fail` (platform-facts C2).
const SLACK_META: HeaderName = HeaderName::from_static("x-slack-meta");

/// What the headers say about a body.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Announced {
    /// Bytes to come.
    pub(super) length: Option<u64>,
    /// Media type, parameters dropped, lower case.
    pub(super) media_type: Option<String>,
}

impl Announced {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let length = text(headers, &header::CONTENT_LENGTH).and_then(|value| value.parse().ok());
        let essence = text(headers, &header::CONTENT_TYPE).and_then(|value| value.split(';').next());
        let media_type =
            essence.map(|essence| essence.trim().to_ascii_lowercase()).filter(|essence| !essence.is_empty());
        Self { length, media_type }
    }

    /// Whether the server calls it a page.
    pub(super) fn is_html(&self) -> bool {
        matches!(self.media_type.as_deref(), Some("text/html" | "application/xhtml+xml"))
    }
}

/// Asks for the URL and follows redirects until a body begins.
pub(super) async fn open(net: &Net, url: &AllowedUrl, policy: &Policy) -> Result<Response, Failure> {
    let mut hop = url.clone();
    loop {
        let response = send(net, &hop, policy).await?;
        match read(response.status(), response.headers(), policy)? {
            Answer::Body => return Ok(response),
            Answer::Redirect(location) => hop = follow(&hop, &location, policy)?,
        }
    }
}

fn follow(from: &AllowedUrl, location: &str, policy: &Policy) -> Result<AllowedUrl, Failure> {
    hop::next(&policy.table, from, location)
        .map_err(|reason| Failure::last(reason, anyhow!("the server redirects to where usher does not go")))
}

async fn send(net: &Net, hop: &AllowedUrl, policy: &Policy) -> Result<Response, Failure> {
    // The bytes as they are: an encoded body would have another length and another hash.
    let request = net.client().get(hop.url().clone()).header(header::ACCEPT_ENCODING, "identity");
    let request = match &policy.bearer {
        Some(token) if hop.takes_bearer() => request.bearer_auth(token.expose_secret()),
        _ => request,
    };
    match timeout(policy.idle, request.send()).await {
        Ok(answer) => answer.map_err(|error| Failure::broken(without_url(error))),
        Err(_) => Err(Failure::last(Reason::TransferFailed, anyhow!("no answer within {:?}", policy.idle))),
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Body,
    Redirect(String),
}

fn read(status: StatusCode, headers: &HeaderMap, policy: &Policy) -> Result<Answer, Failure> {
    let refused =
        |reason: &Reason| Err(Failure::last(reason.clone(), anyhow!("answered with HTTP {}", status.as_u16())));
    match status {
        // A redirect decides for itself: the hop rules know the sign-in page, and name any other host.
        _ if status.is_redirection() => match location(headers) {
            Some(location) => Ok(Answer::Redirect(location)),
            None => refused(&Reason::TransferFailed),
        },
        _ if is_acl_fail(headers) => refused(&policy.html_means),
        StatusCode::OK => Ok(Answer::Body),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN if Announced::of(headers).is_html() => {
            refused(&policy.html_means)
        }
        StatusCode::NOT_FOUND | StatusCode::GONE => refused(&policy.not_found_means),
        StatusCode::TOO_MANY_REQUESTS => Err(busy(status, headers)),
        _ if status.is_server_error() => Err(busy(status, headers)),
        _ => refused(&Reason::TransferFailed),
    }
}

fn busy(status: StatusCode, headers: &HeaderMap) -> Failure {
    let seconds = text(headers, &header::RETRY_AFTER).and_then(|value| value.trim().parse().ok());
    Failure {
        how: How::Busy(seconds.map(Duration::from_secs)),
        cause: anyhow!("answered with HTTP {}", status.as_u16()),
    }
}

fn location(headers: &HeaderMap) -> Option<String> {
    text(headers, &header::LOCATION).map(str::to_owned)
}

fn is_acl_fail(headers: &HeaderMap) -> bool {
    text(headers, &SLACK_META).is_some_and(|meta| meta.contains("acl_fail"))
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;

    use super::*;
    use crate::core::hop::HostTable;

    fn policy() -> Policy {
        Policy {
            table: HostTable::slack(),
            bearer: None,
            cap: 100,
            idle: Duration::from_secs(1),
            mode: 0o400,
            html_means: Reason::NoScope,
            not_found_means: Reason::Deleted,
        }
    }

    fn answer(status: u16, headers: &[(&'static str, &str)]) -> Result<Answer, How> {
        let headers: HeaderMap = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap()))
            .collect();
        read(StatusCode::from_u16(status).unwrap(), &headers, &policy()).map_err(|failure| failure.how)
    }

    #[test]
    fn status_and_headers_decide_what_follows() {
        let last = |reason| Err(How::Final(reason));
        assert_eq!(answer(200, &[]), Ok(Answer::Body));
        assert_eq!(answer(200, &[("x-slack-meta", "?;acl_fail")]), last(Reason::NoScope));
        assert_eq!(answer(204, &[]), last(Reason::TransferFailed));
        assert_eq!(answer(206, &[]), last(Reason::TransferFailed));
        assert_eq!(answer(302, &[("location", "/x")]), Ok(Answer::Redirect("/x".into())));
        assert_eq!(
            answer(302, &[("location", "/x"), ("x-slack-meta", "?;acl_fail")]),
            Ok(Answer::Redirect("/x".into()))
        );
        assert_eq!(answer(302, &[]), last(Reason::TransferFailed));
        assert_eq!(answer(304, &[]), last(Reason::TransferFailed));
        assert_eq!(answer(401, &[("content-type", "text/html; charset=utf-8")]), last(Reason::NoScope));
        assert_eq!(answer(403, &[("x-slack-meta", "?;acl_fail")]), last(Reason::NoScope));
        assert_eq!(answer(403, &[("content-type", "application/xml")]), last(Reason::TransferFailed));
        assert_eq!(answer(404, &[]), last(Reason::Deleted));
        assert_eq!(answer(410, &[("content-type", "text/html")]), last(Reason::Deleted));
        assert_eq!(answer(429, &[("retry-after", "7")]), Err(How::Busy(Some(Duration::from_secs(7)))));
        assert_eq!(answer(429, &[("retry-after", "soon")]), Err(How::Busy(None)));
        assert_eq!(answer(503, &[]), Err(How::Busy(None)));
        assert_eq!(answer(418, &[]), last(Reason::TransferFailed));
    }

    #[test]
    fn headers_announce_length_and_media_type() {
        let headers = [(header::CONTENT_LENGTH, "12"), (header::CONTENT_TYPE, "Text/HTML; charset=utf-8")];
        let headers = headers.map(|(name, value)| (name, HeaderValue::from_static(value))).into_iter().collect();
        let announced = Announced::of(&headers);
        assert_eq!(announced, Announced { length: Some(12), media_type: Some("text/html".into()) });
        assert!(announced.is_html());
        assert_eq!(Announced::of(&HeaderMap::new()), Announced::default());
    }
}
