//! The program that plays the agent in a tmux pane: `recorder DIR`.
//!
//! It draws what a coding agent draws, takes keys and pastes as one does, and writes everything down: each byte of input
//! to `DIR/raw`, each submission to `DIR/submitted.jsonl`. `DIR/control.json` is read again every 50 ms and makes it
//! busy, a dialog, a dead ear or a bare terminal. Started under the name `claude` it also publishes its state and its
//! transcript below `$HOME/.claude`, takes `C-x Enter` as submit and `C-s` as stash, as Claude Code 2.1.332 does when
//! measured from outside. Under the name `robot` it shows pastes as they are: an agent that nobody knows. It uses none
//! of usher's code.

mod composer;
mod control;
mod keys;
mod notes;
mod publication;
mod terminal;

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use composer::Composer;
use control::{Control, Status};
use keys::{Decoder, Key};
use notes::{append_line, now_ms};
use publication::Publication;
use terminal::Terminal;

const CONTROL_INTERVAL: Duration = Duration::from_millis(50);

fn main() -> io::Result<()> {
    let mut arguments = std::env::args();
    let program = arguments.next().unwrap_or_default();
    let Some(dir) = arguments.next().map(PathBuf::from) else {
        return Err(io::Error::other("usage: recorder DIR"));
    };
    let publication = program.ends_with("claude").then(Publication::new).transpose()?;
    let composer = if program.ends_with("robot") { Composer::plain() } else { Composer::default() };
    let terminal = Terminal::open()?;
    let mut recorder = Recorder::new(dir, terminal, publication, composer)?;
    let outcome = recorder.run(&read_input());
    recorder.close().and(outcome)
}

/// Reads standard input on a thread of its own, so that the control file is looked at meanwhile.
fn read_input() -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(count) = io::stdin().read(&mut buffer) {
            let Some(bytes) = buffer.get(..count).filter(|bytes| !bytes.is_empty()) else { break };
            if sender.send(bytes.to_vec()).is_err() {
                break;
            }
        }
    });
    receiver
}

struct Recorder {
    dir: PathBuf,
    raw: File,
    terminal: Terminal,
    publication: Option<Publication>,
    control: Control,
    /// The control file as it was last obeyed.
    obeyed: String,
    decoder: Decoder,
    composer: Composer,
    stash: Option<Composer>,
    submitted: Vec<String>,
    /// Submissions that the transcript does not name yet, each with the time when it will.
    untold: VecDeque<(Instant, String, Status)>,
}

impl Recorder {
    fn new(dir: PathBuf, terminal: Terminal, publication: Option<Publication>, composer: Composer) -> io::Result<Self> {
        let raw = OpenOptions::new().create(true).append(true).open(dir.join("raw"))?;
        let recorder = Self {
            dir,
            raw,
            terminal,
            publication,
            control: Control::default(),
            obeyed: String::new(),
            decoder: Decoder::default(),
            composer,
            stash: None,
            submitted: Vec::new(),
            untold: VecDeque::new(),
        };
        recorder.publish()?;
        recorder.show()?;
        Ok(recorder)
    }

    fn run(&mut self, input: &Receiver<Vec<u8>>) -> io::Result<()> {
        loop {
            self.obey()?;
            self.tell()?;
            match input.recv_timeout(CONTROL_INTERVAL) {
                Ok(bytes) => self.take(&bytes)?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
        }
    }

    fn close(&self) -> io::Result<()> {
        self.publication.as_ref().map_or(Ok(()), Publication::withdraw)?;
        self.terminal.restore()
    }

    /// Obeys the control file when it has changed.
    fn obey(&mut self) -> io::Result<()> {
        let text = fs::read_to_string(self.dir.join("control.json")).unwrap_or_default();
        if text == self.obeyed {
            return Ok(());
        }
        self.control = serde_json::from_str(&text)?;
        if let Some(draft) = self.control.draft.take() {
            self.composer.set(&draft);
        }
        self.terminal.set_cooked(self.control.cooked)?;
        self.publish()?;
        self.press_what_came()?;
        fs::write(self.dir.join("obeyed.json"), &text)?;
        self.obeyed = text;
        Ok(())
    }

    fn take(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.raw.write_all(bytes)?;
        self.decoder.feed(bytes);
        self.press_what_came()
    }

    /// Takes the keys that wait; none while it hangs.
    fn press_what_came(&mut self) -> io::Result<()> {
        if self.control.hung {
            return Ok(());
        }
        while let Some(key) = self.decoder.next_key() {
            self.press(key)?;
        }
        self.show()
    }

    fn press(&mut self, key: Key) -> io::Result<()> {
        if self.control.status == Status::Waiting {
            return self.press_in_dialog(&key);
        }
        match key {
            Key::Text(text) => self.composer.type_in(&text),
            Key::Paste(text) => self.take_paste(text),
            Key::Backspace => self.composer.erase(),
            Key::Enter => self.submit()?,
            Key::SubmitChord if self.publication.is_some() => self.submit()?,
            Key::Stash if self.publication.is_some() => self.stash_or_restore(),
            Key::SubmitChord | Key::Stash => {}
        }
        Ok(())
    }

    fn take_paste(&mut self, text: String) {
        let is_whole = text.ends_with(" end]");
        self.composer.paste(text);
        if let Some(typed) = self.control.typed_behind.take_if(|_| is_whole) {
            self.composer.type_in(&typed);
        }
    }

    /// An open dialog throws pastes away, takes no chord, and takes Enter for a yes.
    fn press_in_dialog(&self, key: &Key) -> io::Result<()> {
        match key {
            Key::Enter => self.note(&json!({"approved": true, "at_ms": now_ms()})),
            _ => Ok(()),
        }
    }

    fn submit(&mut self) -> io::Result<()> {
        if self.control.swallow_enters > 0 {
            self.control.swallow_enters -= 1;
            return Ok(());
        }
        let text = self.composer.take_text();
        if text.is_empty() {
            return Ok(());
        }
        self.note(&json!({"text": text, "at_ms": now_ms(), "shell": text.starts_with('!')}))?;
        let due = Instant::now() + Duration::from_millis(self.control.transcript_delay_ms);
        self.untold.push_back((due, text.clone(), self.control.status));
        self.tell()?;
        self.submitted.push(text);
        if let Some(draft) = self.stash.take() {
            self.composer = draft;
        }
        Ok(())
    }

    /// Writes the submissions that are due into the transcript.
    fn tell(&mut self) -> io::Result<()> {
        while let Some((_, text, status)) = self.untold.pop_front_if(|(due, ..)| *due <= Instant::now()) {
            self.publication.as_ref().map_or(Ok(()), |publication| publication.transcribe(&text, status))?;
        }
        Ok(())
    }

    /// Puts the draft aside, over one that was there before; on an empty composer brings it back.
    fn stash_or_restore(&mut self) {
        if self.composer.is_empty() {
            self.composer = self.stash.take().unwrap_or_default();
        } else {
            self.stash = Some(std::mem::take(&mut self.composer));
        }
    }

    fn note(&self, record: &Value) -> io::Result<()> {
        append_line(&self.dir.join("submitted.jsonl"), record)
    }

    fn publish(&self) -> io::Result<()> {
        let Some(publication) = &self.publication else { return Ok(()) };
        publication.publish(self.control.status, self.control.session_file)
    }

    /// Draws the screen.
    fn show(&self) -> io::Result<()> {
        let (columns, rows) = self.terminal.size();
        let lines = match self.control.status {
            Status::Waiting => dialog_lines(),
            Status::Idle | Status::Busy => self.prompt_lines(columns, rows),
        };
        self.terminal.draw(&lines, self.control.bracketed)
    }

    fn prompt_lines(&self, columns: usize, rows: usize) -> Vec<String> {
        let rule = "─".repeat(columns);
        let shown = self.composer.shown();
        let (mark, shown) = shown.strip_prefix('!').map_or(("❯", shown.as_str()), |command| ("!", command));
        let mut box_lines: VecDeque<&str> = shown.split('\n').collect();
        let hidden = (box_lines.len() + 12).saturating_sub(rows.max(14));
        box_lines.drain(..hidden);
        let recent = self.submitted.iter().rev().take(3).rev();
        let mut lines: Vec<String> = recent.flat_map(|text| collapsed(text)).collect();
        // A text that is longer than the box hides its beginning, the prompt sign with it, and says so in the rule.
        lines.push(if hidden == 0 {
            rule.clone()
        } else {
            format!("─── ↑ {hidden} more ───────────")
        });
        for (number, line) in box_lines.iter().enumerate() {
            lines.push(if number == 0 && hidden == 0 { format!("{mark} {line}") } else { format!("  {line}") });
        }
        lines.push(rule);
        lines.push(self.status_line().to_owned());
        lines
    }

    fn status_line(&self) -> &'static str {
        match (self.control.status, &self.stash) {
            (Status::Busy, None) => "  esc to interrupt",
            (Status::Busy, Some(_)) => "  esc to interrupt · draft stashed",
            (_, Some(_)) => "  ? for shortcuts · draft stashed",
            (_, None) => "  ? for shortcuts",
        }
    }
}

/// A submitted text above the prompt: its first and last line.
fn collapsed(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    match lines.as_slice() {
        [] => Vec::new(),
        [only] => vec![format!("> {only}")],
        [first, between @ .., last] => {
            vec![format!("> {first}"), format!("  ({} lines hidden)", between.len()), format!("  {last}")]
        }
    }
}

fn dialog_lines() -> Vec<String> {
    let lines =
        [" Bash command", "", "   touch the-thing", "", " Do you want to proceed?", " ❯ 1. Yes", "   2. No (esc)"];
    lines.map(str::to_owned).to_vec()
}
