//! When to try the socket again: at once, then ever slower, and as Slack says when it says so.
//!
//! Owns the schedule of reconnects. It must not know sockets, a clock, or why a connection ended beyond its class.

use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBackoff, ExponentialBuilder};

/// The slowest of the ordinary retries, jitter included.
pub const SLOWEST: Duration = Duration::from_secs(60);

/// The slowest retry of what only a person can mend, jitter included.
pub const SLOWEST_ATTENTION: Duration = Duration::from_secs(300);

/// The shortest wait after Slack named a wait: a `Retry-After: 0` must not become a tight loop.
const SHORTEST_NAMED: Duration = Duration::from_secs(1);

/// What class of failure ended a connection, or kept it from opening.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The network, a refresh, a silence: the first retry is immediate.
    Lost,
    /// Slack counts too many connections: never at once, or the count never falls (field report T4).
    Crowded,
    /// A person has to mend it (token, app settings): slowly, so that it comes back without a restart (field report O3).
    NeedsAttention,
    /// Slack named the wait (`Retry-After`).
    RateLimited(Duration),
}

/// The schedule of reconnects.
#[derive(Debug)]
pub struct Reconnect {
    at_once: bool,
    ordinary: ExponentialBackoff,
    attention: ExponentialBackoff,
}

impl Reconnect {
    /// A schedule whose next retry is immediate.
    pub fn fresh() -> Self {
        Self {
            at_once: true,
            ordinary: jittered(Duration::from_secs(1), SLOWEST),
            attention: jittered(Duration::from_secs(30), SLOWEST_ATTENTION),
        }
    }

    /// How long to wait before the next attempt.
    pub fn delay(&mut self, cause: Cause) -> Duration {
        let at_once = std::mem::replace(&mut self.at_once, false);
        match cause {
            Cause::Lost if at_once => Duration::ZERO,
            Cause::Lost | Cause::Crowded => self.ordinary.next().unwrap_or(SLOWEST),
            Cause::NeedsAttention => self.attention.next().unwrap_or(SLOWEST_ATTENTION),
            Cause::RateLimited(wait) => wait.max(SHORTEST_NAMED),
        }
    }
}

/// Doubling delays. `backon` adds up to the delay again as jitter, so its own maximum is half of ours.
fn jittered(shortest: Duration, slowest: Duration) -> ExponentialBackoff {
    ExponentialBuilder::new()
        .with_min_delay(shortest)
        .with_max_delay(slowest / 2)
        .with_factor(2.0)
        .with_jitter()
        .without_max_times()
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The delays that follow one cause, as ranges of whole seconds: the jitter is real.
    fn check(cause: Cause, ranges: &[(u64, u64)]) {
        let mut schedule = Reconnect::fresh();
        for (position, &(least, most)) in ranges.iter().enumerate() {
            let delay = schedule.delay(cause);
            let range = Duration::from_secs(least)..=Duration::from_secs(most);
            assert!(range.contains(&delay), "{cause:?} number {position}: {delay:?} is not within {range:?}");
        }
    }

    #[test]
    fn a_lost_connection_is_retried_at_once_then_ever_slower() {
        check(Cause::Lost, &[(0, 0), (1, 2), (2, 4), (4, 8), (8, 16), (16, 32), (30, 60), (30, 60)]);
    }

    #[test]
    fn too_many_connections_are_never_retried_at_once() {
        check(Cause::Crowded, &[(1, 2), (2, 4), (4, 8)]);
    }

    #[test]
    fn what_a_person_must_mend_is_retried_between_half_a_minute_and_five() {
        check(Cause::NeedsAttention, &[(30, 60), (60, 120), (120, 240), (150, 300), (150, 300)]);
    }

    #[test]
    fn a_named_wait_wins() {
        check(Cause::RateLimited(Duration::from_secs(77)), &[(77, 77), (77, 77)]);
        check(Cause::RateLimited(Duration::ZERO), &[(1, 1)]);
    }

    #[test]
    fn after_a_named_wait_nothing_is_at_once() {
        let mut schedule = Reconnect::fresh();
        schedule.delay(Cause::RateLimited(Duration::from_secs(5)));
        assert!(schedule.delay(Cause::Lost) >= Duration::from_secs(1));
    }

    #[test]
    fn delays_never_run_out_and_differ() {
        let mut schedule = Reconnect::fresh();
        let delays: std::collections::BTreeSet<_> = (0..500).map(|_| schedule.delay(Cause::Lost)).collect();
        assert!(delays.len() > 100, "only {} different delays", delays.len());
        assert!(delays.iter().all(|delay| *delay <= SLOWEST));
    }
}
