//! The terminal that the recorder runs in.

use std::io::{self, Write as _};

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

/// The terminal that the recorder runs in.
pub(crate) struct Terminal {
    original: Termios,
}

impl Terminal {
    pub(crate) fn open() -> io::Result<Self> {
        let terminal = Self { original: tcgetattr(io::stdin())? };
        terminal.set_cooked(false)?;
        Ok(terminal)
    }

    pub(crate) fn set_cooked(&self, cooked: bool) -> io::Result<()> {
        let mut modes = self.original.clone();
        if !cooked {
            modes.make_raw();
        }
        Ok(tcsetattr(io::stdin(), OptionalActions::Now, &modes)?)
    }

    pub(crate) fn restore(&self) -> io::Result<()> {
        io::stdout().write_all(b"\x1b[?2004l\r\n")?;
        self.set_cooked(true)
    }

    /// Columns and rows.
    pub(crate) fn size(&self) -> (usize, usize) {
        tcgetwinsize(io::stdin()).map_or((80, 24), |size| (size.ws_col.into(), size.ws_row.into()))
    }

    /// Draws the whole screen in one write, without clearing it first: whoever captures the pane never sees half of it.
    pub(crate) fn draw(&self, lines: &[String], bracketed: bool) -> io::Result<()> {
        let mode = if bracketed { "\x1b[?2004h" } else { "\x1b[?2004l" };
        let mut screen = format!("{mode}\x1b[H");
        for line in lines {
            screen.push_str(line);
            screen.push_str("\x1b[K\r\n");
        }
        screen.push_str("\x1b[J");
        let mut stdout = io::stdout().lock();
        stdout.write_all(screen.as_bytes())?;
        stdout.flush()
    }
}
