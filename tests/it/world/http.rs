//! The HTTP that the fakes speak: a request read whole, and replies that may be well-behaved or not.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use serde_json::Value;

/// hyper throws away what it has not yet written when a body fails: this much time to write it.
const FLUSH: Duration = Duration::from_millis(30);

/// The body of a reply; an error in it breaks the connection off.
pub type Body = UnsyncBoxBody<Bytes, BrokenOff>;
pub type Reply = Response<Body>;

/// The server ends the connection here, without a further word.
#[derive(Debug, thiserror::Error)]
#[error("the fake world breaks off here on purpose")]
pub struct BrokenOff;

/// One request, read whole.
#[derive(Debug, Clone)]
pub struct Call {
    pub host: String,
    pub method: Method,
    pub path: String,
    /// Parameters of the query and of the body (form or JSON object); values as text.
    pub parameters: BTreeMap<String, String>,
    pub headers: HeaderMap,
    /// The body, when it was JSON.
    pub json: Value,
}

impl Call {
    /// Reads the request's body and all its parameters.
    pub async fn read(host: &str, request: Request<Incoming>) -> Self {
        let (head, body) = request.into_parts();
        let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        let content_type = head.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
        let mut parameters = pairs(head.uri.query().unwrap_or("").as_bytes());
        let mut json = Value::Null;
        if content_type.starts_with("application/x-www-form-urlencoded") {
            parameters.extend(pairs(&body));
        } else if let Ok(value) = serde_json::from_slice::<Value>(&body) {
            parameters.extend(fields(&value));
            json = value;
        }
        Self {
            host: host.to_owned(),
            method: head.method,
            path: head.uri.path().to_owned(),
            parameters,
            headers: head.headers,
            json,
        }
    }

    /// A parameter's value; empty when it was not sent.
    pub fn parameter(&self, name: &str) -> &str {
        self.parameters.get(name).map_or("", String::as_str)
    }

    /// Whether the request carries exactly this bearer token.
    pub fn bears(&self, token: &str) -> bool {
        self.authorization() == Some(&format!("Bearer {token}"))
    }

    /// The `Authorization` header.
    pub fn authorization(&self) -> Option<&str> {
        self.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok())
    }
}

fn pairs(encoded: &[u8]) -> BTreeMap<String, String> {
    url::form_urlencoded::parse(encoded).into_owned().collect()
}

fn fields(value: &Value) -> BTreeMap<String, String> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    value.as_object().into_iter().flatten().map(|(name, value)| (name.clone(), text(value))).collect()
}

/// A whole reply. Every fake's reply is made here or by `stream`, so all have the `date` header that hyper adds.
pub fn whole(status: u16, content_type: &str, body: impl Into<Bytes>) -> Reply {
    let body = Full::new(body.into()).map_err(|never: Infallible| match never {}).boxed_unsync();
    let mut reply = Response::new(body);
    *reply.status_mut() = StatusCode::from_u16(status).expect("a valid status");
    with_header(reply, "content-type", content_type)
}

pub fn json(status: u16, body: &Value) -> Reply {
    whole(status, "application/json; charset=utf-8", body.to_string())
}

pub fn redirect(location: &str) -> Reply {
    with_header(whole(302, "text/html", ""), "location", location)
}

/// A reply in pieces, as the stream brings them; with no length it is chunked.
pub fn streamed(
    content_type: &str,
    length: Option<usize>,
    pieces: impl Stream<Item = Result<Bytes, BrokenOff>> + Send + 'static,
) -> Reply {
    let reply = Response::new(StreamBody::new(pieces.map(|piece| piece.map(Frame::data))).boxed_unsync());
    let reply = with_header(reply, "content-type", content_type);
    match length {
        Some(length) => with_header(reply, "content-length", &length.to_string()),
        None => reply,
    }
}

/// These bytes, then what `end` says.
pub fn then(bytes: Bytes, end: End) -> impl Stream<Item = Result<Bytes, BrokenOff>> + Send + 'static {
    let last = stream::once(async move {
        match end {
            End::BreakOff => {
                tokio::time::sleep(FLUSH).await;
                Err(BrokenOff)
            }
            End::Silence => std::future::pending().await,
        }
    });
    stream::iter([Ok(bytes)]).chain(last)
}

/// How a misbehaving body ends.
#[derive(Debug, Clone, Copy)]
pub enum End {
    /// The connection is closed.
    BreakOff,
    /// The connection stays, and nothing more comes.
    Silence,
}

/// These bytes at a steady pace.
pub fn paced(bytes: Bytes, per_second: usize) -> impl Stream<Item = Result<Bytes, BrokenOff>> + Send + 'static {
    let piece = (per_second / 20).max(1);
    stream::unfold(bytes, move |mut rest| async move {
        if rest.is_empty() {
            return None;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        let next = rest.split_to(piece.min(rest.len()));
        Some((Ok(next), rest))
    })
}

pub fn with_header(mut reply: Reply, name: &str, value: &str) -> Reply {
    let name = HeaderName::from_bytes(name.as_bytes()).expect("a valid header name");
    reply.headers_mut().insert(name, HeaderValue::from_str(value).expect("a valid header value"));
    reply
}
