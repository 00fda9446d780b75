//! Why an attempt failed, and whether another one is worth it.
//!
//! Owns the patience of a fetch: how often and how soon it tries again. It must not know HTTP or the disk; the cause is
//! for the log and carries no URL and no file name.

use std::time::Duration;

use crate::core::attachment::Reason;

/// How often a busy server is asked again.
const BUSY_RETRIES: u32 = 2;

/// The wait before the first of them when the server names none; it doubles.
const BUSY_WAIT: Duration = Duration::from_millis(500);

/// An attempt that brought no file.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) how: How,
    /// For the log.
    pub(super) cause: anyhow::Error,
}

/// What the failure means for another attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum How {
    /// Nothing changes by asking again.
    Final(Reason),
    /// The server asks for patience (429, 5xx), and says for how long or not.
    Busy(Option<Duration>),
    /// The connection broke.
    Broken,
}

impl Failure {
    /// A failure that stays.
    pub(super) fn last(reason: Reason, cause: impl Into<anyhow::Error>) -> Self {
        Self { how: How::Final(reason), cause: cause.into() }
    }

    /// A connection that broke; another one may hold.
    pub(super) fn broken(cause: impl Into<anyhow::Error>) -> Self {
        Self { how: How::Broken, cause: cause.into() }
    }

    /// What the person is told.
    pub(super) fn reason(&self) -> Reason {
        match &self.how {
            How::Final(reason) => reason.clone(),
            How::Busy(_) | How::Broken => Reason::TransferFailed,
        }
    }
}

/// What is left of the willingness to try again.
#[derive(Debug)]
pub(super) struct Patience {
    busy: u32,
    broken: bool,
    longest: Duration,
}

impl Patience {
    /// Full patience, with no wait longer than `longest`.
    pub(super) fn new(longest: Duration) -> Self {
        Self { busy: 0, broken: false, longest }
    }

    /// How long to wait before another attempt, or `None` when this one was the last.
    pub(super) fn after(&mut self, how: &How) -> Option<Duration> {
        match how {
            How::Busy(wait) if self.busy < BUSY_RETRIES => {
                let usual = BUSY_WAIT * 2_u32.pow(self.busy);
                self.busy += 1;
                Some(wait.unwrap_or(usual).min(self.longest))
            }
            How::Broken if !self.broken => {
                self.broken = true;
                Some(Duration::ZERO)
            }
            How::Final(_) | How::Busy(_) | How::Broken => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_server_is_asked_twice_more_and_no_wait_exceeds_the_longest() {
        let mut patience = Patience::new(Duration::from_secs(30));
        assert_eq!(patience.after(&How::Busy(None)), Some(Duration::from_millis(500)));
        assert_eq!(patience.after(&How::Busy(Some(Duration::from_secs(3600)))), Some(Duration::from_secs(30)));
        assert_eq!(patience.after(&How::Busy(Some(Duration::ZERO))), None);
    }

    #[test]
    fn a_broken_connection_is_tried_once_more() {
        let mut patience = Patience::new(Duration::from_secs(30));
        assert_eq!(patience.after(&How::Broken), Some(Duration::ZERO));
        assert_eq!(patience.after(&How::Broken), None);
        assert_eq!(patience.after(&How::Busy(None)), Some(Duration::from_millis(500)));
    }

    #[test]
    fn a_final_failure_is_not_tried_again() {
        assert_eq!(Patience::new(Duration::from_secs(30)).after(&How::Final(Reason::TransferFailed)), None);
    }
}
