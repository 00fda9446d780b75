//! The body of an answer as usher reads it.
//!
//! Owns the count, the cap and the limit on silence. It must not know where the stream comes from or where it goes.

use std::time::Duration;

use anyhow::anyhow;
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use tokio::time::timeout;

use super::failure::Failure;
use crate::core::attachment::Reason;

/// A stream with a count, a cap and a limit on silence.
pub(super) struct Body<S> {
    stream: S,
    cap: u64,
    idle: Duration,
    received: u64,
}

impl<S: Stream<Item = anyhow::Result<Bytes>> + Unpin> Body<S> {
    pub(super) fn new(stream: S, cap: u64, idle: Duration) -> Self {
        Self { stream, cap, idle, received: 0 }
    }

    /// The bytes that came so far.
    pub(super) fn received(&self) -> u64 {
        self.received
    }

    /// The next chunks, `enough` bytes or more in all, fewer only at the end; empty after it.
    pub(super) async fn batch(&mut self, enough: usize) -> Result<Vec<Bytes>, Failure> {
        let (mut chunks, mut gathered) = (Vec::new(), 0);
        while gathered < enough {
            let Some(chunk) = self.chunk().await? else { break };
            gathered += chunk.len();
            chunks.push(chunk);
        }
        Ok(chunks)
    }

    async fn chunk(&mut self) -> Result<Option<Bytes>, Failure> {
        let chunk = match timeout(self.idle, self.stream.next()).await {
            Ok(None) => return Ok(None),
            Ok(Some(chunk)) => chunk.map_err(Failure::broken)?,
            Err(_) => {
                let cause = anyhow!("no byte within {:?}, after {}", self.idle, self.received);
                return Err(Failure::last(Reason::TransferFailed, cause));
            }
        };
        self.received += chunk.len() as u64;
        if self.received > self.cap { Err(over_cap(self.cap)) } else { Ok(Some(chunk)) }
    }
}

/// What becomes of a file that is larger than it may be.
pub(super) fn over_cap(cap: u64) -> Failure {
    Failure::last(Reason::OverCap { cap }, anyhow!("more than {cap} bytes"))
}
