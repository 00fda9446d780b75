//! Links to places in Slack, as people copy them.
//!
//! Owns reading `--slack` of `usher bind`. It must not know whether the place exists.

/// A conversation, or one thread of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The conversation id.
    pub channel: String,
    /// The thread's first post; `None`: the whole conversation.
    pub thread: Option<String>,
}

/// Why a text names no place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("this is no place in Slack: copy the link of a message, or write CHANNEL (C0123ABCD) or CHANNEL/TS")]
pub struct NotATarget;

/// Reads a message link, `CHANNEL` or `CHANNEL/TS`. The link of a reply means the thread that it stands in.
pub fn parse(text: &str) -> Result<Target, NotATarget> {
    let text = text.trim();
    match text.strip_prefix("https://") {
        Some(rest) => of_link(rest).ok_or(NotATarget),
        None => of_words(text).ok_or(NotATarget),
    }
}

fn of_words(text: &str) -> Option<Target> {
    let (channel, thread) = match text.split_once('/') {
        Some((channel, ts)) => (channel, Some(time_stamp(ts)?)),
        None => (text, None),
    };
    is_channel(channel).then(|| Target { channel: channel.to_owned(), thread })
}

fn of_link(rest: &str) -> Option<Target> {
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let mut parts = path.split('/');
    let host = parts.next()?;
    let is_slack = host.ends_with(".slack.com") || host.ends_with(".slack-gov.com");
    if !is_slack || parts.next()? != "archives" {
        return None;
    }
    let channel = parts.next().filter(|channel| is_channel(channel))?.to_owned();
    let Some(post) = parts.next().filter(|post| !post.is_empty()) else {
        return Some(Target { channel, thread: None });
    };
    let digits =
        post.strip_prefix('p').filter(|digits| digits.len() > 6 && digits.bytes().all(|b| b.is_ascii_digit()))?;
    let (seconds, micros) = digits.split_at_checked(digits.len() - 6)?;
    let in_thread = query.split('&').find_map(|pair| pair.strip_prefix("thread_ts="));
    let thread = in_thread.and_then(time_stamp).unwrap_or_else(|| format!("{seconds}.{micros}"));
    Some(Target { channel, thread: Some(thread) })
}

fn is_channel(text: &str) -> bool {
    text.starts_with(['C', 'D', 'G'])
        && text.len() > 2
        && text.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit())
}

fn time_stamp(text: &str) -> Option<String> {
    let (seconds, micros) = text.split_once('.')?;
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    (digits(seconds) && digits(micros)).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_words_name_the_same_places() {
        let thread =
            |thread: Option<&str>| Ok(Target { channel: "C0123ABCD".into(), thread: thread.map(str::to_owned) });
        for (text, expected) in [
            ("C0123ABCD", thread(None)),
            ("C0123ABCD/1700000000.000100", thread(Some("1700000000.000100"))),
            ("https://acme.slack.com/archives/C0123ABCD", thread(None)),
            ("https://acme.slack.com/archives/C0123ABCD/p1700000000000100", thread(Some("1700000000.000100"))),
            (
                "https://acme.slack.com/archives/C0123ABCD/p1700000009000100?thread_ts=1700000000.000100&cid=C0123ABCD",
                thread(Some("1700000000.000100")),
            ),
            ("https://evil.example/archives/C0123ABCD/p1700000000000100", Err(NotATarget)),
            ("#general", Err(NotATarget)),
            ("C0123ABCD/yesterday", Err(NotATarget)),
            ("", Err(NotATarget)),
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
    }
}
