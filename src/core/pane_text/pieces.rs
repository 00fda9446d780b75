//! Cutting the speaker's own words into pastes that the agent keeps plain.

use super::chars::first_cluster;

/// The largest paste that an agent takes as typed words rather than as "pasted content".
///
/// Claude Code 2.1.332 wraps a paste of more than 3 lines or 800 characters and tells its model that the user may not
/// have written it; pieces of 3 lines and 700 characters arrive plain (agents-in-tmux fact 7, section 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlainLimit {
    /// Lines a piece; at least 2, since a piece that opens a line begins with that line's feed.
    pub lines: usize,
    /// Characters a piece, counted as the agents count, in UTF-16 units; at least 2.
    pub chars: usize,
}

/// Cuts between lines where it can, else between characters. Put together, the pieces are the text.
///
/// A piece ends in white space only where nothing else is possible: Claude Code trims line feeds at the end of a short
/// paste, while one at its beginning arrives.
pub(super) fn split(text: &str, limit: PlainLimit) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let piece = disarmed(cut(rest, fitting(rest, limit)));
        pieces.push(piece.to_owned());
        rest = rest.strip_prefix(piece).unwrap_or_default();
    }
    pieces
}

/// The longest beginning that keeps the limit; at least one character.
fn fitting(text: &str, limit: PlainLimit) -> &str {
    let (mut feeds, mut chars) = (limit.lines.max(2) - 1, limit.chars.max(2));
    let mut rest = text;
    while let Some((cluster, tail)) = first_cluster(rest) {
        let width = cluster.encode_utf16().count();
        let feed = usize::from(cluster == "\n");
        if width > chars || feed > feeds {
            break;
        }
        (feeds, chars) = (feeds - feed, chars - width);
        rest = tail;
    }
    match text.len() - rest.len() {
        0 => overlong_cluster(text, chars),
        length => text.get(..length).unwrap_or(text),
    }
}

/// No pile of combining marks makes a piece longer than the limit.
fn overlong_cluster(text: &str, chars: usize) -> &str {
    let mut width = 0;
    let end = text.char_indices().find(|(_, c)| {
        width += c.len_utf16();
        width > chars
    });
    end.and_then(|(at, _)| text.get(..at)).unwrap_or(text)
}

/// Moves the cut back to the end of a line, and before white space.
fn cut<'a>(text: &'a str, fitting: &'a str) -> &'a str {
    let next = text.get(fitting.len()..).unwrap_or_default();
    if next.is_empty() {
        return fitting;
    }
    let whole_lines = match fitting.rfind('\n') {
        Some(feed) if !next.starts_with('\n') => fitting.get(..feed).unwrap_or(fitting),
        _ => fitting,
    };
    [whole_lines.trim_end(), fitting.trim_end()].into_iter().find(|piece| !piece.is_empty()).unwrap_or(fitting)
}

/// Cuts off the last letter of a piece that is nothing but paths of images: Claude Code would take the piece for the
/// images and drop the paths (agents-in-tmux 6, field report M22).
fn disarmed(piece: &str) -> &str {
    let is_quote = |c| matches!(c, '"' | '\'');
    let is_image = |line: &str| {
        let path = line.trim_end_matches(is_quote).to_ascii_lowercase();
        [".png", ".jpg", ".jpeg", ".gif", ".webp"].iter().any(|ending| path.ends_with(ending))
    };
    let mut lines = piece.lines().map(str::trim).filter(|line| !line.is_empty()).peekable();
    if lines.peek().is_none() || !lines.all(is_image) {
        return piece;
    }
    let paths = piece.trim_end().trim_end_matches(is_quote);
    paths.char_indices().next_back().and_then(|(last, _)| piece.get(..last)).unwrap_or(piece)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str, lines: usize, chars: usize, expected: &[&str]) {
        assert_eq!(split(text, PlainLimit { lines, chars }), expected, "{text:?}");
    }

    #[test]
    fn cuts_between_lines_and_opens_a_piece_with_the_line_feed() {
        check("a\nb\nc\nd\ne", 3, 700, &["a\nb\nc", "\nd\ne"]);
        check("a\nlonger\nb", 3, 8, &["a\nlonger", "\nb"]);
        check("a\n\n\n\nb", 3, 700, &["a", "\n\n", "\n\nb"]);
        check("short", 3, 700, &["short"]);
        check("", 3, 700, &[]);
    }

    #[test]
    fn cuts_a_long_line_between_characters() {
        check("abcdefgh", 3, 3, &["abc", "def", "gh"]);
        check("ab cd ef", 3, 3, &["ab", " cd", " ef"]);
        check("abe\u{301}d", 3, 3, &["ab", "e\u{301}d"]);
        check("a👩\u{200d}👧b", 3, 5, &["a", "👩\u{200d}👧", "b"]);
        check("👍👍👍", 3, 4, &["👍👍", "👍"]);
    }

    #[test]
    fn no_cluster_is_longer_than_the_limit_allows() {
        check("a\u{301}\u{301}\u{301}\u{301}", 3, 3, &["a\u{301}\u{301}", "\u{301}\u{301}"]);
    }

    #[test]
    fn no_piece_is_nothing_but_paths_of_images() {
        check("see\n1\n2\n/a/x.png\n/b/y.JPG", 3, 700, &["see\n1\n2", "\n/a/x.png\n/b/y.JP", "G"]);
        check("'/a b/x.webp'", 3, 700, &["'/a b/x.web", "p'"]);
        check("\n\"", 3, 700, &["\n\""]);
        check("/a/x.png is it", 3, 700, &["/a/x.png is it"]);
    }

    proptest! {
        #[test]
        fn pieces_keep_the_limit_and_lose_nothing(
            text in "([a-z ]|\n|e\u{301}|👩\u{200d}👧|漢|\\.png|\"){0,80}",
            lines in 0_usize..5,
            chars in 0_usize..20,
        ) {
            let pieces = split(&text, PlainLimit { lines, chars });
            prop_assert_eq!(pieces.concat(), text);
            for piece in pieces {
                prop_assert!(!piece.is_empty());
                prop_assert!(piece.matches('\n').count() < lines.max(2));
                prop_assert!(piece.encode_utf16().count() <= chars.max(2));
            }
        }
    }
}
