//! What a pane shows, read as an agent's prompt box.
//!
//! Owns the reading of `capture-pane -e`: which characters stand there, which of them a person typed (ghost text is dim),
//! and where Claude's prompt box is. Pure. It must not know how the screen was captured.

/// One screen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Screen {
    lines: Vec<Line>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Line {
    plain: String,
    typed: String,
}

/// The prompt box of Claude Code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PromptBox {
    /// It begins with `!`: what is submitted goes to bash.
    pub(super) shell: bool,
    /// Its beginning is out of sight.
    pub(super) scrolled: bool,
    /// What was typed or pasted into it, without ghost text; empty when nothing was.
    pub(super) typed: String,
}

impl Screen {
    /// Reads the output of `capture-pane -p -e`.
    pub(super) fn parse(captured: &str) -> Self {
        let mut pen = Pen::default();
        Self { lines: captured.lines().map(|line| pen.line(line)).collect() }
    }

    /// The region between the last two horizontal rules, when it opens with a prompt sign (agents-in-tmux 5). Nothing of
    /// the kind: a dialog or another view is open. A long text scrolls: its first line is hidden then, and the upper rule
    /// says `↑ 3 more` (measured with 2.1.332).
    pub(super) fn prompt_box(&self) -> Option<PromptBox> {
        let last = self.lines.iter().rposition(Line::is_rule)?;
        let first = self.lines.get(..last)?.iter().rposition(Line::is_rule)?;
        let (opening, rest) = self.lines.get(first + 1..last)?.split_first()?;
        let scrolled = self.lines.get(first)?.plain.contains('↑');
        let (shell, signs) = match opening.plain.chars().next() {
            _ if scrolled => (false, 0),
            Some('❯') => (false, 1),
            Some('!') => (true, 1),
            _ => return None,
        };
        let mut typed: String = opening.typed.chars().skip(signs).collect();
        for line in rest {
            typed.push('\n');
            typed.push_str(&line.typed);
        }
        Some(PromptBox { shell, scrolled, typed: typed.replace('\u{a0}', " ").trim().to_owned() })
    }

    /// Whether the screen shows these words on one line.
    pub(super) fn shows(&self, words: &str) -> bool {
        self.lines.iter().any(|line| line.plain.contains(words))
    }

    /// Whether one of the last lines that are not empty shows these words: history above the composer does not count.
    pub(super) fn shows_at_the_bottom(&self, words: &str) -> bool {
        let written = self.lines.iter().rev().filter(|line| !line.plain.trim().is_empty());
        written.take(BOTTOM).any(|line| line.plain.contains(words))
    }

    /// All characters but blanks, in reading order: found so, words survive the wrapping of a narrow pane.
    pub(super) fn squeezed(&self) -> String {
        self.lines.iter().map(|line| squeeze(&line.plain)).collect()
    }
}

impl Line {
    fn is_rule(&self) -> bool {
        self.plain.starts_with("───") && self.plain.matches('─').count() >= 8
    }
}

/// A text without its blanks.
pub(super) fn squeeze(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// A composer with its frame and status lines fits into this many lines.
const BOTTOM: usize = 10;

/// The part of the graphic rendition that tells ghost text from typed text; it runs on from line to line.
#[derive(Debug, Default, Clone, Copy)]
struct Pen {
    dim: bool,
    reverse: bool,
}

impl Pen {
    fn line(&mut self, raw: &str) -> Line {
        let mut cells: Vec<(char, Self)> = Vec::new();
        let mut rest = raw.chars();
        while let Some(c) = rest.next() {
            match c {
                '\u{1b}' => self.escape(&mut rest),
                c if c.is_control() => {}
                c => cells.push((c, *self)),
            }
        }
        let plain = cells.iter().map(|(c, _)| *c).collect();
        let after = cells.iter().skip(1).map(|(_, pen)| pen.dim).chain([false]);
        let typed = cells.iter().zip(after).filter(|((_, pen), before_ghost)| !pen.is_ghost(*before_ghost));
        Line { plain, typed: typed.map(|((c, _), _)| *c).collect() }
    }

    /// Ghost text is dim; the cursor stands on its first character, in reverse video and not dim itself.
    fn is_ghost(self, before_ghost: bool) -> bool {
        self.dim || (self.reverse && before_ghost)
    }

    fn escape(&mut self, rest: &mut std::str::Chars<'_>) {
        match rest.next() {
            Some('[') => self.control(rest),
            Some(']') => skip_string(rest),
            Some('(' | ')') => drop(rest.next()),
            _ => {}
        }
    }

    fn control(&mut self, rest: &mut std::str::Chars<'_>) {
        let mut parameters = String::new();
        for c in rest {
            if ('@'..='~').contains(&c) {
                if c == 'm' {
                    self.rendition(&parameters);
                }
                return;
            }
            parameters.push(c);
        }
    }

    fn rendition(&mut self, parameters: &str) {
        let mut codes = parameters.split(';');
        while let Some(code) = codes.next() {
            match code {
                "" | "0" => *self = Self::default(),
                "2" => self.dim = true,
                "7" => self.reverse = true,
                "22" => self.dim = false,
                "27" => self.reverse = false,
                // A colour's own numbers are no renditions: 38;5;N and 38;2;R;G;B.
                "38" | "48" | "58" => match codes.next() {
                    Some("5") => drop(codes.next()),
                    Some("2") => drop(codes.nth(2)),
                    _ => {}
                },
                _ => {}
            }
        }
    }
}

/// Passes over an operating system command (a hyperlink) up to its terminator.
fn skip_string(rest: &mut std::str::Chars<'_>) {
    while let Some(c) = rest.next() {
        match c {
            '\u{7}' => return,
            '\u{1b}' => {
                rest.next();
                return;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: &str = "────────────────────";

    fn check(body: &str, expected: Option<(bool, &str)>) {
        let screen = Screen::parse(&format!("● hello\n{RULE}\n{body}\n\u{1b}[2m{RULE}\u{1b}[0m\n  ? for shortcuts\n"));
        let expected = expected.map(|(shell, typed)| PromptBox { shell, scrolled: false, typed: typed.to_owned() });
        assert_eq!(screen.prompt_box(), expected, "{body:?}");
    }

    #[test]
    fn the_prompt_box_is_read_without_its_ghost_text() {
        check("❯\u{a0}", Some((false, "")));
        check("❯\u{a0}\u{1b}[7m \u{1b}[0m", Some((false, "")));
        check("❯\u{a0}\u{1b}[7mT\u{1b}[0;2mry \"fix the bug\"\u{1b}[0m", Some((false, "")));
        check("❯ half a line", Some((false, "half a line")));
        check("❯ /mo\u{1b}[7md\u{1b}[0;2mel\u{1b}[0m", Some((false, "/mo")));
        check("❯ first\n  second", Some((false, "first\n  second")));
        check("❯ \u{1b}[38;5;2mgreen\u{1b}[0m \u{1b}[38;2;2;2;2mdark\u{1b}[39m", Some((false, "green dark")));
        check("❯ \u{1b}]8;;https://x\u{1b}\\link\u{1b}]8;;\u{1b}\\", Some((false, "link")));
        check("! ls", Some((true, "ls")));
        check("!\u{a0}", Some((true, "")));
    }

    #[test]
    fn a_long_text_scrolls_its_prompt_sign_away() {
        let upper = "\u{1b}[38;5;244m───\u{1b}[39m \u{1b}[2m↑ 1 more\u{1b}[0m ──────────────";
        let screen = Screen::parse(&format!("{RULE}\n❯ old\n{upper}\n  second\n  third\u{1b}[7m \u{1b}[0m\n{RULE}\n"));
        let expected = PromptBox { shell: false, scrolled: true, typed: "second\n  third".to_owned() };
        assert_eq!(screen.prompt_box(), Some(expected));
    }

    #[test]
    fn another_view_is_no_prompt_box() {
        check(" Do you want to proceed?", None);
        check("", None);
        assert_eq!(Screen::parse("nothing\nhere").prompt_box(), None);
        assert_eq!(Screen::parse(&format!("{RULE}\n❯ \n")).prompt_box(), None);
        assert_eq!(Screen::parse("").prompt_box(), None);
    }

    #[test]
    fn words_are_found_across_the_wrapping_of_a_narrow_pane() {
        let screen = Screen::parse("[usher 7f3a\n9c2e end]\n");
        assert!(screen.squeezed().contains(&squeeze("[usher 7f3a9c2e end]")));
        assert!(!screen.shows("[usher 7f3a9c2e end]"));
    }

    #[test]
    fn history_is_not_the_bottom() {
        let screen = Screen::parse(&format!("Ask Codex\n{}", "line\n".repeat(BOTTOM)));
        assert!(screen.shows("Ask Codex"));
        assert!(!screen.shows_at_the_bottom("Ask Codex"));
    }

    proptest::proptest! {
        #[test]
        fn any_screen_is_read_without_a_panic(raw in ".{0,200}", escape in "\u{1b}[\\[\\](][0-9;]{0,6}[a-zA-Z\u{7}]?") {
            let _ = Screen::parse(&format!("{raw}{escape}{raw}\n{RULE}\n❯{escape}")).prompt_box();
        }
    }
}
