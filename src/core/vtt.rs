//! WebVTT: the spoken words of Slack's captions, verbatim, on one line.
//!
//! Owns the parser of a captions file, by the rules of the W3C's parser (w3c/webvtt, platform-facts H), for the words
//! alone: times, settings, identifiers, voices and styles are dropped. It must not know where captions come from, nor
//! what is used when there are none.

use std::borrow::Cow;
use std::iter::Peekable;

/// The words in file order, tags and entities resolved, white space collapsed, the `- ` that opens a line dropped.
///
/// `None` when the text is no captions file: it lacks the `WEBVTT` signature (a sign-in page, an error in JSON). A
/// file without a word is `Some` of nothing. Linear in the length of the text.
pub fn words(captions: &str) -> Option<String> {
    let captions = preprocessed(captions.strip_prefix('\u{feff}').unwrap_or(captions));
    let mut lines = captions.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line)).peekable();
    if !is_signature(lines.next()?) {
        return None;
    }
    skip_header(&mut lines);
    let mut spoken = Spoken { text: String::with_capacity(captions.len() / 2), ..Spoken::default() };
    while lines.peek().is_some() {
        read_block(&mut lines, &mut spoken);
    }
    Some(spoken.text)
}

/// NUL becomes the replacement character, a CR without an LF becomes one. That of a CRLF goes with its line.
fn preprocessed(text: &str) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(text);
    if text.contains('\0') {
        text = Cow::Owned(text.replace('\0', "\u{fffd}"));
    }
    if has_lone_return(&text) {
        text = Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n"));
    }
    text
}

/// Without a branch in the loop, so that it runs many bytes at a time.
fn has_lone_return(text: &str) -> bool {
    let bytes = text.as_bytes();
    let pairs = bytes.iter().zip(bytes.iter().skip(1));
    text.ends_with('\r') || pairs.fold(false, |found, (a, b)| found | ((*a == b'\r') & (*b != b'\n')))
}

fn is_signature(line: &str) -> bool {
    line.strip_prefix("WEBVTT").is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t']))
}

/// The header runs to a blank line, or to a line that is already a cue's.
fn skip_header<'a>(lines: &mut Peekable<impl Iterator<Item = &'a str>>) {
    while lines.next_if(|line| !has_arrow(line)).is_some_and(|line| !line.is_empty()) {}
}

/// Reads one block: to a blank line, or to an arrow that cannot be its own, which opens the next.
///
/// A block is a cue when its first or second line is a timing. NOTE, STYLE and REGION are none, and vanish.
fn read_block<'a>(lines: &mut Peekable<impl Iterator<Item = &'a str>>, spoken: &mut Spoken) {
    let Some(first) = lines.next().filter(|line| !line.is_empty()) else { return };
    let timing = if has_arrow(first) { Some(first) } else { lines.next_if(|line| has_arrow(line)) };
    let is_cue = timing.is_some_and(is_timing);
    while let Some(line) = lines.next_if(|line| !has_arrow(line)) {
        if line.is_empty() {
            break;
        }
        if is_cue {
            spoken.line(line);
        }
    }
    spoken.end_cue();
}

fn has_arrow(line: &str) -> bool {
    // One byte is found faster than three, and few lines have it.
    line.as_bytes().contains(&b'>') && line.contains("-->")
}

/// `00:01.000 --> 00:02.000`, whatever follows: settings do not matter to the words.
fn is_timing(line: &str) -> bool {
    let end = |line| timestamp(skip_space(line));
    end(line).and_then(|rest| skip_space(rest).strip_prefix("-->")).and_then(end).is_some()
}

fn skip_space(text: &str) -> &str {
    text.trim_start_matches([' ', '\t', '\u{c}'])
}

/// Reads `[h…:]mm:ss.ttt` and answers what follows. Hours may have any number of digits.
fn timestamp(text: &str) -> Option<&str> {
    let (first, rest) = digits(text)?;
    let (second, rest) = digits(rest.strip_prefix(':')?)?;
    let hours_first = first.len() != 2 || first > "59" || rest.starts_with(':');
    let (minutes, seconds, rest) = if hours_first {
        let (third, rest) = digits(rest.strip_prefix(':')?)?;
        (second, third, rest)
    } else {
        (first, second, rest)
    };
    let (thousandths, rest) = digits(rest.strip_prefix('.')?)?;
    let is_sexagesimal = |part: &str| part.len() == 2 && part <= "59";
    (is_sexagesimal(minutes) && is_sexagesimal(seconds) && thousandths.len() == 3).then_some(rest)
}

fn digits(text: &str) -> Option<(&str, &str)> {
    let end = text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    text.split_at_checked(end).filter(|(digits, _)| !digits.is_empty())
}

/// The words so far, and where in a cue the reader stands.
#[derive(Default)]
struct Spoken {
    text: String,
    /// Inside `<…>`, which may span lines.
    in_tag: bool,
    /// Nothing of the line but white space so far.
    at_line_start: bool,
    /// White space has been read since the last word.
    gap: bool,
}

impl Spoken {
    /// Reads a line of a cue's payload. Every tag ends at the first `>`; one that never ends swallows the cue's rest.
    fn line(&mut self, line: &str) {
        if !self.in_tag {
            self.at_line_start = true;
            self.gap = true;
        }
        let mut rest = line;
        loop {
            if self.in_tag {
                let Some((_, after)) = rest.split_once('>') else { return };
                self.in_tag = false;
                rest = after;
            }
            let Some((text, tag)) = rest.split_once('<') else { return self.text(rest) };
            self.text(text);
            self.in_tag = true;
            rest = tag;
        }
    }

    fn end_cue(&mut self) {
        self.in_tag = false;
    }

    fn text(&mut self, text: &str) {
        match text.contains('&') {
            true => self.decoded(&decode(text)),
            false => self.decoded(text),
        }
    }

    fn decoded(&mut self, text: &str) {
        let words = text.trim_start();
        self.gap |= words.len() < text.len();
        if words.is_empty() {
            return;
        }
        let words = if self.at_line_start { without_dash(words) } else { words };
        self.at_line_start = false;
        let trimmed = words.trim();
        if trimmed.is_empty() {
            self.gap = true;
            return;
        }
        if self.gap && !self.text.is_empty() {
            self.text.push(' ');
        }
        self.push_collapsed(trimmed);
        self.gap = words.ends_with(char::is_whitespace);
    }

    fn push_collapsed(&mut self, words: &str) {
        if is_collapsed(words) {
            return self.text.push_str(words);
        }
        for (at, word) in words.split_whitespace().enumerate() {
            if at > 0 {
                self.text.push(' ');
            }
            self.text.push_str(word);
        }
    }
}

/// Slack opens a speaker's first line with `- ` (platform-facts B4).
fn without_dash(words: &str) -> &str {
    words.strip_prefix('-').filter(|rest| rest.starts_with(char::is_whitespace)).unwrap_or(words)
}

/// Whether single spaces are certainly the only white space. Without a branch, so that it runs many bytes at a time;
/// the four bytes are those that open a white-space character beyond ASCII.
fn is_collapsed(words: &str) -> bool {
    let bytes = words.as_bytes();
    let odd = |byte: u8| (byte < b' ') | (byte == 0xc2) | (byte == 0xe1) | (byte == 0xe2) | (byte == 0xe3);
    let pairs = bytes.iter().zip(bytes.iter().skip(1));
    let doubled = pairs.fold(false, |found, (a, b)| found | ((*a == b' ') & (*b == b' ')));
    !bytes.iter().fold(doubled, |found, byte| found | odd(*byte))
}

/// Resolves character references, once. What is none stays as it is written.
fn decode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((plain, after)) = rest.split_once('&') {
        out.push_str(plain);
        rest = match reference(after) {
            Some((resolved, after)) => {
                out.extend(resolved);
                after
            }
            None => {
                out.push('&');
                after
            }
        };
    }
    out.push_str(rest);
    out
}

/// Reads a reference behind its `&`. The direction marks resolve to nothing: on one line they have nothing to do.
fn reference(text: &str) -> Option<(Option<char>, &str)> {
    const LONGEST: usize = 12;
    let end = text.bytes().take(LONGEST).position(|byte| byte == b';')?;
    let (name, after) = (text.get(..end)?, text.get(end + 1..)?);
    let resolved = match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "nbsp" => '\u{a0}',
        "lrm" => '\u{200e}',
        "rlm" => '\u{200f}',
        "quot" => '"',
        "apos" => '\'',
        _ => numeric(name.strip_prefix('#')?)?,
    };
    Some((Some(resolved).filter(|c| !matches!(c, '\u{200e}' | '\u{200f}')), after))
}

fn numeric(number: &str) -> Option<char> {
    let (digits, radix) = match number.strip_prefix(['x', 'X']) {
        Some(digits) => (digits, 16),
        None => (number, 10),
    };
    let is_number = !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
    let code = is_number.then(|| u32::from_str_radix(digits, radix).unwrap_or(u32::MAX))?;
    Some(char::from_u32(code).filter(|c| *c != '\0').unwrap_or('\u{fffd}'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(cases: &[(&str, &str)]) {
        for (captions, expected) in cases {
            assert_eq!(words(captions).as_deref(), Some(*expected), "{captions:?}");
        }
    }

    /// One cue with this payload.
    fn check_payload(cases: &[(&str, &str)]) {
        for (payload, expected) in cases {
            let captions = format!("WEBVTT\n\n00:01.000 --> 00:02.000\n{payload}");
            assert_eq!(words(&captions).as_deref(), Some(*expected), "{payload:?}");
        }
    }

    #[test]
    fn without_the_signature_it_is_no_captions_file() {
        for text in ["", "WEBVT", "webvtt", "WEBVTT.", "WEBVTTX\n", " WEBVTT", "<html>WEBVTT", "\u{feff}\u{feff}WEBVTT"]
        {
            assert_eq!(words(text), None, "{text:?}");
        }
        check(&[("WEBVTT", ""), ("\u{feff}WEBVTT \r\n", ""), ("WEBVTT\tx --> y\n\n", "")]);
    }

    #[test]
    fn reads_what_slack_serves() {
        check(&[(
            "\u{feff}WEBVTT \n\n00:00:00.160 --> 00:00:03.000\n- Right, the second\ntest is red\n\n\
             00:00:03.500 --> 00:00:05.000\n- since Monday.\n",
            "Right, the second test is red since Monday.",
        )]);
    }

    #[test]
    fn the_header_is_skipped() {
        check(&[
            ("WEBVTT\nKind: captions\n\n00:01.000 --> 00:02.000\na", "a"),
            ("WEBVTT\nKind: captions\n00:01.000 --> 00:02.000\na", "a"),
            ("WEBVTT\n00:01.000 --> 00:02.000\na", "a"),
        ]);
    }

    #[test]
    fn blocks_end_at_blank_lines_and_at_foreign_arrows() {
        let timing = "00:01.000 --> 00:02.000";
        for (body, expected) in [
            (format!("id\n{timing}\na"), "a"),
            (format!("one\ntwo\n{timing}\na"), "a"),
            (format!("{timing}\na\n{timing}\nb"), "a b"),
            (format!("{timing}\na\nid\n{timing}\nb"), "a id b"),
            (format!("{timing}\n{timing}\nb"), "b"),
            (format!("{timing}\n\nnot a cue\n\n{timing}\nb"), "b"),
            (format!("{timing}\na\nx --> y\nb\n\n{timing}\nc"), "a c"),
            (format!("NOTE a remark\nof two lines\n\n{timing}\na"), "a"),
            (format!("STYLE\n::cue {{ }}\n\nREGION\nid:x\n\n{timing}\na\n\nSTYLE\nlate\n"), "a"),
            (format!("\n\n\n{timing}\na\n\n\n\n{timing}\nb\n\n"), "a b"),
        ] {
            check(&[(&format!("WEBVTT\n\n{body}"), expected)]);
        }
    }

    #[test]
    fn a_cue_with_a_bad_timing_is_dropped_and_reading_goes_on() {
        let good =
            ["00:01.000 --> 00:02.000", "00:01.000-->00:02.000 align:start", "\t100:00:01.000 \t-->1:00:02.000x"];
        let bad = [
            "0:01.000 --> 00:02.000",
            "00:01.00 --> 00:02.000",
            "00:01.0000 --> 00:02.000",
            "00:01,000 --> 00:02.000",
            "00:60.000 --> 00:02.000",
            "00:60:00.000 --> 00:02.000",
            "60:00.000 --> 00:02.000",
            "00:01.000 --> ",
            "--> 00:02.000",
            "00:01.000 x --> 00:02.000",
            "00:01.000 -->> 00:02.000",
            "99999999999999999999:00.000 --> 00:02.000",
        ];
        for (timings, heard) in [(good.as_slice(), "heard last"), (bad.as_slice(), "last")] {
            for timing in timings {
                check(&[(&format!("WEBVTT\n\n{timing}\nheard\n\n00:01.000 --> 00:02.000\nlast"), heard)]);
            }
        }
    }

    #[test]
    fn an_overlong_hour_is_an_hour() {
        let hours = "9".repeat(400);
        check(&[(&format!("WEBVTT\n\n{hours}:00:00.000 --> {hours}:00:01.000\na"), "a")]);
    }

    #[test]
    fn tags_are_dropped_and_their_text_is_kept() {
        check_payload(&[
            ("<v Dana Doe>hello <b>bold</b> <c.red.big>red</c>", "hello bold red"),
            ("<lang en>a</lang><ruby>漢<rt>kan</rt></ruby>", "a漢kan"),
            ("un<unknown x>known</nothing>", "unknown"),
            ("a <00:00:01.500>b<>c", "a bc"),
            ("a < b", "a"),
            ("a <v over\nlines>b", "a b"),
            ("a <b\nswallowed\nto the end", "a"),
        ]);
        let captions = "WEBVTT\n\n00:01.000 --> 00:02.000\na <open\n\n00:01.000 --> 00:02.000\nb > c";
        check(&[(captions, "a b > c")]);
    }

    #[test]
    fn references_are_resolved_once() {
        check_payload(&[
            ("a &amp; b &lt;i&gt; &quot;c&apos;", "a & b <i> \"c'"),
            ("&amp;lt;", "&lt;"),
            ("a&nbsp;&nbsp;b", "a b"),
            ("a&lrm;b&rlm;c&#x200E;d", "abcd"),
            ("&#65;&#x42;&#X43;", "ABC"),
            ("&#0;&#xD800;&#x110000;&#99999999;", "\u{fffd}\u{fffd}\u{fffd}\u{fffd}"),
            ("R&D & &unknown; &; &# &#; &#x; &#+1; &amp", "R&D & &unknown; &; &# &#; &#x; &#+1; &amp"),
        ]);
    }

    #[test]
    fn white_space_collapses_and_the_dash_of_a_line_goes() {
        check_payload(&[
            ("  a \t b\u{3000}c  ", "a b c"),
            ("- a\n - b\n-c\n- - d\n-", "a b -c - d -"),
            ("- \n<b>- a</b>", "a"),
            ("ä  ö", "ä ö"),
            ("a<b> </b>b", "a b"),
            ("a\0b", "a\u{fffd}b"),
        ]);
    }

    #[test]
    fn every_line_end_counts() {
        for end in ["\n", "\r\n", "\r"] {
            let captions = ["WEBVTT", "", "00:01.000 --> 00:02.000", "a", "b", "", "00:01.000 --> 00:02.000", "c"];
            check(&[(&captions.join(end), "a b c")]);
        }
    }

    #[test]
    fn equal_cues_are_all_kept() {
        let cue = "00:01.000 --> 00:02.000\nyes\n\n";
        check(&[(&format!("WEBVTT\n\n{cue}{cue}{cue}"), "yes yes yes")]);
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "(WEBVTT|-->|00:01\\.000 --> 00:02\\.000|[a<>&;#x \\-\r\n\0ä]){0,60}") {
            for captions in [text.clone(), format!("WEBVTT\n\n{text}"), format!("WEBVTT\n\n00:01.000 --> 00:02.000\n{text}")] {
                let Some(words) = words(&captions) else { continue };
                prop_assert!(words.len() <= 3 * captions.len(), "the replacement character has three bytes");
                prop_assert_eq!(words.split_whitespace().collect::<Vec<_>>().join(" "), words);
            }
        }
    }
}
