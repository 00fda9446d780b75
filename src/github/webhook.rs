//! The webhook: GitHub's deliveries, verified, stored, and only then answered.
//!
//! Owns the answers of the endpoint. A delivery is durable before its 2xx: GitHub never repeats one by itself
//! (platform-facts D), so what was answered and lost would be lost for good. It must not know what a message is for.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use jiff::Timestamp;
use secrecy::SecretString;
use tokio::time::timeout;
use tracing::{debug, info, warn};
use url::form_urlencoded;

use super::completion::incomplete_until;
use super::event::{Own, Scope, What, read};
use super::signature::{Verified, verify};
use crate::core::grant::Grants;
use crate::inbox::Inbox;
use crate::inbox::messages::{Arrival, Put};

/// GitHub gives an endpoint ten seconds; a body that takes longer comes from somebody else.
const BODY_LIMIT: Duration = Duration::from_secs(10);

/// What the endpoint works with.
#[derive(Debug)]
pub struct Webhook {
    /// Where deliveries go.
    pub inbox: Inbox,
    /// Who may speak: of anybody else nothing is kept.
    pub grants: Grants,
    /// The secrets that hold, one or during a rotation two; never none.
    pub secrets: Vec<SecretString>,
    /// The largest body, in bytes.
    pub max_body: usize,
    /// The repositories that are usher's business, `owner/repo`, lower-cased.
    pub repositories: Vec<String>,
    /// The Enterprise host, `None` for github.com.
    pub host: Option<String>,
    /// Who usher itself is on GitHub.
    pub own: tokio::sync::watch::Receiver<Own>,
}

/// A delivery, as its headers describe it.
struct Delivery {
    event: String,
    guid: String,
    payload: serde_json::Value,
}

/// The route.
pub fn route(path: &str, webhook: Webhook) -> Router {
    Router::new().route(path, post(deliver)).with_state(Arc::new(webhook))
}

async fn deliver(State(webhook): State<Arc<Webhook>>, request: Request) -> Response {
    match webhook.take(request).await {
        Ok((status, words)) => (status, words).into_response(),
        Err(refusal) => refusal.into_response(),
    }
}

/// A status and fixed words: what a stranger reads must not depend on anything secret (field report W3).
type Answer = (StatusCode, &'static str);

const UNSIGNED: Answer = (StatusCode::UNAUTHORIZED, "the signature is missing or wrong\n");
const MALFORMED: Answer = (StatusCode::BAD_REQUEST, "the delivery cannot be read\n");
const TOO_LARGE: Answer = (StatusCode::PAYLOAD_TOO_LARGE, "the delivery is too large\n");
const UNKNOWN_TYPE: Answer = (StatusCode::UNSUPPORTED_MEDIA_TYPE, "send application/json or a form\n");
const TOO_SLOW: Answer = (StatusCode::REQUEST_TIMEOUT, "the delivery took too long\n");
const NOT_STORED: Answer = (StatusCode::SERVICE_UNAVAILABLE, "the delivery could not be stored: deliver it again\n");
const STORED: Answer = (StatusCode::ACCEPTED, "stored\n");
const NOT_FOR_US: Answer = (StatusCode::ACCEPTED, "not for usher\n");
const KNOWN: Answer = (StatusCode::OK, "known already\n");
const PONG: Answer = (StatusCode::OK, "pong\n");

/// How the body is written, as the content type says.
#[derive(Clone, Copy)]
enum Form {
    Json,
    Urlencoded,
}

impl Webhook {
    async fn take(&self, request: Request) -> Result<Answer, Answer> {
        let (head, body) = request.into_parts();
        let form = form(&head.headers).ok_or(UNKNOWN_TYPE)?;
        let signature = head.headers.get("x-hub-signature-256").ok_or(UNSIGNED)?;
        let body = self.read(&head.headers, body).await?;
        let verified = verify(&self.secrets, signature.as_bytes(), body).ok_or(UNSIGNED)?;
        let delivery = delivery(&head.headers, form, &verified).ok_or(MALFORMED)?;
        if delivery.event == "ping" {
            info!("GitHub's ping arrived: the webhook works");
            return Ok(PONG);
        }
        self.store(delivery).await
    }

    async fn read(&self, headers: &HeaderMap, body: Body) -> Result<bytes::Bytes, Answer> {
        let declared =
            headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
        if declared.is_some_and(|length| length > self.max_body) {
            return Err(TOO_LARGE);
        }
        // The only way to fail here besides the limit is a peer that went away, and nobody reads that answer.
        let read = timeout(BODY_LIMIT, to_bytes(body, self.max_body)).await.map_err(|_| TOO_SLOW)?;
        read.map_err(|_| TOO_LARGE)
    }

    async fn store(&self, delivery: Delivery) -> Result<Answer, Answer> {
        let own = self.own.borrow().clone();
        let scope = Scope { host: self.host.as_deref(), repositories: &self.repositories };
        let message = match read(&delivery.event, &delivery.payload, scope, &own) {
            What::Message(message) => self.grants.keepable(*message),
            What::PassedOver(why) => {
                debug!(delivery = %delivery.guid, event = %delivery.event, reason = why.code(), "passed over");
                return Ok(NOT_FOR_US);
            }
        };
        let (id, now) = (message.id.clone(), Timestamp::now());
        let arrival = Arrival { twin_until: incomplete_until(&message, now), message, event: delivery.guid, now };
        match self.inbox.put(arrival).await {
            Ok(put) => {
                info!(%id, outcome = ?put, "accepted");
                Ok(if put == Put::New { STORED } else { KNOWN })
            }
            Err(error) => {
                warn!(%id, error = format!("{error:#}"), "a delivery could not be stored; GitHub keeps it for redelivery");
                Err(NOT_STORED)
            }
        }
    }
}

fn form(headers: &HeaderMap) -> Option<Form> {
    let content_type = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    match content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase().as_str() {
        "application/json" => Some(Form::Json),
        "application/x-www-form-urlencoded" => Some(Form::Urlencoded),
        _ => None,
    }
}

fn delivery(headers: &HeaderMap, form: Form, verified: &Verified) -> Option<Delivery> {
    let named = |name: &str| Some(headers.get(name)?.to_str().ok()?.chars().take(100).collect::<String>());
    let payload = match form {
        Form::Json => serde_json::from_slice(verified.body()).ok()?,
        Form::Urlencoded => {
            let (_, payload) = form_urlencoded::parse(verified.body()).find(|(name, _)| name == "payload")?;
            serde_json::from_str(&payload).ok()?
        }
    };
    Some(Delivery { event: named("x-github-event")?, guid: named("x-github-delivery")?, payload })
}
