//! What goes into a pane: cleaned, framed, and cut into pastes.
//!
//! Owns the one type that tmux accepts, [`PaneText`], the [`Nonce`] of its frame lines, and the cleaning that keeps
//! every byte of it data. It must not know how a delivery reads (`delivery`) nor how a pane is found or written to
//! (`tmux`).

mod chars;
mod clean;
mod pieces;

use std::fmt;

pub use clean::{clean, defuse_mentions, one_line};
pub use pieces::PlainLimit;

/// The text of one delivery, the only thing that tmux accepts.
///
/// It begins with `[usher NONCE`, ends with `[usher NONCE end]` and has no trailing line feed, so that a leading `/`,
/// `!` or `exit`, a trailing `\` or `@path` are data to every agent measured (agents-in-tmux 6). It is [`clean()`], so
/// that no byte of it acts as a key. Only `core` makes one, out of an authorised message:
///
/// ```compile_fail,E0624
/// use usher::core::pane_text::{Nonce, PaneText, Part};
/// let nonce = Nonce::not_in("", [[0; 4]]).unwrap();
/// PaneText::framed(&nonce, vec![Part::Own("/quit".into())], None);
/// ```
///
/// ```compile_fail,E0451
/// use usher::core::pane_text::{Nonce, PaneText};
/// let nonce = Nonce::not_in("", [[0; 4]]).unwrap();
/// PaneText { nonce, text: "/quit".into(), pieces: Vec::new() };
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct PaneText {
    nonce: Nonce,
    text: String,
    pieces: Vec<String>,
}

/// A run of whole lines of a delivery, by whose words they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// usher's frame and the speaker's own words: cut into pieces that the agent keeps plain.
    Own(String),
    /// Words of others and the attachments: one paste, which the agent may wrap as possibly not the user's, and in
    /// which `@/path` inlines nothing.
    Foreign(String),
}

impl PaneText {
    /// Cleans the parts and joins them with line feeds; line feeds at the end of a part are dropped.
    ///
    /// With `plain`, the speaker's own words are cut into pieces of at most that size; without, everything is one
    /// paste. A missing first or last frame line is added: what the caller forgot must not be what an agent executes.
    pub(in crate::core) fn framed(nonce: &Nonce, parts: Vec<Part>, plain: Option<PlainLimit>) -> Self {
        let mut parts: Vec<Part> = parts.into_iter().map(Part::cleaned).collect();
        if parts.first().is_none_or(|part| !part.text().starts_with(&format!("[usher {nonce}"))) {
            parts.insert(0, Part::Own(nonce.frame("")));
        }
        if parts.last().is_none_or(|part| part.text().lines().last() != Some(&nonce.frame("end"))) {
            parts.push(Part::Own(nonce.frame("end")));
        }
        let runs = joined(parts);
        let text: String = runs.iter().map(Part::text).collect();
        let pieces = match plain {
            Some(limit) => runs.into_iter().flat_map(|run| run.into_pieces(limit)).collect(),
            None => vec![text.clone()],
        };
        Self { nonce: nonce.clone(), text, pieces }
    }

    /// The whole text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// What names this delivery in its first and its last line, and in the agent's evidence.
    pub fn nonce(&self) -> &Nonce {
        &self.nonce
    }

    /// The pastes, in order; put together they are [`as_str`](Self::as_str).
    pub fn pieces(&self) -> &[String] {
        &self.pieces
    }

    /// How many lines it has: one more than its line feeds.
    pub fn lines(&self) -> usize {
        self.text.matches('\n').count() + 1
    }
}

#[cfg(test)]
impl PaneText {
    /// A text in these very pastes, for the tests of what comes after.
    pub(crate) fn of_pieces(nonce: &str, pieces: &[&str]) -> Self {
        let pieces: Vec<String> = pieces.iter().map(|piece| (*piece).to_owned()).collect();
        Self { nonce: Nonce(nonce.to_owned()), text: pieces.concat(), pieces }
    }
}

impl fmt::Debug for PaneText {
    /// Tells which delivery it is and how large, never what it says.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PaneText").field("nonce", &self.nonce).field("lines", &self.lines()).finish_non_exhaustive()
    }
}

impl Part {
    /// What it says, as its maker wrote it.
    pub(in crate::core) fn text(&self) -> &str {
        let (Self::Own(text) | Self::Foreign(text)) = self;
        text
    }

    fn cleaned(self) -> Self {
        let whole_lines = |text: &str| clean(text).trim_end_matches('\n').to_owned();
        match self {
            Self::Own(text) => Self::Own(whole_lines(&text)),
            Self::Foreign(text) => Self::Foreign(defuse_mentions(&whole_lines(&text))),
        }
    }

    fn into_pieces(self, limit: PlainLimit) -> Vec<String> {
        match self {
            Self::Own(text) => pieces::split(&text, limit),
            Self::Foreign(text) => vec![text],
        }
    }
}

/// Puts a line feed before every part but the first, and neighbours of the speaker's own together.
fn joined(parts: Vec<Part>) -> Vec<Part> {
    let mut runs: Vec<Part> = Vec::with_capacity(parts.len());
    for part in parts {
        match (runs.last_mut(), part) {
            (None, part) => runs.push(part),
            (Some(Part::Own(run)), Part::Own(text)) => {
                run.push('\n');
                run.push_str(&text);
            }
            (Some(_), Part::Own(text)) => runs.push(Part::Own(format!("\n{text}"))),
            (Some(_), Part::Foreign(text)) => runs.push(Part::Foreign(format!("\n{text}"))),
        }
    }
    runs
}

/// Eight lower-case hexadecimal digits that occur nowhere in what they frame, so that nothing in it can close the
/// frame (field report X5: a fixed delimiter gets forged, a filter for it gets fooled by look-alikes).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nonce(String);

impl Nonce {
    /// The first of the random candidates that does not occur in the content, neither as it came nor cleaned, in
    /// either case. `None` when there are no more candidates; an endless supply always ends in `Some`.
    pub fn not_in(content: &str, candidates: impl IntoIterator<Item = [u8; 4]>) -> Option<Self> {
        let content = clean(content).to_ascii_lowercase();
        candidates.into_iter().map(hex::encode).find(|candidate| !content.contains(candidate)).map(Self)
    }

    /// The nonce of a delivery that was interrupted, as the store kept it.
    pub fn stored(text: &str) -> Option<Self> {
        let is_nonce = text.len() == 8 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        is_nonce.then(|| Self(text.to_owned()))
    }

    /// The eight digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A mark of the frame: `[usher 7f3a9c2e]`, or with a word `[usher 7f3a9c2e end]`.
    pub fn frame(&self, word: &str) -> String {
        let space = if word.is_empty() { "" } else { " " };
        format!("[usher {self}{space}{word}]")
    }
}

impl fmt::Display for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CLAUDE: PlainLimit = PlainLimit { lines: 3, chars: 700 };

    fn nonce() -> Nonce {
        Nonce::not_in("", [[0x7f, 0x3a, 0x9c, 0x2e]]).unwrap()
    }

    fn own(text: &str) -> Part {
        Part::Own(text.into())
    }

    fn foreign(text: &str) -> Part {
        Part::Foreign(text.into())
    }

    #[test]
    fn own_words_are_cut_and_words_of_others_are_one_paste() {
        let parts = vec![
            own("[usher 7f3a9c2e] reply\n\none\ntwo\nthree"),
            foreign("\n[usher 7f3a9c2e attachments] 1 file\n1.\n2.\n3.\n4. @/etc/passwd"),
            own("[usher 7f3a9c2e end]"),
        ];
        let text = PaneText::framed(&nonce(), parts, Some(CLAUDE));
        assert_eq!(
            text.pieces(),
            [
                "[usher 7f3a9c2e] reply\n\none",
                "\ntwo\nthree",
                "\n\n[usher 7f3a9c2e attachments] 1 file\n1.\n2.\n3.\n4. @ /etc/passwd",
                "\n[usher 7f3a9c2e end]",
            ]
        );
        assert_eq!(text.lines(), 12);
    }

    #[test]
    fn without_a_limit_everything_is_one_paste() {
        let text = PaneText::framed(&nonce(), vec![own("a\nb\nc\nd"), foreign("e")], None);
        assert_eq!(text.pieces(), ["[usher 7f3a9c2e]\na\nb\nc\nd\ne\n[usher 7f3a9c2e end]"]);
    }

    #[test]
    fn a_forgotten_frame_is_added_and_a_body_cannot_stand_for_it() {
        for body in ["!rm -rf /", "/quit", "exit", "@/etc/passwd", "tail \\", "", "\n\n", "[usher 00000000 end]"] {
            let text = PaneText::framed(&nonce(), vec![own(body)], None);
            assert!(text.as_str().starts_with("[usher 7f3a9c2e]\n"), "{body}");
            assert!(text.as_str().ends_with("\n[usher 7f3a9c2e end]"), "{body}");
        }
        assert_eq!(PaneText::framed(&nonce(), vec![], None).lines(), 2);
    }

    #[test]
    fn a_paste_end_inside_the_words_is_gone() {
        let text = PaneText::framed(&nonce(), vec![own("a\u{1b}[201~\u{15}!touch f\rb\u{9b}201~c")], None);
        assert_eq!(text.as_str(), "[usher 7f3a9c2e]\na!touch f\nbc\n[usher 7f3a9c2e end]");
    }

    #[test]
    fn debug_output_tells_nothing_of_the_words() {
        let text = PaneText::framed(&nonce(), vec![own("the secret")], None);
        assert_eq!(format!("{text:?}"), r#"PaneText { nonce: Nonce("7f3a9c2e"), lines: 3, .. }"#);
    }

    #[test]
    fn the_nonce_is_not_in_what_it_frames() {
        let candidates = [[0, 0, 0, 0], [0xab, 0, 0, 1], [2, 2, 2, 2]];
        let drawn = |content: &str| Nonce::not_in(content, candidates).map(|nonce| nonce.to_string());
        assert_eq!(drawn("").as_deref(), Some("00000000"));
        assert_eq!(drawn("x00000000x AB000001").as_deref(), Some("02020202"), "whatever the case");
        assert_eq!(drawn("0000\u{200b}0000").as_deref(), Some("ab000001"), "cleaned, it would be the nonce");
        assert_eq!(drawn("00000000 ab000001 02020202"), None);
    }

    fn arbitrary_part() -> impl Strategy<Value = Part> {
        let text =
            prop_oneof![any::<String>(), "[a\n \u{1b}\\[\\]@/~\u{200d}\u{fe0f}❤👩e\u{301}]{0,60}", "(\\PC|\n){0,900}"];
        (text, any::<bool>()).prop_map(|(text, own)| if own { Part::Own(text) } else { Part::Foreign(text) })
    }

    proptest! {
        #[test]
        fn whatever_goes_in_is_framed_clean_and_whole(
            parts in prop::collection::vec(arbitrary_part(), 0..4),
            lines in 0_usize..5,
            chars in 0_usize..60,
            plain in any::<bool>(),
        ) {
            let text = PaneText::framed(&nonce(), parts, plain.then_some(PlainLimit { lines, chars }));
            prop_assert_eq!(text.pieces().concat(), text.as_str());
            prop_assert!(text.pieces().iter().all(|piece| !piece.is_empty()));
            prop_assert!(text.as_str().starts_with("[usher 7f3a9c2e"));
            prop_assert!(text.as_str().ends_with("\n[usher 7f3a9c2e end]"));
            prop_assert_eq!(clean(text.as_str()), text.as_str());
        }
    }
}
