//! Durations and sizes as people write them: `1.5s`, `15m`, `25MiB`.
//!
//! Owns the two notations, exact to the nanosecond and the byte. It must not know which key a value belongs to, and its
//! errors never repeat what was written: it may be a token in the wrong place.

use std::time::Duration;

/// Longer than any wait; and far below what `Instant` can add without overflow.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Nanoseconds a unit. A unit that another one ends with (`s`, `m`) comes after it.
const DURATION_UNITS: [(&str, u64); 5] = [
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60 * 1_000_000_000),
    ("h", 3_600 * 1_000_000_000),
    ("d", 86_400 * 1_000_000_000),
];

/// Bytes a unit. A unit that another one ends with (`B`) comes last.
const SIZE_UNITS: [(&str, u64); 7] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("B", 1),
];

/// A text that is no duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is not a duration: write a number and a unit, such as \"500ms\", \"1.5s\", \"15m\", \"2h\", up to \"365d\"")]
pub struct NotADuration;

/// A text that is no size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is not a size: write a number and a unit, such as \"64KiB\", \"25MiB\", \"5GiB\" or \"100MB\"")]
pub(super) struct NotASize;

/// Reads a duration of at most a year; zero is one.
pub fn duration(text: &str) -> Result<Duration, NotADuration> {
    let nanoseconds = quantity(text, &DURATION_UNITS).ok_or(NotADuration)?;
    Some(Duration::from_nanos(nanoseconds)).filter(|duration| *duration <= LONGEST).ok_or(NotADuration)
}

/// Reads a size in bytes; zero is one.
pub(super) fn size(text: &str) -> Result<u64, NotASize> {
    quantity(text, &SIZE_UNITS).ok_or(NotASize)
}

/// The number before the unit, times the unit, rounded down.
fn quantity(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let (number, unit) = units.iter().find_map(|(name, unit)| Some((text.strip_suffix(name)?, *unit)))?;
    let number = number.trim_end_matches(' ');
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let scale = 10_u128.pow(u32::try_from(fraction.len()).ok().filter(|digits| *digits <= 15)?);
    let unit = u128::from(unit);
    u64::try_from(digits(whole)? * unit + digits(fraction)? * unit / scale).ok()
}

/// A plain number of at most 15 digits: no sign, no exponent.
fn digits(text: &str) -> Option<u128> {
    let plain = !text.is_empty() && text.len() <= 15 && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn durations_are_exact() {
        for (text, milliseconds) in [
            ("500ms", 500),
            ("1.5s", 1_500),
            ("0s", 0),
            ("15m", 900_000),
            ("2h", 7_200_000),
            ("1 d", 86_400_000),
            ("0.25h", 900_000),
            ("365d", 365 * 86_400_000),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
    }

    #[test]
    fn sizes_are_exact() {
        for (text, bytes) in [
            ("25MiB", 26_214_400),
            ("64KiB", 65_536),
            ("5GiB", 5_368_709_120),
            ("100MB", 100_000_000),
            ("1.5KiB", 1_536),
            ("7B", 7),
        ] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn what_is_neither_is_refused() {
        for text in [
            "",
            "s",
            "5",
            "-5s",
            "+5s",
            "1e3s",
            ".5s",
            "1.s",
            "1.2.3s",
            "5 weeks",
            "366d",
            "9999999999999999s",
            " 5s",
            "5S",
        ] {
            assert_eq!(duration(text), Err(NotADuration), "{text}");
        }
        for text in ["", "MiB", "25", "-1MiB", "25mib", "0x10B", "999999999999999GiB", "1,5MiB", "٣B"] {
            assert_eq!(size(text), Err(NotASize), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,40}") {
            prop_assert_eq!(duration(&text).is_ok_and(|read| read > LONGEST), false);
            let bytes = size(&text);
            prop_assert!(bytes.is_err() || text.ends_with('B'));
        }

        #[test]
        fn whole_numbers_read_as_written(number in 0_u64..1_000_000) {
            prop_assert_eq!(duration(&format!("{number}s")), Ok(Duration::from_secs(number)));
            prop_assert_eq!(size(&format!("{number}KiB")), Ok(number * 1024));
        }
    }
}
