//! Durations, and what is said about them.

use std::time::Duration;

/// Measured durations, shortest first.
pub(crate) struct Samples(Vec<Duration>);

impl Samples {
    pub(crate) fn new(durations: impl IntoIterator<Item = Duration>) -> Self {
        let mut durations: Vec<Duration> = durations.into_iter().collect();
        durations.sort();
        Self(durations)
    }

    pub(crate) fn median(&self) -> Duration {
        self.at(0.5)
    }

    /// The duration that this share of all does not exceed.
    pub(crate) fn at(&self, share: f64) -> Duration {
        let rank = (self.0.len() as f64 * share).ceil() as usize;
        self.0[rank.clamp(1, self.0.len()) - 1]
    }

    pub(crate) fn median_and_p90(&self) -> String {
        format!("median {}, p90 {}", ms(self.median()), ms(self.at(0.9)))
    }
}

pub(crate) fn ms(duration: Duration) -> String {
    let ms = duration.as_secs_f64() * 1e3;
    if ms < 10.0 { format!("{ms:.1} ms") } else { format!("{ms:.0} ms") }
}
