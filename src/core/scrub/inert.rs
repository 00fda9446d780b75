//! Words of others on GitHub, where they must not act.

/// Zero-width space. GitHub shows nothing for it, and no syntax reaches across it.
const BREAK: char = '\u{200b}';

/// Makes outside text inert for a GitHub comment: HTML comments, and with them markers and envelopes, Slack's
/// broadcasts (`<!here>`), mentions, and keywords that close issues (`fixes #1`).
///
/// All it does is put an invisible U+200B into each: `<!--` becomes `<` U+200B `!--`, `@dana` becomes `@` U+200B
/// `dana`, `fixes #1` becomes `fixes` U+200B ` #1`. Without them the text is byte for byte what was said, and
/// [`clean`](crate::core::pane_text::clean) removes them when a record is quoted back to the pane. It must be the last
/// step before the record, because cleaning undoes it.
///
/// Why not an entity: `&#64;dana` still notifies Dana, because GitHub looks for mentions in the rendered text
/// (openjdk/skara#1548, github/cmark-gfm#181), and `\@dana` does too (github/markup#1168). An entity, a tag or
/// backticks also show as rubbish in code, and code alone is no protection: GitHub reads the replies that people send
/// by e-mail as plain text, quotes included (dependabot-core#3157, which therefore uses U+200B). The price: what a
/// person copies from the record has the invisible character in `@types/node` or in an HTML comment.
///
/// Links, images and plain references (`#12`) stay alive.
pub fn inert(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut done, mut before) = (0, ' ');
    for (at, c) in text.char_indices() {
        // A break separates like a space does: what was an address behind a letter may now be a mention.
        let before_here = if at == done && at > 0 { BREAK } else { before };
        if let Some(from_here) = break_behind(before_here, text.get(at..).unwrap_or_default()) {
            let cut = at + from_here;
            out.push_str(text.get(done..cut).unwrap_or_default());
            out.push(BREAK);
            done = cut;
        }
        before = c;
    }
    out.push_str(text.get(done..).unwrap_or_default());
    out
}

/// How many bytes into `text` something live must be broken, if it begins here.
fn break_behind(before: char, text: &str) -> Option<usize> {
    match text.as_bytes().first()? {
        b'<' => text.get(1..)?.starts_with(['!', '?']).then_some(1),
        b'-' => comment_end(text),
        b'@' | b'&' => mention(before, text),
        b'c' | b'C' | b'f' | b'F' | b'r' | b'R' => closing_keyword(before, text),
        _ => None,
    }
}

/// `-->` and `--!>` close a comment, ours too, if words got into one.
fn comment_end(text: &str) -> Option<usize> {
    ["-->", "--!>"].into_iter().find(|end| text.starts_with(end)).map(|end| end.len() - 1)
}

/// An `@`, also one written as an entity, before what can be a login. Behind a letter or a digit it is an e-mail
/// address, to GitHub as well.
fn mention(before: char, text: &str) -> Option<usize> {
    let sign = if text.starts_with('@') { 1 } else { at_entity(text)? };
    let can_be_login = |c: char| c.is_ascii_alphanumeric() || c == '&';
    (!before.is_ascii_alphanumeric() && text.get(sign..)?.starts_with(can_be_login)).then_some(sign)
}

/// The length of `&commat;`, `&#64;` or `&#x40;`.
fn at_entity(text: &str) -> Option<usize> {
    const LONGEST: usize = 12;
    let end = text.bytes().take(LONGEST).position(|byte| byte == b';')?;
    let name = text.get(1..end)?;
    let hexadecimal = name.strip_prefix("#x").or_else(|| name.strip_prefix("#X"));
    let is_at = name == "commat"
        || hexadecimal.is_some_and(|digits| digits.trim_start_matches('0') == "40")
        || name.strip_prefix('#').is_some_and(|digits| digits.trim_start_matches('0') == "64");
    is_at.then_some(end + 1)
}

/// The length of a word that closes the issue that follows it.
fn closing_keyword(before: char, text: &str) -> Option<usize> {
    const KEYWORDS: [&str; 9] =
        ["close", "closes", "closed", "fix", "fixes", "fixed", "resolve", "resolves", "resolved"];
    if before.is_ascii_alphanumeric() {
        return None;
    }
    let end = text.bytes().take("resolved".len() + 1).position(|byte| !byte.is_ascii_alphabetic())?;
    let (word, after) = text.split_at_checked(end)?;
    let closes = KEYWORDS.iter().any(|keyword| word.eq_ignore_ascii_case(keyword)) && refers_to_issue(after);
    closes.then_some(end)
}

/// Whether an issue comes next: `#1`, `GH-1`, `owner/repo#1` or a URL, behind a colon, spaces, emphasis or a bracket.
/// Wider than GitHub's own rule: a break too many is invisible.
fn refers_to_issue(text: &str) -> bool {
    const LONGEST_GAP: usize = 16;
    const LONGEST_REPOSITORY: usize = 140;
    let is_gap = |c: &char| !c.is_alphanumeric() && !matches!(c, '#' | '_' | &BREAK);
    let gap = text.chars().take(LONGEST_GAP).take_while(is_gap).map(char::len_utf8).sum();
    let reference = text.get(gap..).filter(|_| gap > 0).unwrap_or_default();
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'/');
    let name_length = reference.bytes().take(LONGEST_REPOSITORY).take_while(is_name).count();
    let (name, number) = reference.split_at_checked(name_length).unwrap_or_default();
    let has_number = number.strip_prefix('#').is_some_and(|number| number.starts_with(|c: char| c.is_ascii_digit()));
    let name = name.to_ascii_lowercase();
    has_number || name.starts_with("gh-") || matches!(name.as_str(), "http" | "https") && number.starts_with("://")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::pane_text::clean;
    use proptest::prelude::*;

    /// `^` stands for the break that is expected.
    fn check(cases: &[&str]) {
        for case in cases {
            let text = case.replace('^', "");
            assert_eq!(inert(&text).replace(BREAK, "^"), *case);
        }
    }

    #[test]
    fn comments_markers_and_broadcasts_are_broken() {
        check(&[
            "<^!-- usher:record {\"id\":1} 0a1b --^>",
            "a --!^> b",
            "`<^!-- code --^>`",
            "<^!here> <^!channel> <^!subteam^S1>".replace("^S1", "S1").as_str(),
            "<^![CDATA[ <^?php <^!DOCTYPE",
            "a < !b, a <- b -> c, --x, <https://x.example|x>",
        ]);
    }

    #[test]
    fn mentions_ping_nobody() {
        check(&[
            "@^dana, @^acme/web and (@^Bob) _@^eve_ **@^x** `@^types/node` @^here",
            "\\@^dana é@^dana @@^dana &#64;^dana &#x0040;^dana &commat;^dana @^&#100;ana",
            "dana@example.org, a1@b.example, @ dana, @, user@",
            "&#65;dana &amp; &",
        ]);
    }

    #[test]
    fn keywords_close_no_issue() {
        check(&[
            "fixes^ #1, Fixed^: #2; CLOSE^ #3 closes^ owner/re.po-x#4",
            "resolves^ https://github.com/o/r/issues/3 and resolved^ GH-12",
            "fix^ **#1** fix^ [#1](x) fix^&#32;#1 fix^\n#1",
            "bugfix-fixes^ #1 fix^@^dana#1",
            "this fixes the bug, see #1; prefixes #1; fixes1 #1; fixing #1; closes owner/repo; fix it",
            "refers to #12, PR #13",
        ]);
    }

    proptest! {
        #[test]
        fn nothing_but_breaks_is_added_and_only_once(
            text in prop_oneof![
                any::<String>(),
                "(<!--|-->|--!>|<!here>|<\\?|@|&#64;|&commat;|dana|fix(es|ed)?|closes?|resolved?| |:|#1|o/r#2|GH-3|\
                 https://|\u{200b}|`|_|-|é){0,24}",
            ],
        ) {
            let broken = inert(&text);
            prop_assert_eq!(broken.replace(BREAK, ""), text.replace(BREAK, ""));
            prop_assert_eq!(inert(&broken), broken.clone());
            for live in ["<!", "-->", "--!>"] {
                prop_assert!(!broken.contains(live));
            }
        }

        #[test]
        fn what_comes_back_from_the_record_is_what_was_said(text in "([a-z@<>!#1 -]|fixes #1|<!--){0,40}") {
            prop_assert_eq!(clean(&inert(&text)), text);
        }
    }
}
