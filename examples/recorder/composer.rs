//! The box in which a message is written.

/// A paste of as many lines, or of more characters, is shown as a placeholder.
const PLACEHOLDER_LINES: usize = 4;
const PLACEHOLDER_CHARACTERS: usize = 800;

/// The box in which a message is written.
#[derive(Debug, Default)]
pub(crate) struct Composer {
    pieces: Vec<Piece>,
    pastes: usize,
    /// Whether a paste is shown as it is, however long.
    plain: bool,
}

#[derive(Debug)]
enum Piece {
    Plain(String),
    Placeholder { number: usize, text: String },
}

impl Composer {
    /// A box that shows every paste as it is.
    pub(crate) fn plain() -> Self {
        Self { plain: true, ..Self::default() }
    }

    /// Replaces what is in the box.
    pub(crate) fn set(&mut self, text: &str) {
        self.pieces.clear();
        self.type_in(text);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    pub(crate) fn type_in(&mut self, text: &str) {
        match self.pieces.last_mut() {
            Some(Piece::Plain(plain)) => plain.push_str(text),
            _ if text.is_empty() => {}
            _ => self.pieces.push(Piece::Plain(text.to_owned())),
        }
    }

    pub(crate) fn paste(&mut self, text: String) {
        let lines = text.matches('\n').count() + 1;
        if self.plain || (lines < PLACEHOLDER_LINES && text.chars().count() <= PLACEHOLDER_CHARACTERS) {
            return self.type_in(&text);
        }
        self.pastes += 1;
        self.pieces.push(Piece::Placeholder { number: self.pastes, text });
    }

    pub(crate) fn erase(&mut self) {
        if let Some(Piece::Plain(plain)) = self.pieces.last_mut() {
            plain.pop();
            if !plain.is_empty() {
                return;
            }
        }
        self.pieces.pop();
    }

    pub(crate) fn take_text(&mut self) -> String {
        let pieces = std::mem::take(&mut self.pieces);
        pieces
            .into_iter()
            .map(|piece| match piece {
                Piece::Plain(text) | Piece::Placeholder { text, .. } => text,
            })
            .collect()
    }

    pub(crate) fn shown(&self) -> String {
        let shown = |piece: &Piece| match piece {
            Piece::Plain(text) => text.clone(),
            Piece::Placeholder { number, text } => match text.matches('\n').count() {
                0 => format!("[Pasted text #{number}]"),
                line_feeds => format!("[Pasted text #{number} +{line_feeds} lines]"),
            },
        };
        self.pieces.iter().map(shown).collect()
    }
}
