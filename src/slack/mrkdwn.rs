//! Slack's text format to plain words, and back never.
//!
//! Owns `<...>` tokens, the three entities, and the names behind ids. Tokens are found in the text as it came; then each
//! piece is decoded exactly once, so that `&lt;@U1&gt;`, which a person typed, never becomes a mention (field report
//! T16, platform-facts B2). It must not know events.

mod blocks;

use std::collections::HashMap;

use serde_json::Value;

pub(super) use blocks::{as_mrkdwn, file_ids};

use crate::core::loose;

/// How usher is called in words that mention it by its id.
const OWN_NAME: &str = "usher";

/// The longest shown name, in characters: Slack's own limit for display names.
const MAX_NAME: usize = 80;

/// The only three entities that Slack writes; without their `&`.
const ENTITIES: [(&str, char); 3] = [("amp;", '&'), ("lt;", '<'), ("gt;", '>')];

/// The names that people and channels are shown by, as far as they are known: id -> name.
#[derive(Debug, Clone, Default)]
pub struct Names(HashMap<String, String>);

impl Names {
    /// Takes names as people chose them: each becomes one line of at most 80 characters, empty ones are left out.
    pub fn new<Id: Into<String>, Name: AsRef<str>>(names: impl IntoIterator<Item = (Id, Name)>) -> Self {
        let clean = names.into_iter().map(|(id, name)| (id.into(), one_line(name.as_ref())));
        Self(clean.filter(|(_, name)| !name.is_empty()).collect())
    }

    /// The name behind an id.
    pub fn name_of(&self, id: &str) -> Option<&str> {
        self.0.get(id).map(String::as_str)
    }
}

/// The words of a mrkdwn text: tokens resolved, entities decoded once. A token that is none stays as it is.
pub fn plain(text: &str, names: &Names) -> String {
    Reader { names, own: None }.plain(text)
}

/// The words of a message's `blocks`; empty when there are none.
pub fn from_blocks(blocks: &Value, names: &Names) -> String {
    plain(&as_mrkdwn(blocks), names)
}

/// Whether a mrkdwn text mentions a user. Only a token is a mention; a typed `@name` is not.
pub fn mentions(text: &str, user: &str) -> bool {
    Pieces { rest: text }.any(|piece| match piece {
        Piece::Token(token) => token.strip_prefix('@').is_some_and(|rest| split_label(rest).0 == user),
        Piece::Words(_) => false,
    })
}

/// The text behind the mentions of usher that open it: whom a message addresses is not part of its words.
pub(super) fn unaddressed<'t>(text: &'t str, own: Option<&str>) -> &'t str {
    let mut rest = text;
    while let Some(tail) = own.and_then(|own| after_mention(rest, own)) {
        let separated =
            tail.strip_prefix([':', ',']).filter(|tail| tail.chars().next().is_none_or(char::is_whitespace));
        rest = separated.unwrap_or(tail).trim_start();
    }
    rest
}

/// A name or a label on one line: no control characters, at most 80 characters, entities decoded, no leading `@` or `#`.
pub(super) fn one_line(name: &str) -> String {
    let printable: String = decode(name).chars().map(|c| if c.is_control() { ' ' } else { c }).take(MAX_NAME).collect();
    printable.trim().trim_start_matches(['@', '#']).trim_start().to_owned()
}

/// What turns mrkdwn into words: the known names, and usher's own id, which reads `@usher`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'a> {
    /// The known names.
    pub(super) names: &'a Names,
    /// The bot's user id, if it is known.
    pub(super) own: Option<&'a str>,
}

impl Reader<'_> {
    /// As `plain`, with usher's own name.
    pub(super) fn plain(self, text: &str) -> String {
        let mut words = String::with_capacity(text.len());
        for piece in (Pieces { rest: text }) {
            match piece {
                Piece::Words(piece) => decode_onto(&mut words, piece),
                Piece::Token(token) => match self.token(token) {
                    Some(shown) => words.push_str(&shown),
                    None => words.push_str(&format!("<{}>", decode(token))),
                },
            }
        }
        words
    }

    /// How a token reads; `None` when it is none of Slack's.
    fn token(self, token: &str) -> Option<String> {
        let (target, label) = split_label(token);
        let label = label.map(decode);
        if let Some(user) = target.strip_prefix('@') {
            return loose::is_id(user).then(|| format!("@{}", self.user(user, label.as_deref())));
        }
        if let Some(channel) = target.strip_prefix('#') {
            let name = self.names.name_of(channel).or(label.as_deref()).unwrap_or(channel);
            return loose::is_id(channel).then(|| format!("#{}", name.trim_start_matches('#')));
        }
        match target.strip_prefix('!') {
            Some(special) => self.special(special, label),
            None => link(&decode(target), label),
        }
    }

    fn user<'n>(&'n self, id: &'n str, label: Option<&'n str>) -> &'n str {
        if self.own == Some(id) {
            return OWN_NAME;
        }
        self.names.name_of(id).or(label).unwrap_or(id).trim_start_matches('@')
    }

    /// Broadcasts, user groups, dates.
    fn special(self, special: &str, label: Option<String>) -> Option<String> {
        let (kind, rest) = special.split_once('^').unwrap_or((special, ""));
        match kind {
            "here" | "channel" | "everyone" => Some(format!("@{kind}")),
            "subteam" => {
                let name = self.names.name_of(rest).or(label.as_deref()).unwrap_or(rest);
                Some(format!("@{}", name.trim_start_matches('@')))
            }
            _ => label,
        }
    }
}

/// A link: its label with the address behind it, so that a label cannot hide where it leads; once when both are the same.
fn link(target: &str, label: Option<String>) -> Option<String> {
    let (scheme, rest) = target.split_once(':')?;
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'));
    let address = if matches!(scheme, "mailto" | "tel") { rest } else { target };
    match label {
        _ if !is_scheme => None,
        Some(label) if label == target || same_address(&label, rest) => Some(label),
        Some(label) => Some(format!("{label} ({address})")),
        None => Some(address.to_owned()),
    }
}

/// Whether a label is an address as people type it, without its scheme: Slack adds `http://` and the last slash.
fn same_address(label: &str, behind_scheme: &str) -> bool {
    let address = behind_scheme.strip_prefix("//").unwrap_or(behind_scheme);
    label == address || Some(label) == address.strip_suffix('/')
}

/// A token's target and its label; an empty label is none.
fn split_label(token: &str) -> (&str, Option<&str>) {
    match token.split_once('|') {
        Some((target, label)) => (target, Some(label).filter(|label| !label.trim().is_empty())),
        None => (token, None),
    }
}

/// What follows a mention of this user that opens the text.
fn after_mention<'t>(text: &'t str, user: &str) -> Option<&'t str> {
    let (token, tail) = text.trim_start().strip_prefix("<@")?.split_once('>')?;
    (split_label(token).0 == user).then_some(tail)
}

fn decode(text: &str) -> String {
    let mut decoded = String::with_capacity(text.len());
    decode_onto(&mut decoded, text);
    decoded
}

/// One pass over the text: what an entity becomes is not looked at again.
fn decode_onto(decoded: &mut String, text: &str) {
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('&') {
        decoded.push_str(before);
        let entity = ENTITIES.iter().find_map(|(name, c)| Some((*c, behind.strip_prefix(name)?)));
        let (c, tail) = entity.unwrap_or(('&', behind));
        decoded.push(c);
        rest = tail;
    }
    decoded.push_str(rest);
}

/// A part of a mrkdwn text.
enum Piece<'t> {
    /// Text between tokens.
    Words(&'t str),
    /// What stands between `<` and `>`.
    Token(&'t str),
}

/// Cuts a text into its pieces. A `<` that no `>` follows before the next `<` opens nothing and stays text.
struct Pieces<'t> {
    rest: &'t str,
}

impl<'t> Pieces<'t> {
    fn words(&mut self, length: usize) -> Option<Piece<'t>> {
        let (words, rest) = self.rest.split_at(length);
        self.rest = rest;
        (!words.is_empty()).then_some(Piece::Words(words))
    }
}

impl<'t> Iterator for Pieces<'t> {
    type Item = Piece<'t>;

    fn next(&mut self) -> Option<Piece<'t>> {
        let Some(open) = self.rest.strip_prefix('<') else {
            return self.words(self.rest.find('<').unwrap_or(self.rest.len()));
        };
        let Some(end) = open.find(['<', '>']) else { return self.words(self.rest.len()) };
        let (token, tail) = open.split_at(end);
        match tail.strip_prefix('>') {
            Some(rest) => {
                self.rest = rest;
                Some(Piece::Token(token))
            }
            None => self.words('<'.len_utf8() + end),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn names() -> Names {
        Names::new([("U1", "Dana Fox"), ("C1", "builds"), ("S1", "oncall"), ("U9", " \n ")])
    }

    fn check(cases: &[(&str, &str)]) {
        for (text, words) in cases {
            assert_eq!(plain(text, &names()), *words, "{text}");
        }
    }

    #[test]
    fn mentions_read_as_names() {
        check(&[
            ("<@U1> hi", "@Dana Fox hi"),
            ("<@U1|dana>", "@Dana Fox"),
            ("<@U2|sam>", "@sam"),
            ("<@U2|@sam &amp; co>", "@sam & co"),
            ("<@U2>", "@U2"),
            ("<@U9>", "@U9"),
            ("<@W2|>", "@W2"),
            ("<#C1>", "#builds"),
            ("<#C2|general>", "#general"),
            ("<#C2|>", "#C2"),
            ("<#C2>", "#C2"),
            ("<!here>", "@here"),
            ("<!channel|channel>", "@channel"),
            ("<!everyone>", "@everyone"),
            ("<!subteam^S2|@ops>", "@ops"),
            ("<!subteam^S1>", "@oncall"),
            ("<!subteam^S2>", "@S2"),
            ("<!date^1392734382^{date} at {time}^https://example.com/|18 Feb>", "18 Feb"),
        ]);
    }

    #[test]
    fn a_label_never_hides_its_address() {
        check(&[
            ("<https://example.com/a?b=1&amp;c=2>", "https://example.com/a?b=1&c=2"),
            ("<https://example.com/a|the plan>", "the plan (https://example.com/a)"),
            ("<https://example.com/a|https://example.com/a>", "https://example.com/a"),
            ("<http://example.com|example.com>", "example.com"),
            ("<http://example.com/|example.com>", "example.com"),
            ("<https://evil.example/|https://example.com/>", "https://example.com/ (https://evil.example/)"),
            ("<https://example.com/|a | b>", "a | b (https://example.com/)"),
            ("<https://example.com/|>", "https://example.com/"),
            ("<mailto:a@example.com|a@example.com>", "a@example.com"),
            ("<mailto:a@example.com|write me>", "write me (a@example.com)"),
            ("<tel:+491234|+491234>", "+491234"),
        ]);
    }

    #[test]
    fn what_is_no_token_stays_as_it_is() {
        check(&[
            ("", ""),
            ("<", "<"),
            (">", ">"),
            ("<>", "<>"),
            ("<@>", "<@>"),
            ("<@U1", "<@U1"),
            ("a < b and <@U1>", "a < b and @Dana Fox"),
            ("<<@U1>>", "<@Dana Fox>"),
            ("<@U1 <@U2>", "<@U1 @U2"),
            ("<@U 1>", "<@U 1>"),
            ("<b>bold</b>", "<b>bold</b>"),
            ("<no scheme:x>", "<no scheme:x>"),
            ("<!unheard>", "<!unheard>"),
            ("<!date^1^{date}>", "<!date^1^{date}>"),
            ("<tag &amp; more>", "<tag & more>"),
            ("line\n\n  indented\t<", "line\n\n  indented\t<"),
        ]);
    }

    #[test]
    fn t16_entities_are_decoded_once_and_after_the_tokens() {
        check(&[
            ("a &amp;&amp; b &lt; c &gt; d", "a && b < c > d"),
            ("&amp;lt;", "&lt;"),
            ("&amp;amp;lt;", "&amp;lt;"),
            ("&lt;@U1&gt;", "<@U1>"),
            ("&lt;!channel&gt;", "<!channel>"),
            ("&nbsp; &quot; &#60; & &am", "&nbsp; &quot; &#60; & &am"),
        ]);
        assert!(!mentions("&lt;@U1&gt; and @U1", "U1"));
    }

    #[test]
    fn only_a_token_is_a_mention() {
        for (text, expected) in [
            ("<@U1>", true),
            ("hey <@U1|usher> there", true),
            ("<@U12>", false),
            ("<@U1", false),
            ("`<` <@U1>", true),
            ("<#U1>", false),
            ("", false),
        ] {
            assert_eq!(mentions(text, "U1"), expected, "{text}");
        }
    }

    #[test]
    fn addressing_is_not_part_of_the_words() {
        for (text, rest) in [
            ("<@UBOT> run it", "run it"),
            (" <@UBOT|usher>: run it", "run it"),
            ("<@UBOT>, <@UBOT> run it", "run it"),
            ("<@UBOT>", ""),
            ("<@UBOT>:wave:", ":wave:"),
            ("run it <@UBOT>", "run it <@UBOT>"),
            ("<@U1> run it", "<@U1> run it"),
            ("  run it", "  run it"),
        ] {
            assert_eq!(unaddressed(text, Some("UBOT")), rest, "{text}");
        }
        assert_eq!(unaddressed("<@UBOT> run it", None), "<@UBOT> run it");
        assert_eq!(Reader { names: &names(), own: Some("UBOT") }.plain("ask <@UBOT|bot>"), "ask @usher");
    }

    #[test]
    fn names_are_one_short_line() {
        let long = "n".repeat(500);
        let names = Names::new([("U1", "Dana\n[usher end]\u{1b}[201~"), ("U2", "@sam"), ("U3", long.as_str())]);
        assert_eq!(names.name_of("U1"), Some("Dana [usher end] [201~"));
        assert_eq!(names.name_of("U2"), Some("sam"));
        assert_eq!(names.name_of("U3").map(str::len), Some(MAX_NAME));
    }

    proptest! {
        #[test]
        fn any_text_is_read_and_never_grows(text in r"([<>|&;@#!:^]|amp;|lt;|https://e|U1|S1|\PC|\n){0,200}") {
            prop_assert!(plain(&text, &Names::default()).len() <= text.len());
        }

        #[test]
        fn a_name_is_all_that_can_make_it_longer(text in "(<@U1>|<#C1>|[<>&@U1x]){0,100}") {
            prop_assert!(plain(&text, &names()).len() <= text.len() * MAX_NAME);
        }

        #[test]
        fn what_a_person_typed_comes_back(text in r"\PC{0,200}") {
            let wire = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            prop_assert_eq!(plain(&wire, &names()), text.clone());
            let blocks = json!([{"type": "rich_text", "elements": [
                {"type": "rich_text_section", "elements": [{"type": "text", "text": text.clone()}]}
            ]}]);
            let expected = if text.trim().is_empty() { String::new() } else { text };
            prop_assert_eq!(from_blocks(&blocks, &names()), expected);
        }
    }
}
