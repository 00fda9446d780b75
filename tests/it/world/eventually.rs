//! Waiting for something to become true. The only waiting there is in a story: no bare sleeps.

use std::fmt::Debug;
use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(4);

/// How long anything may take before its test fails: generous, because the machine may be busy. `WORLD_DEADLINE_SECS`
/// changes it.
pub fn deadline() -> Duration {
    let seconds = std::env::var("WORLD_DEADLINE_SECS").ok().and_then(|value| value.parse().ok()).unwrap_or(20);
    Duration::from_secs(seconds)
}

/// What a probe saw: there, or not yet and what was there instead.
pub trait Sighting {
    type Found;
    /// The value, or the state to show in the failure.
    fn found(self) -> Result<Self::Found, String>;
}

impl Sighting for bool {
    type Found = ();
    fn found(self) -> Result<(), String> {
        if self { Ok(()) } else { Err("false".to_owned()) }
    }
}

impl<T> Sighting for Option<T> {
    type Found = T;
    fn found(self) -> Result<T, String> {
        self.ok_or_else(|| "nothing".to_owned())
    }
}

impl<T, S: Debug> Sighting for Result<T, S> {
    type Found = T;
    fn found(self) -> Result<T, String> {
        self.map_err(|state| format!("{state:#?}"))
    }
}

/// Looks again until the probe sees it; panics with the last state after the deadline. A probe that returns
/// `Result<T, State>` puts its state into that failure.
#[track_caller]
pub fn eventually<S: Sighting>(what: &str, mut probe: impl FnMut() -> S) -> S::Found {
    let until = Instant::now() + deadline();
    loop {
        match probe().found() {
            Ok(found) => return found,
            Err(last) if Instant::now() >= until => panic!("{what}: not within {:?}; last seen: {last}", deadline()),
            Err(_) => std::thread::sleep(POLL),
        }
    }
}

/// `eventually` for a test that runs on an async runtime.
pub async fn eventually_async<S: Sighting>(what: &str, mut probe: impl FnMut() -> S) -> S::Found {
    let until = Instant::now() + deadline();
    loop {
        match probe().found() {
            Ok(found) => return found,
            Err(last) if Instant::now() >= until => panic!("{what}: not within {:?}; last seen: {last}", deadline()),
            Err(_) => tokio::time::sleep(POLL).await,
        }
    }
}
