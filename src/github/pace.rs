//! The pace of writes to GitHub: one at a time, a second apart, and none while a limit holds.
//!
//! Owns the moment from which the next write may begin, for everything that usher writes: records, reactions and notices
//! count as creation of content alike (platform-facts G). It must not know what is written.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, MutexGuard, watch};
use tokio::time::{Instant, sleep_until};

/// GitHub asks for a second between writes (platform-facts G); a lone write goes at once.
const SPACE: Duration = Duration::from_secs(1);

/// Shared by everything that writes; cheap to clone.
#[derive(Debug, Clone)]
pub struct Pace {
    next: Arc<watch::Sender<Instant>>,
    line: Arc<Mutex<()>>,
}

/// The right to write. Others wait until it is given back.
#[derive(Debug)]
pub struct Turn<'a> {
    pace: &'a Pace,
    _line: MutexGuard<'a, ()>,
}

impl Default for Pace {
    fn default() -> Self {
        Self { next: Arc::new(watch::Sender::new(Instant::now())), line: Arc::default() }
    }
}

impl Pace {
    /// Since or until when the next write may begin.
    pub fn next_write(&self) -> watch::Receiver<Instant> {
        self.next.subscribe()
    }

    /// Waits for the next turn, in the order of asking.
    pub async fn turn(&self) -> Turn<'_> {
        let line = self.line.lock().await;
        loop {
            let next = *self.next.borrow();
            if next <= Instant::now() {
                return Turn { pace: self, _line: line };
            }
            sleep_until(next).await;
        }
    }

    /// A limit: nobody writes for so long.
    pub fn hold(&self, wait: Duration) {
        self.not_before(Instant::now() + wait);
    }

    fn not_before(&self, moment: Instant) {
        self.next.send_if_modified(|next| std::mem::replace(next, moment.max(*next)) < moment);
    }
}

impl Turn<'_> {
    /// Something was written, or may have been: the next write keeps its distance.
    pub fn wrote(&self) {
        self.pace.not_before(Instant::now() + SPACE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn write(pace: Pace, started: Instant) -> u128 {
        let turn = pace.turn().await;
        let waited = started.elapsed().as_millis();
        turn.wrote();
        waited
    }

    #[tokio::test(start_paused = true)]
    async fn a_lone_write_goes_at_once_and_those_of_a_burst_keep_their_distance_whoever_writes() {
        let (pace, started) = (Pace::default(), Instant::now());
        let burst =
            tokio::join!(write(pace.clone(), started), write(pace.clone(), started), write(pace.clone(), started));
        assert_eq!(burst, (0, 1_000, 2_000));
    }

    #[tokio::test(start_paused = true)]
    async fn a_limit_holds_everybody_and_a_shorter_one_does_not_shorten_it() {
        let (pace, started) = (Pace::default(), Instant::now());
        pace.hold(Duration::from_secs(60));
        pace.hold(Duration::from_secs(5));
        assert_eq!(write(pace, started).await, 60_000);
    }
}
