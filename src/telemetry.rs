//! The log: its form, its levels, and what no level may show.
//!
//! Owns the subscriber. It must not know who logs what, and reads no environment: the filter is an argument.

use std::io::{self, IsTerminal as _};

use anyhow::Context as _;
use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::{EnvFilter, FilterExt as _, Targets};
use tracing_subscriber::fmt::{self, MakeWriter};
use tracing_subscriber::layer::{Layer, SubscriberExt as _};
use tracing_subscriber::registry::Registry;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::config::{Log, LogFormat};

/// Libraries that never log below `info`, whatever the filter says: tungstenite prints whole messages at trace, the
/// HTTP crates print URLs with tickets and signatures (style 4.6).
const CAPPED: [&str; 8] =
    ["tungstenite", "tokio_tungstenite", "hyper", "hyper_util", "reqwest", "rustls", "h2", "tower_http"];

/// What is logged when nobody says otherwise.
const DEFAULT_FILTER: &str = "info";

/// Logs to standard error from now on: UTC, colours only on a terminal. Fails on a filter that cannot be read.
pub fn init(log: &Log) -> anyhow::Result<()> {
    let colours = io::stderr().is_terminal();
    subscriber(log, colours, io::stderr)?.try_init().context("the log was set up twice")
}

/// A subscriber that writes to `writer`.
fn subscriber<W>(log: &Log, colours: bool, writer: W) -> anyhow::Result<impl Subscriber + Send + Sync>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let chosen = EnvFilter::try_new(log.filter.as_deref().unwrap_or(DEFAULT_FILTER))
        .context("RUST_LOG is not a log filter: write for example info, or info,usher=debug")?;
    let lines = fmt::layer().with_writer(writer).with_ansi(colours);
    let lines: Box<dyn Layer<Registry> + Send + Sync> = match log.format {
        LogFormat::Text => lines.with_filter(chosen.and(caps())).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).with_filter(chosen.and(caps())).boxed(),
    };
    Ok(tracing_subscriber::registry().with(lines))
}

/// A filter of its own, because a directive such as `tungstenite::protocol=trace` would win over one beside it.
fn caps() -> Targets {
    Targets::new().with_default(LevelFilter::TRACE).with_targets(CAPPED.map(|target| (target, LevelFilter::INFO)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    /// The log of `events` with this filter.
    fn logged(format: LogFormat, filter: Option<&str>, events: impl FnOnce()) -> String {
        let buffer = Arc::new(Mutex::new(Vec::new()));
        let writer = Shared(Arc::clone(&buffer));
        let log = Log { format, filter: filter.map(str::to_owned) };
        let subscriber = subscriber(&log, false, move || writer.clone()).unwrap();
        tracing::subscriber::with_default(subscriber, events);
        let bytes = buffer.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[derive(Clone)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn no_filter_lets_a_library_print_messages_or_urls() {
        for filter in
            ["trace", "trace,tungstenite=trace,tungstenite::protocol=trace", "hyper_util=debug,reqwest::connect=trace"]
        {
            let log = logged(LogFormat::Text, Some(filter), || {
                tracing::trace!(target: "tungstenite::protocol", "whole message");
                tracing::debug!(target: "hyper_util::client", "whole message");
                tracing::trace!(target: "reqwest::connect", "whole message");
                tracing::debug!(target: "tokio_tungstenite", "whole message");
                tracing::error!(target: "rustls", "kept");
            });
            assert!(!log.contains("whole message"), "{filter}: {log}");
        }
    }

    #[test]
    fn the_filter_is_honoured_and_info_is_the_default() {
        let events = || {
            tracing::info!(target: "usher::a", "one");
            tracing::debug!(target: "usher::b", "two");
        };
        let seen = |filter| {
            let log = logged(LogFormat::Text, filter, events);
            (log.contains("one"), log.contains("two"))
        };
        assert_eq!(seen(None), (true, false));
        assert_eq!(seen(Some("usher=debug")), (true, true));
        assert_eq!(seen(Some("usher::b=debug,warn")), (false, true));
    }

    #[test]
    fn a_line_of_text_begins_with_the_time_in_utc_and_has_no_colours() {
        let log = logged(LogFormat::Text, None, || tracing::info!(target: "usher", port = 8787, "ready"));
        let (time, rest) = log.split_once(' ').unwrap();
        assert!(time.parse::<jiff::Timestamp>().is_ok() && time.ends_with('Z'), "{log}");
        assert_eq!(rest, " INFO usher: ready port=8787\n");
    }

    #[test]
    fn json_is_one_object_a_line() {
        let log = logged(LogFormat::Json, None, || tracing::info!(target: "usher", port = 8787, "ready\nnow"));
        let line: serde_json::Value = serde_json::from_str(log.trim_end()).unwrap();
        assert_eq!((line["message"].as_str(), line["port"].as_i64()), (Some("ready\nnow"), Some(8787)));
        assert_eq!((line["level"].as_str(), log.lines().count()), (Some("INFO"), 1));
    }

    #[test]
    fn a_filter_that_cannot_be_read_is_an_error() {
        let log = Log { format: LogFormat::Text, filter: Some("usher=loud".into()) };
        let error = subscriber(&log, false, io::sink).err().unwrap();
        insta::assert_snapshot!(error, @"RUST_LOG is not a log filter: write for example info, or info,usher=debug");
    }
}
