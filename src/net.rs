//! The one HTTP client: the only door to the network for every vendor.
//!
//! Owns the proxy and trust-store settings (both from the environment: `HTTPS_PROXY`, `SSL_CERT_FILE`), the websocket
//! upgrade, and error texts without URLs. It must not know any vendor's hosts, tokens or methods, and it follows no
//! redirect: each hop is decided by `core::hop`.

use std::time::Duration;

use anyhow::{Context as _, bail};
use reqwest::header;
use reqwest::redirect::Policy;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

/// A websocket over the shared client's connection, proxy and private certificate authority included.
pub type WebSocket = WebSocketStream<reqwest::Upgraded>;

/// How long a connection may take to open, TLS and proxy included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The largest websocket message usher reads; Slack's are far smaller, and one buffer must not become the memory.
const MAX_MESSAGE: usize = 4 * 1024 * 1024;

/// The shared client. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Net {
    client: reqwest::Client,
}

impl Net {
    /// Builds the client. Fails only when the TLS set-up does, for example on an unreadable `SSL_CERT_FILE`.
    pub fn new() -> anyhow::Result<Self> {
        let client = reqwest::Client::builder()
            .user_agent(concat!("usher/", env!("CARGO_PKG_VERSION")))
            .redirect(Policy::none())
            .referer(false)
            .connect_timeout(CONNECT_TIMEOUT)
            .build()
            .context("the HTTP client could not be built: check SSL_CERT_FILE and the system's certificates")?;
        Ok(Self { client })
    }

    /// The client, for requests whose hosts the vendor's module fixes.
    pub fn client(&self) -> &reqwest::Client {
        &self.client
    }

    /// Opens a websocket at a `wss://` URL. The URL carries a ticket: it appears in no error.
    pub async fn websocket(&self, url: &str) -> anyhow::Result<WebSocket> {
        let Some(rest) = url.strip_prefix("wss://") else { bail!("the websocket URL is not wss://") };
        let key = generate_key();
        let response = self
            .client
            .get(format!("https://{rest}"))
            .header(header::CONNECTION, "Upgrade")
            .header(header::UPGRADE, "websocket")
            .header(header::SEC_WEBSOCKET_VERSION, "13")
            .header(header::SEC_WEBSOCKET_KEY, &key)
            .send()
            .await
            .map_err(without_url)
            .context("the websocket could not be opened")?;
        if response.status() != reqwest::StatusCode::SWITCHING_PROTOCOLS {
            bail!("the websocket was refused with HTTP {}", response.status().as_u16());
        }
        let accept = response.headers().get(header::SEC_WEBSOCKET_ACCEPT).map(header::HeaderValue::as_bytes);
        if accept != Some(derive_accept_key(key.as_bytes()).as_bytes()) {
            bail!("the websocket handshake was answered by something that speaks no websocket");
        }
        let stream = response.upgrade().await.map_err(without_url).context("the websocket could not be opened")?;
        let config = WebSocketConfig::default().max_message_size(Some(MAX_MESSAGE)).max_frame_size(Some(MAX_MESSAGE));
        Ok(WebSocketStream::from_raw_socket(stream, Role::Client, Some(config)).await)
    }
}

/// An HTTP error that may be logged: `reqwest` prints the URL, and URLs carry tickets and signatures.
pub fn without_url(error: reqwest::Error) -> anyhow::Error {
    anyhow::Error::new(error.without_url())
}
