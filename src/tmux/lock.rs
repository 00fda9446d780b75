//! One writer for each pane.
//!
//! Owns the lock that a delivery holds from the guard to the verdict. It must not know what is delivered.

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::time::{Duration, Instant};

use super::hold::Hold;
use crate::core::session::Session;

/// How long, and how often, a pane's lock is tried for.
const LOCK_WAIT: Duration = Duration::from_millis(250);
const LOCK_POLL: Duration = Duration::from_millis(2);

/// One writer for each pane, also across processes (field report M10): an abstract socket, which the kernel frees with the
/// process.
#[derive(Debug)]
pub(super) struct PaneLock {
    _name: UnixListener,
}

impl PaneLock {
    /// Takes the lock. A name that was just freed may stay taken for a moment, because a child that is being spawned
    /// holds a copy of every descriptor until its `exec`: so it is tried for a while.
    pub(super) async fn take(session: &Session) -> Result<Self, Hold> {
        let deadline = Instant::now() + LOCK_WAIT;
        loop {
            match Self::try_take(session) {
                None if Instant::now() < deadline => tokio::time::sleep(LOCK_POLL).await,
                taken => return taken.ok_or(Hold::Locked),
            }
        }
    }

    fn try_take(session: &Session) -> Option<Self> {
        let name = format!("usher-pane/{}/{}/{}", session.server_pid, session.server_started, session.pane);
        let address = SocketAddr::from_abstract_name(name).ok()?;
        UnixListener::bind_addr(&address).ok().map(|name| Self { _name: name })
    }
}
