//! The breaker: an item on which more is said than people say.
//!
//! Owns how much one work item takes from GitHub. Two bots that answer each other, or a bot behind a person's account,
//! filled tickets with hundreds of comments (field report W10); own marks cannot stop what somebody else's program
//! writes. It must not know how the messages are counted.

use jiff::{SignedDuration, Timestamp};

/// The most messages that a work item takes within ten minutes. A review with all its inline comments is one.
pub const MOST: u64 = 30;

/// The time that is looked at: the one before a message was said. When it was said and not when it arrived, so that a
/// week that is caught up in a minute is no burst.
const WINDOW: SignedDuration = SignedDuration::from_mins(10);

/// The moment after which messages count against one that was said then.
pub fn counted_since(said: Timestamp) -> Timestamp {
    said.checked_sub(WINDOW).unwrap_or(Timestamp::MIN)
}

/// Whether a message comes too fast after so many that were taken. Those that were refused do not count, so that an item
/// goes on with at most [`MOST`] messages in any window, and by itself.
pub const fn is_too_fast(taken: u64) -> bool {
    taken >= MOST
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// How many of the messages, said at these seconds, are taken.
    fn taken(seconds: &[i64]) -> Vec<i64> {
        let mut taken: Vec<i64> = Vec::new();
        for second in seconds {
            let since = counted_since(Timestamp::from_second(*second).unwrap()).as_second();
            let before = taken.iter().filter(|moment| **moment > since && **moment <= *second).count();
            if !is_too_fast(u64::try_from(before).unwrap()) {
                taken.push(*second);
            }
        }
        taken
    }

    #[test]
    fn thirty_in_ten_minutes_are_taken_and_the_item_goes_on_afterwards() {
        let burst: Vec<i64> = (0..40).collect();
        assert_eq!(taken(&burst).len(), 30);
        assert_eq!(taken(&[burst, vec![601]].concat()).len(), 31);
        let a_week_of_talk: Vec<i64> = (0..500).map(|index| index * 30).collect();
        assert_eq!(taken(&a_week_of_talk).len(), 500);
    }

    proptest! {
        #[test]
        fn no_window_ever_holds_more_than_the_most(mut seconds in proptest::collection::vec(0i64..3_000, 0..200)) {
            seconds.sort_unstable();
            let taken = taken(&seconds);
            for end in &taken {
                let inside = taken.iter().filter(|moment| **moment > end - 600 && *moment <= end).count();
                prop_assert!(u64::try_from(inside).unwrap() <= MOST);
            }
        }
    }
}
