//! Classes of characters: what an agent's composer acts on, what nobody sees, and what belongs together.
//!
//! The lists are what Claude Code was measured to remove or to stop at (agents-in-tmux 7), and Unicode's own kin of
//! them. Where a class is wider here than in Unicode, nothing is lost by it: a cut merely falls elsewhere.

/// Zero-width joiner: glue of an emoji sequence, invisible anywhere else.
const ZWJ: char = '\u{200d}';

/// Line ends that are not a line feed. Vertical tab and form feed are among them, so that the words stay apart.
pub(super) fn is_line_break(c: char) -> bool {
    matches!(c, '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Any control character (C0, DEL, C1) that breaks no line and is no tab.
pub(super) fn is_control(c: char) -> bool {
    c.is_control() && !is_line_break(c) && !matches!(c, '\n' | '\t')
}

/// Format characters: bidi controls, on which Claude Code refuses to submit, and the zero-width ones, soft hyphen,
/// byte-order mark, annotations and tags, in which text hides.
pub(super) fn is_format(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
        || is_variation_selector(c)
}

/// Whether a format character has work to do where it stands: the joiner and the presentation selectors inside an
/// emoji sequence, the other selectors behind an ideograph.
pub(super) fn belongs(before: Option<char>, c: char, after: Option<char>) -> bool {
    let Some(before) = before else { return false };
    match c {
        ZWJ => (is_pictograph(before) || before == '\u{fe0f}') && after.is_some_and(is_pictograph),
        '\u{fe0e}' | '\u{fe0f}' => is_pictograph(before) || matches!(before, '0'..='9' | '#' | '*'),
        c => is_variation_selector(c) && is_ideograph(before),
    }
}

/// The first user-perceived character, near enough, and the rest: a letter with its marks, an emoji sequence, a flag.
pub(super) fn first_cluster(text: &str) -> Option<(&str, &str)> {
    let mut chars = text.char_indices();
    let (_, first) = chars.next()?;
    let mut before = first;
    let mut flag = is_regional(first);
    for (at, c) in chars {
        let second_half_of_a_flag = std::mem::take(&mut flag) && is_regional(c);
        if !second_half_of_a_flag && !attaches(before, c) {
            return text.split_at_checked(at);
        }
        before = c;
    }
    Some((text, ""))
}

fn attaches(before: char, c: char) -> bool {
    !before.is_control() && (c == ZWJ || is_mark(c) || is_variation_selector(c) || before == ZWJ && is_pictograph(c))
}

fn is_variation_selector(c: char) -> bool {
    matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
}

fn is_regional(c: char) -> bool {
    matches!(c, '\u{1f1e6}'..='\u{1f1ff}')
}

fn is_pictograph(c: char) -> bool {
    matches!(c,
        '\u{a9}' | '\u{ae}' | '\u{203c}' | '\u{2049}' | '\u{2122}' | '\u{2139}' | '\u{2194}'..='\u{21aa}'
        | '\u{2300}'..='\u{23ff}' | '\u{24c2}' | '\u{25aa}'..='\u{27bf}' | '\u{2934}'..='\u{2935}'
        | '\u{2b05}'..='\u{2b55}' | '\u{3030}' | '\u{303d}' | '\u{3297}' | '\u{3299}' | '\u{1f000}'..='\u{1faff}')
}

fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// Marks that combine with what stands before them, for the scripts that people write in.
fn is_mark(c: char) -> bool {
    match c {
        '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{591}'..='\u{5c7}' | '\u{610}'..='\u{61a}' => true,
        '\u{64b}'..='\u{65f}' | '\u{670}' | '\u{6d6}'..='\u{6ed}' => true,
        '\u{900}'..='\u{dff}' => is_indic_mark(c),
        '\u{e31}' | '\u{e34}'..='\u{e3a}' | '\u{e47}'..='\u{e4e}' => true,
        '\u{eb1}' | '\u{eb4}'..='\u{ebc}' | '\u{ec8}'..='\u{ece}' | '\u{f71}'..='\u{f84}' => true,
        '\u{102b}'..='\u{103e}' | '\u{1160}'..='\u{11ff}' | '\u{17b4}'..='\u{17d3}' => true,
        '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}' => true,
        '\u{302a}'..='\u{302f}' | '\u{3099}' | '\u{309a}' | '\u{fe20}'..='\u{fe2f}' => true,
        _ => matches!(c, '\u{1f3fb}'..='\u{1f3ff}'),
    }
}

/// Devanagari to Sinhala are ten blocks of one layout.
fn is_indic_mark(c: char) -> bool {
    matches!(u32::from(c) % 0x80, 0..=0x3 | 0x3a..=0x57 | 0x62..=0x63)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clusters(mut text: &str) -> Vec<&str> {
        let mut found = Vec::new();
        while let Some((cluster, rest)) = first_cluster(text) {
            found.push(cluster);
            text = rest;
        }
        found
    }

    #[test]
    fn what_reads_as_one_character_is_one_cluster() {
        for (text, expected) in [
            ("", vec![]),
            ("ab", vec!["a", "b"]),
            ("e\u{301}e", vec!["e\u{301}", "e"]),
            ("👩\u{200d}👩\u{200d}👧x", vec!["👩\u{200d}👩\u{200d}👧", "x"]),
            ("👍🏽👍", vec!["👍🏽", "👍"]),
            ("1\u{fe0f}\u{20e3}2", vec!["1\u{fe0f}\u{20e3}", "2"]),
            ("🇩🇪🇫🇷🇪", vec!["🇩🇪", "🇫🇷", "🇪"]),
            ("नमस्ते", vec!["न", "म", "स्", "ते"]),
            ("\n\u{301}", vec!["\n", "\u{301}"]),
        ] {
            assert_eq!(clusters(text), expected, "{text}");
        }
    }
}
