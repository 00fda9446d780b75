//! Fetching: one attachment, under a policy, into a directory handle.
//!
//! Owns the whole way of a file from an allowed URL to a durable, hashed, safely named file, and the fixed reason when
//! there is none. It must not know messages, work items or vendors: the policy says which hosts, whose token, and what
//! an unexpected page means.

mod body;
mod described;
mod directory;
mod failure;
mod request;
mod transfer;
mod writer;

use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use reqwest::Response;
use secrecy::SecretString;

use self::body::Body;
pub use self::directory::Directory;
use self::failure::{Failure, Patience};
use self::request::Announced;
use self::transfer::Received;
use crate::core::attachment::{Kind, Reason, SavedFile};
use crate::core::hop::{AllowedUrl, HostTable};
use crate::core::sniff::{Sniffed, sniff};
use crate::net::{Net, without_url};

/// The rules under which files of one platform are fetched.
#[derive(Debug, Clone)]
pub struct Policy {
    /// The hosts that may be asked.
    pub table: HostTable,
    /// The platform's token; none asks without.
    pub bearer: Option<SecretString>,
    /// The largest file, in bytes; this very size is accepted.
    pub cap: u64,
    /// The longest silence of a server, before the headers and between two bytes.
    pub idle: Duration,
    /// The permissions of a saved file, such as `0o400`.
    pub mode: u32,
    /// What it means when a page comes in place of a file.
    pub html_means: Reason,
    /// What it means when the server knows no such file; on GitHub also that the token may not see it.
    pub not_found_means: Reason,
}

/// A file to fetch.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// Where it is.
    pub url: &'a AllowedUrl,
    /// The platform's id; also names it in the log.
    pub source_id: &'a str,
    /// What the person called it; data.
    pub shown_name: &'a str,
    /// Its size in bytes, only when the platform's figure is about these very bytes.
    pub declared_size: Option<u64>,
    /// Its media type as the platform claims it.
    pub declared_media_type: Option<&'a str>,
    /// Whether a page is what it is by rights: a canvas, a post, an e-mail.
    pub may_be_html: bool,
    /// What it claims to be; a clip announced as sound stays sound in a container that looks like video.
    pub kind: Kind,
}

/// What became of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fetched {
    /// Whole and durable.
    Saved {
        /// Where, with its hash.
        file: SavedFile,
        /// Bytes.
        size: u64,
        /// By its bytes where known, else as claimed.
        media_type: Option<String>,
        /// By its bytes where known, else as claimed.
        kind: Kind,
    },
    /// Nothing was saved, and why.
    Not(Reason),
}

impl From<Received> for Fetched {
    fn from(received: Received) -> Self {
        let Received { file, size, media_type, kind } = received;
        Self::Saved { file, size, media_type, kind }
    }
}

/// Fetches files. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Fetcher {
    net: Net,
}

impl Fetcher {
    /// A fetcher over the shared client.
    pub fn new(net: Net) -> Self {
        Self { net }
    }

    /// Fetches one file. Never an error: the words of a message go either way. Dropped before the last
    /// byte came, it leaves nothing behind.
    pub async fn fetch(&self, wanted: Wanted<'_>, policy: &Policy, directory: &Directory) -> Fetched {
        match patiently(policy.idle, || self.file(&wanted, policy, directory)).await {
            Ok(received) => {
                tracing::debug!(source_id = wanted.source_id, bytes = received.size, "file saved");
                received.into()
            }
            Err(failure) => {
                let (reason, cause) = (failure.reason(), format!("{:#}", failure.cause));
                tracing::info!(source_id = wanted.source_id, reason = reason.code(), cause, "file not fetched");
                Fetched::Not(reason)
            }
        }
    }

    /// Fetches a short text, such as captions, of at most `cap` bytes. A page is no text.
    pub async fn fetch_text(&self, url: &AllowedUrl, policy: &Policy, cap: usize) -> Option<String> {
        match patiently(policy.idle, || self.text(url, policy, cap)).await {
            Ok(text) => text,
            Err(failure) => {
                tracing::info!(cause = format!("{:#}", failure.cause), "text not fetched");
                None
            }
        }
    }

    async fn file(&self, wanted: &Wanted<'_>, policy: &Policy, directory: &Directory) -> Result<Received, Failure> {
        let response = request::open(&self.net, wanted.url, policy).await?;
        let announced = Announced::of(response.headers());
        transfer::receive(bytes_of(response), &announced, wanted, policy, directory).await
    }

    async fn text(&self, url: &AllowedUrl, policy: &Policy, cap: usize) -> Result<Option<String>, Failure> {
        let response = request::open(&self.net, url, policy).await?;
        let announced = Announced::of(response.headers());
        let mut body = Body::new(bytes_of(response), cap as u64, policy.idle);
        let bytes = body.batch(usize::MAX).await?.concat();
        let is_page = announced.is_html() || sniff(&bytes) == Sniffed::Html;
        Ok((!is_page).then(|| String::from_utf8_lossy(&bytes).into_owned()))
    }
}

fn bytes_of(response: Response) -> impl Stream<Item = anyhow::Result<Bytes>> + Unpin {
    response.bytes_stream().map(|chunk| chunk.map_err(without_url)).boxed()
}

/// Tries until it works or patience ends, each time from the start.
async fn patiently<T, F>(longest_wait: Duration, attempt: impl Fn() -> F) -> Result<T, Failure>
where
    F: Future<Output = Result<T, Failure>>,
{
    let mut patience = Patience::new(longest_wait);
    loop {
        match attempt().await {
            Err(failure) => match patience.after(&failure.how) {
                Some(pause) => tokio::time::sleep(pause).await,
                None => return Err(failure),
            },
            arrived => return arrived,
        }
    }
}
