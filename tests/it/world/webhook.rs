//! GitHub's side of a webhook: signs events, posts them to the daemon and reads the answer.
//!
//! HTTP is written by hand, over plain sockets, so that a story can send what no client library would.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::Value;
use sha2::Sha256;

use super::daemon::Daemon;
use super::eventually::deadline;
use super::shared::{Shared, random_uuid};

/// The path that usher listens at by default.
const PATH: &str = "/gh-webhook";

/// A webhook of a repository, pointed at one daemon.
#[derive(Clone)]
pub struct Hook {
    pub address: SocketAddr,
    secret: String,
    /// By GUID, for redelivery.
    sent: Shared<BTreeMap<String, Delivery>>,
}

/// What is posted. Everything can be changed before it is sent, the signature excepted, which follows the body unless a
/// story writes one.
#[derive(Debug, Clone)]
pub struct Delivery {
    pub method: String,
    pub path: String,
    /// Header names as GitHub writes them, with their values; `X-Hub-Signature-256` is added from `secret`.
    pub headers: Vec<(String, String)>,
    /// What it is signed with; `None`: not at all.
    pub secret: Option<String>,
    pub body: Vec<u8>,
}

/// What the daemon answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    pub status: u16,
    pub body: String,
    /// The delivery's GUID.
    pub guid: String,
}

impl Delivery {
    /// Sets a header, or another value for one that is there.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Leaves a header out.
    pub fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self
    }

    /// The request as it goes over the wire.
    pub fn bytes(&self) -> Vec<u8> {
        [self.head().as_bytes(), &self.body].concat()
    }

    fn guid(&self) -> String {
        let guid = self.headers.iter().find(|(name, _)| name == "X-GitHub-Delivery");
        guid.map(|(_, value)| value.clone()).unwrap_or_default()
    }

    fn head(&self) -> String {
        let signature =
            self.secret.iter().map(|secret| format!("X-Hub-Signature-256: {}\r\n", signed(secret, &self.body)));
        let headers = self.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n"));
        let lines: String = headers.chain(signature).collect();
        format!(
            "{} {} HTTP/1.1\r\nHost: hooks.acme.example\r\nConnection: close\r\n{lines}\r\n",
            self.method, self.path
        )
    }
}

impl Hook {
    /// The webhook with this secret, at the port on which the daemon listens.
    pub fn new(daemon: &Daemon, secret: String) -> Self {
        let line = daemon.wait_line("accepting webhook=");
        let address = line.rsplit_once('=').and_then(|(_, address)| address.trim().parse().ok());
        Self { address: address.expect("webhook=ADDRESS"), secret, sent: Shared::default() }
    }

    /// An event as GitHub would post it, as JSON.
    pub fn delivery(&self, event: &str, payload: &Value) -> Delivery {
        let body = payload.to_string().into_bytes();
        let headers = [
            ("User-Agent", "GitHub-Hookshot/0a1b2c3"),
            ("Accept", "*/*"),
            ("Content-Type", "application/json"),
            ("Content-Length", &body.len().to_string()),
            ("X-GitHub-Event", event),
            ("X-GitHub-Delivery", &random_uuid()),
            ("X-GitHub-Hook-ID", "292430182"),
            ("X-GitHub-Hook-Installation-Target-ID", "777"),
            ("X-GitHub-Hook-Installation-Target-Type", "repository"),
            ("X-Hub-Signature", "sha1=0000000000000000000000000000000000000000"),
        ];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        Delivery { method: "POST".into(), path: PATH.into(), headers, secret: Some(self.secret.clone()), body }
    }

    /// Posts an event.
    #[track_caller]
    pub fn deliver(&self, event: &str, payload: &Value) -> Response {
        self.send(&self.delivery(event, payload))
    }

    /// Posts an event as `application/x-www-form-urlencoded`, the default of GitHub's form.
    #[track_caller]
    pub fn deliver_form(&self, event: &str, payload: &Value) -> Response {
        let mut form = url::form_urlencoded::Serializer::new(String::new());
        let body = form.append_pair("payload", &payload.to_string()).finish().into_bytes();
        let delivery = self.delivery(event, payload).header("Content-Length", &body.len().to_string());
        self.send(&Delivery { body, ..delivery.header("Content-Type", "application/x-www-form-urlencoded") })
    }

    /// Posts the same delivery again, its GUID included.
    #[track_caller]
    pub fn redeliver(&self, guid: &str) -> Response {
        let delivery = self.sent.with(|sent| sent.get(guid).cloned());
        self.send(&delivery.expect("a delivery of this hook"))
    }

    /// Posts exactly this.
    #[track_caller]
    pub fn send(&self, delivery: &Delivery) -> Response {
        let guid = delivery.guid();
        self.sent.with(|sent| sent.insert(guid.clone(), delivery.clone()));
        let answer = self.exchange(&delivery.bytes());
        let (head, body) = answer.split_once("\r\n\r\n").expect("an HTTP answer");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        Response { status: status.expect("a status"), body: body.to_owned(), guid }
    }

    /// Sends these bytes and reads until the daemon closes the connection; what it says before that.
    #[track_caller]
    pub fn exchange(&self, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.address).expect("the daemon listens");
        stream.set_read_timeout(Some(deadline())).expect("a read timeout");
        // A daemon that has seen enough may close before everything is written; its answer is there to read all the same.
        stream.write_all(bytes).ok();
        let (mut answer, mut piece) = (Vec::new(), [0; 4096]);
        while let Ok(length @ 1..) = stream.read(&mut piece) {
            answer.extend(&piece[..length]);
        }
        String::from_utf8_lossy(&answer).into_owned()
    }
}

/// The value of `X-Hub-Signature-256`.
pub fn signed(secret: &str, body: &[u8]) -> String {
    let mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("a key of any length");
    format!("sha256={}", hex::encode(mac.chain_update(body).finalize().into_bytes()))
}
