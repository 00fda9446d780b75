//! How the demo speaks: numbered scenes, quoted screens, and a check mark for what was seen to be true.

use std::io::IsTerminal as _;
use std::time::Instant;

/// The widest quoted line, in characters.
const WIDTH: usize = 108;

/// Standard output, with colours where somebody looks.
pub(crate) struct Stage {
    pub(crate) in_colour: bool,
    scenes: usize,
    proven: usize,
    opened: Instant,
}

impl Stage {
    /// The curtain rises.
    pub(crate) fn open(title: &str) -> Self {
        let in_colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|it| it.is_empty());
        let stage = Self { in_colour, scenes: 0, proven: 0, opened: Instant::now() };
        println!("\n{}", stage.painted("1", title));
        stage
    }

    /// The next scene.
    pub(crate) fn scene(&mut self, title: &str) {
        self.scenes += 1;
        let title = format!("{}. {title}", self.scenes);
        println!("\n{}", self.painted("1;36", &title));
    }

    /// A sentence of the story.
    pub(crate) fn tell(&self, words: &str) {
        println!("   {words}");
    }

    /// What stands somewhere else: a screen, a comment, a file.
    pub(crate) fn quote(&self, text: &str) {
        for line in text.lines().flat_map(wrapped) {
            println!("   {} {line}", self.painted("2", "│"));
        }
    }

    /// Something that was looked at and is so. What is not so ends the demo.
    pub(crate) fn prove(&mut self, what: &str, holds: bool) {
        assert!(holds, "this should hold and does not: {what}");
        self.proven += 1;
        println!("   {} {what}", self.painted("32", "✓"));
    }

    /// The curtain falls.
    pub(crate) fn close(self) {
        let end = format!("All {} things were so, in {:.1} s.", self.proven, self.opened.elapsed().as_secs_f32());
        println!("\n{}\n", self.painted("1;32", &end));
    }

    fn painted(&self, colour: &str, text: &str) -> String {
        if self.in_colour { format!("\x1b[{colour}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// A line in pieces that fit, cut at spaces where there are any; a picture, one escape after the other, in one piece.
fn wrapped(line: &str) -> Vec<String> {
    if line.starts_with('\x1b') {
        return vec![line.to_owned()];
    }
    let mut pieces = vec![String::new()];
    for word in line.split_inclusive(' ') {
        let mut letters = word.chars().peekable();
        while letters.peek().is_some() {
            let (filled, length) = (pieces.last().map_or(0, |it| it.chars().count()), letters.clone().count());
            if filled > 0 && filled + length > WIDTH {
                pieces.push(String::new());
            }
            let piece: String = letters.by_ref().take(WIDTH).collect();
            pieces.last_mut().into_iter().for_each(|last| last.push_str(&piece));
        }
    }
    pieces
}
