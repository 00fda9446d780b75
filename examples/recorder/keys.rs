//! The keys that a terminal's bytes stand for.

const PASTE_START: &[u8] = b"\x1b[200~";
const PASTE_END: &[u8] = b"\x1b[201~";

/// What a person or a multiplexer can do at the keyboard.
#[derive(Debug)]
pub(crate) enum Key {
    Text(String),
    Paste(String),
    Enter,
    Backspace,
    /// `C-x Enter`.
    SubmitChord,
    /// `C-s`.
    Stash,
}

/// Makes keys of the bytes from the terminal, however they are split.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    pending: Vec<u8>,
    in_paste: bool,
}

impl Decoder {
    /// Takes what has come from the terminal.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        self.pending.extend(bytes);
    }

    /// The next whole key; `None`: more bytes must come first.
    pub(crate) fn next_key(&mut self) -> Option<Key> {
        loop {
            if self.in_paste {
                let end = self.pending.windows(PASTE_END.len()).position(|bytes| bytes == PASTE_END)?;
                let text = String::from_utf8_lossy(&self.take(end)).replace('\r', "\n");
                self.take(PASTE_END.len());
                self.in_paste = false;
                return Some(Key::Paste(text));
            }
            if PASTE_START.starts_with(&self.pending) && self.pending != PASTE_START {
                return None;
            }
            match *self.pending.as_slice() {
                [0x1b, ..] => self.skip_escape()?,
                [0x18] => return None,
                [0x18, b'\r', ..] => return self.take_key(2, Key::SubmitChord),
                [b'\r', ..] => return self.take_key(1, Key::Enter),
                [0x13, ..] => return self.take_key(1, Key::Stash),
                [0x7f, ..] => return self.take_key(1, Key::Backspace),
                [control, ..] if is_control(control) => drop(self.take(1)),
                _ => return self.take_text(),
            }
        }
    }

    /// Enters a paste, or passes over another escape sequence.
    fn skip_escape(&mut self) -> Option<()> {
        if self.pending.starts_with(PASTE_START) {
            self.take(PASTE_START.len());
            self.in_paste = true;
            return Some(());
        }
        let length = match self.pending.get(1)? {
            b'[' => self.pending.iter().skip(2).position(|byte| (0x40..=0x7e).contains(byte))? + 3,
            _ => 1,
        };
        self.take(length);
        Some(())
    }

    /// Characters up to the next control; a character that is not whole yet is left for later.
    fn take_text(&mut self) -> Option<Key> {
        let end = self.pending.iter().position(|byte| is_control(*byte)).unwrap_or(self.pending.len());
        let run = self.pending.get(..end)?;
        let whole = match std::str::from_utf8(run) {
            Err(error) if error.error_len().is_none() && end == self.pending.len() => error.valid_up_to(),
            _ => end,
        };
        let text = String::from_utf8_lossy(&self.take(whole)).into_owned();
        (!text.is_empty()).then_some(Key::Text(text))
    }

    fn take_key(&mut self, length: usize, key: Key) -> Option<Key> {
        self.take(length);
        Some(key)
    }

    fn take(&mut self, length: usize) -> Vec<u8> {
        self.pending.drain(..length.min(self.pending.len())).collect()
    }
}

fn is_control(byte: u8) -> bool {
    (byte < 0x20 && byte != b'\t' && byte != b'\n') || byte == 0x7f
}
