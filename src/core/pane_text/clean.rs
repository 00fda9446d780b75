//! Cleaning: text from outside becomes text that is only read, in a body or on a line.

use super::chars::{belongs, first_cluster, is_control, is_format, is_line_break};

const ESC: char = '\u{1b}';

/// Makes a body data: no byte of what comes out acts as a key, moves the cursor, turns the text around or hides.
///
/// Line ends of every kind become line feeds; whole escape sequences go, in both forms (`ESC [` and C1), and every
/// other control character but the tab; format characters go, unless they hold an emoji together. tmux up to 3.6
/// passes every byte, and `ESC[201~` in a message breaks out of the paste in all five agents that were measured
/// (platform-facts F, agents-in-tmux fact 6, field report M13). Words are never lost: of a control string that nobody
/// terminates only the introducer goes.
pub fn clean(text: &str) -> String {
    let mut cleaned = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((plain, special)) = rest.find(is_special).and_then(|at| rest.split_at_checked(at)) {
        cleaned.push_str(plain);
        rest = after_special(special, &mut cleaned);
    }
    cleaned.push_str(rest);
    cleaned
}

/// Makes a name, an author or a place fit for one line of at most `max_chars` characters.
///
/// Control, bidi and other format characters, line feeds among them, are shown as `\u{…}`: what a name hides is
/// something that a reader should see (field report X4). What is too long ends in `…`.
pub fn one_line(text: &str, max_chars: usize) -> String {
    let mut line = String::new();
    let (mut length, mut cut) = (0, 0);
    let mut rest = text;
    while let Some((cluster, tail)) = first_cluster(rest) {
        let before_cluster = line.len();
        show(cluster, &mut line);
        length += line.get(before_cluster..).unwrap_or_default().chars().count();
        if length > max_chars {
            line.truncate(cut);
            line.push_str(if max_chars == 0 { "" } else { "…" });
            return line;
        }
        if length < max_chars {
            cut = line.len();
        }
        rest = tail;
    }
    line
}

/// Breaks up `@/path`, `@~/path`, `@./path` and `@"path"`, at the start or behind white space, into `@ /path`.
///
/// Claude Code puts such a file into its request unasked, wherever it lies (agents-in-tmux 6), and a person who may
/// only be quoted must not pick the files. `x@/path` and `` `@/path` `` are inert as they are. `@name/path` stays:
/// packages and teams are called like that. Expects cleaned text, where nothing invisible stands in between.
pub fn defuse_mentions(text: &str) -> String {
    let mut defused = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('@') {
        defused.push_str(before);
        let opens = defused.chars().next_back().is_none_or(char::is_whitespace);
        defused.push('@');
        if opens && after.starts_with(['/', '~', '.', '"']) {
            defused.push(' ');
        }
        rest = after;
    }
    defused.push_str(rest);
    defused
}

fn show(cluster: &str, line: &mut String) {
    let mut before = None;
    let mut chars = cluster.chars().peekable();
    while let Some(c) = chars.next() {
        let hidden = c.is_control() || is_line_break(c) || is_format(c) && !belongs(before, c, chars.peek().copied());
        match hidden {
            true => line.extend(c.escape_unicode()),
            false => line.push(c),
        }
        before = Some(c);
    }
}

fn is_special(c: char) -> bool {
    c != '\n' && c != '\t' && (c.is_control() || !c.is_ascii() && (is_format(c) || is_line_break(c)))
}

/// Deals with the special character at the head, and answers what is left.
fn after_special<'a>(special: &'a str, cleaned: &mut String) -> &'a str {
    let mut chars = special.chars();
    let Some(head) = chars.next() else { return special };
    let after = chars.as_str();
    match head {
        '\r' => {
            cleaned.push('\n');
            after.strip_prefix('\n').unwrap_or(after)
        }
        head if is_line_break(head) => {
            cleaned.push('\n');
            after
        }
        ESC => after_escape(after),
        '\u{80}'..='\u{9f}' => after_introducer(seven_bit(head), after),
        head => {
            if belongs(cleaned.chars().next_back(), head, after.chars().next()) {
                cleaned.push(head);
            }
            after
        }
    }
}

/// The letter that stands behind ESC in the two-byte form of a C1 control (ECMA-48 5.3).
fn seven_bit(c1: char) -> char {
    char::from_u32(u32::from(c1) - 0x40).unwrap_or(c1)
}

fn after_escape(after: &str) -> &str {
    let intermediates = after.trim_start_matches(is_intermediate);
    if intermediates.len() < after.len() {
        return strip_one(intermediates, |c| matches!(c, '0'..='~'));
    }
    match after.chars().next() {
        Some(introducer @ '0'..='~') => after_introducer(introducer, strip_one(after, |_| true)),
        _ => after,
    }
}

fn after_introducer(introducer: char, after: &str) -> &str {
    match introducer {
        '[' => after_control_sequence(after),
        ']' | 'P' | 'X' | '^' | '_' => after_control_string(after),
        _ => after,
    }
}

fn after_control_sequence(after: &str) -> &str {
    let parameters = after.trim_start_matches(|c| matches!(c, '0'..='?'));
    strip_one(parameters.trim_start_matches(is_intermediate), |c| matches!(c, '@'..='~'))
}

/// A control string runs to BEL, to ST in either form, or to any other control, which aborts it. When there is none,
/// none of the rest is a control: the search does not repeat, and cleaning stays linear.
fn after_control_string(after: &str) -> &str {
    let Some((_, end)) = after.find(is_control).and_then(|at| after.split_at_checked(at)) else { return after };
    end.strip_prefix("\u{1b}\\").unwrap_or_else(|| strip_one(end, |c| matches!(c, '\u{7}' | '\u{9c}')))
}

fn is_intermediate(c: char) -> bool {
    matches!(c, ' '..='/')
}

fn strip_one(text: &str, which: impl Fn(char) -> bool) -> &str {
    text.strip_prefix(which).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(cases: &[(&str, &str)]) {
        for (text, expected) in cases {
            assert_eq!(clean(text), *expected, "{text:?}");
        }
    }

    #[test]
    fn every_line_end_is_a_line_feed() {
        check(&[
            ("a\r\nb\rc\n\rd", "a\nb\nc\n\nd"),
            ("a\u{2028}b\u{2029}c\u{85}d\u{b}e\u{c}f", "a\nb\nc\nd\ne\nf"),
            ("tab\tstays", "tab\tstays"),
        ]);
    }

    #[test]
    fn escape_sequences_go_whole() {
        check(&[
            ("a\u{1b}[201~b", "ab"),
            ("a\u{1b}[38;5;196mred\u{1b}[0m", "ared"),
            ("a\u{9b}201~b", "ab"),
            ("a\u{1b}]0;title\u{7}b\u{1b}]8;;https://x.example\u{1b}\\c", "abc"),
            ("a\u{9d}0;title\u{9c}b", "ab"),
            ("a\u{1b}Pq#0\nline\u{1b}\\b\u{90}x\u{9c}c", "abc"),
            ("a\u{1b}_x\u{1b}\\b\u{1b}^x\u{1b}\\c\u{1b}Xx\u{1b}\\d", "abcd"),
            ("a\u{1b}cb\u{1b}(0c\u{1b}7d", "abcd"),
            ("a\u{1b}\u{1b}[201~b", "ab"),
            ("a\u{1b}[20\u{1b}[201~1~b", "a1~b"),
            ("a\u{1b}[\u{1b}[[201~b", "a201~b"),
        ]);
    }

    #[test]
    fn a_broken_sequence_takes_no_words_with_it() {
        check(&[
            ("a\u{1b}", "a"),
            ("a\u{1b}[12", "a"),
            ("a\u{1b}[1\nb", "a\nb"),
            ("a\u{1b}ü", "aü"),
            ("a\u{1b}]0;no end\r\nof it", "a0;no end\nof it"),
            ("a\u{9d}\u{9d}\u{9d}b", "ab"),
        ]);
    }

    #[test]
    fn other_controls_and_what_hides_go() {
        check(&[
            ("a\0b\u{3}c\u{7f}d\u{8}e\u{80}f\u{98}", "abcdef"),
            ("a\u{202e}b\u{2066}c\u{61c}d\u{200e}e", "abcde"),
            ("a\u{200b}b\u{ad}c\u{feff}d\u{2060}e\u{200c}f\u{200d}g", "abcdefg"),
            ("a\u{e0041}\u{e007f}b\u{e0101}c\u{fe0f}d", "abcd"),
            ("no\u{a0}break, ünïcödé, e\u{301}, 漢\u{e0100}字", "no\u{a0}break, ünïcödé, e\u{301}, 漢\u{e0100}字"),
        ]);
    }

    #[test]
    fn emoji_sequences_stay_whole() {
        for emoji in
            ["👩\u{200d}👩\u{200d}👧", "❤\u{fe0f}\u{200d}🔥", "👍🏽", "1\u{fe0f}\u{20e3}", "🏳\u{fe0f}\u{200d}🌈", "🇩🇪"]
        {
            assert_eq!(clean(emoji), emoji);
        }
        check(&[
            ("👩\u{200d}x", "👩x"),
            ("👩\u{200d}\u{200d}👧", "👩\u{200d}👧"),
            ("👩\u{200d}\u{200b}👧", "👩👧"),
            ("❤\u{fe0f}\u{fe0f}\u{fe0e}", "❤\u{fe0f}"),
        ]);
    }

    #[test]
    fn a_line_shows_what_a_name_hides() {
        for (text, max_chars, expected) in [
            ("shot.png", 120, "shot.png"),
            ("a\nb\t]", 120, "a\\u{a}b\\u{9}]"),
            ("gpj\u{202e}.exe\u{200b}\u{1b}[m", 120, "gpj\\u{202e}.exe\\u{200b}\\u{1b}[m"),
            ("👩\u{200d}👧 e\u{301}\u{200d}", 120, "👩\u{200d}👧 e\u{301}\\u{200d}"),
            ("abcdef", 6, "abcdef"),
            ("abcdefg", 6, "abcde…"),
            ("ab\u{202e}cd", 6, "ab…"),
            ("ab👩\u{200d}👧cd", 4, "ab…"),
            ("ab", 1, "…"),
            ("ab", 0, ""),
            ("", 0, ""),
        ] {
            assert_eq!(one_line(text, max_chars), expected, "{text:?}");
        }
    }

    #[test]
    fn only_what_an_agent_would_inline_is_broken_up() {
        for (text, expected) in [
            ("@/etc/passwd", "@ /etc/passwd"),
            ("see @/a and\n@~/b\t@./c > @../d @\"/e f\"", "see @ /a and\n@ ~/b\t@ ./c > @ ../d @ \"/e f\""),
            ("\u{a0}@/a", "\u{a0}@ /a"),
            (
                "x@/a `@/b` (@/c dana@example.org @dana @acme/web @ /d",
                "x@/a `@/b` (@/c dana@example.org @dana @acme/web @ /d",
            ),
            ("@@/a @", "@@/a @"),
        ] {
            assert_eq!(defuse_mentions(text), expected, "{text}");
        }
    }

    fn hostile() -> impl Strategy<Value = String> {
        let seeds = prop::sample::select(vec![
            "\u{1b}",
            "[",
            "]",
            "201~",
            "\u{9b}",
            "\u{9d}",
            "\u{9c}",
            "\u{7}",
            "\\",
            "\r",
            "\n",
            "\u{200d}",
            "\u{fe0f}",
            "\u{202e}",
            "👩",
            "❤",
            "🏽",
            "🇩",
            "1",
            "a",
            " ",
            "@",
            "/",
            "\u{e0100}",
            "漢",
            "\u{85}",
            "\0",
            "e\u{301}",
        ]);
        prop_oneof![any::<String>(), prop::collection::vec(seeds, 0..40).prop_map(|seeds| seeds.concat())]
    }

    fn is_forbidden(c: char) -> bool {
        let code = u32::from(c);
        (code < 0x20 && c != '\n' && c != '\t')
            || (0x7f..=0x9f).contains(&code)
            || [0x200e, 0x200f, 0x61c, 0x200b, 0x200c, 0xfeff, 0xad, 0x2028, 0x2029].contains(&code)
            || (0x202a..=0x202e).contains(&code)
            || (0x2060..=0x2069).contains(&code)
            || (0xe0000..=0xe007f).contains(&code)
    }

    proptest! {
        #[test]
        fn clean_text_is_harmless_and_stays_as_it_is(text in hostile()) {
            let cleaned = clean(&text);
            prop_assert!(!cleaned.contains(is_forbidden), "{:?}", cleaned);
            prop_assert!(cleaned.len() <= text.len());
            prop_assert_eq!(clean(&cleaned), cleaned);
        }

        #[test]
        fn what_is_printable_passes_unchanged(text in "[ -~äöü€漢字а-я\n\t]{0,80}") {
            prop_assert_eq!(clean(&text), text);
        }

        #[test]
        fn a_line_is_short_and_has_nothing_hidden(text in hostile(), max_chars in 0_usize..40) {
            let line = one_line(&text, max_chars);
            prop_assert!(line.chars().count() <= max_chars);
            prop_assert!(!line.contains(|c| is_forbidden(c) || c == '\n' || c == '\t'));
        }

        #[test]
        fn defusing_adds_spaces_only_and_once(text in hostile()) {
            let defused = defuse_mentions(&text);
            prop_assert_eq!(defused.replace(' ', ""), text.replace(' ', ""));
            prop_assert_eq!(defuse_mentions(&defused), defused);
        }
    }
}
