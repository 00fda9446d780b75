//! The paste: a person's half-typed line put away, our text in the composer, and the proof that it is there.
//!
//! Owns the buffer, the conditions that tmux itself checks in the moment of the paste, and the recognition of our text on
//! the screen. It must not know how it is submitted.

use std::time::{Duration, Instant};

use super::Tmux;
use super::command::{Trouble, call};
use super::guard::{Clear, Draft, Ground, draft};
use super::hold::Hold;
use super::profile::{Composer, Profile, Stash};
use super::screen::{PromptBox, Screen, squeeze};
use super::view;
use crate::core::pane_text::PaneText;

/// What tmux prints instead of pasting when the pane is no longer as the guard saw it.
const REFUSED: &str = "usher-refused";

/// How long a put-away line takes to leave the composer at most.
const STASH_WAIT: Duration = Duration::from_millis(1200);

/// Our text stands in the composer, not submitted: only the paste makes it, only the submit takes it.
#[derive(Debug)]
pub struct Pasted {
    pub(super) ground: Box<Ground>,
    pub(super) trace: Trace,
    pub(super) screen: Screen,
}

/// How a paste ended.
#[derive(Debug)]
pub enum Paste {
    /// The text is in the composer.
    Seen(Pasted),
    /// Nothing was pasted: try again when the cause is gone.
    NotPasted(Hold),
    /// Something was pasted, or may have been, and is not seen: nothing is submitted, and it is never pasted again by
    /// itself. The reason, for a person.
    Unseen(&'static str),
}

/// What our text leaves on a screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Trace {
    /// The message's nonce.
    pub(super) nonce: String,
    /// The frame's first words and its end line, without blanks.
    marks: [String; 2],
    /// The line feeds of the last piece, as placeholders count them.
    line_feeds: usize,
}

impl Trace {
    pub(super) fn new(nonce: &str, line_feeds: usize) -> Self {
        let marks = [squeeze(&format!("[usher {nonce}]")), squeeze(&format!("[usher {nonce} end]"))];
        Self { nonce: nonce.to_owned(), marks, line_feeds }
    }

    /// Whether our text stands in the composer. `before`: the screen before the paste, whose placeholders are not ours.
    pub(super) fn is_shown(&self, screen: &Screen, before: &Screen, profile: &Profile) -> bool {
        if profile.composer == Some(Composer::ClaudeBox) {
            let typed = screen.prompt_box().filter(|prompt| !prompt.shell).map(|prompt| squeeze(&prompt.typed));
            return typed.is_some_and(|typed| self.is_whole(&typed, profile));
        }
        let shown = screen.squeezed();
        let count = |text: &str| profile.placeholder.as_ref().map_or(0, |words| text.matches(&squeeze(words)).count());
        self.marks.iter().any(|mark| shown.contains(mark)) || count(&shown) > count(&before.squeezed())
    }

    /// Whether nothing but our text stands in the prompt box, as far as it is in sight.
    pub(super) fn is_alone(&self, prompt: &PromptBox, profile: &Profile) -> bool {
        let typed = squeeze(&prompt.typed);
        let [opening, _] = &self.marks;
        let placeholder = profile.placeholder.as_ref().map(|words| squeeze(words));
        let begins = typed.starts_with(opening) || placeholder.is_some_and(|words| typed.starts_with(&words));
        // Both the end line and a placeholder end so.
        (prompt.scrolled || begins) && typed.ends_with(']')
    }

    /// The end line, or a placeholder that counts our lines: the whole text is there, not only its head.
    fn is_whole(&self, typed: &str, profile: &Profile) -> bool {
        let [_, end] = &self.marks;
        let counted = match self.line_feeds {
            0 => String::new(),
            lines => squeeze(&format!("+{lines} lines]")),
        };
        let placeholder = profile.placeholder.as_ref().map(|words| squeeze(words));
        typed.contains(end) || placeholder.is_some_and(|words| typed.contains(&words) && typed.contains(&counted))
    }
}

/// The line feeds of a text's last piece: what `after_crash` needs to recognise a placeholder as ours.
pub fn line_feeds(text: &PaneText) -> usize {
    text.pieces().last().map_or(0, |piece| piece.matches('\n').count())
}

/// How one guarded command ended.
enum Done {
    Ran,
    Refused,
}

impl Tmux {
    /// Puts the text into the composer and waits until it is seen there.
    pub async fn paste(&self, clear: Clear, text: &PaneText) -> Paste {
        let Clear { ground, draft, screen } = clear;
        if draft == Draft::Stashable
            && let Err(hold) = self.stash(&ground).await
        {
            return Paste::NotPasted(hold);
        }
        for (number, piece) in text.pieces().iter().enumerate() {
            let buffer = format!("usher-{}-{number}", text.nonce());
            match self.paste_piece(&ground, &buffer, piece).await {
                Ok(Done::Ran) => {}
                Ok(Done::Refused) if number == 0 => return Paste::NotPasted(self.cause(&ground).await),
                Ok(Done::Refused) => return Paste::Unseen("the pane changed while the text was being pasted"),
                Err(trouble) => return self.after_failure(&ground, &buffer, number, trouble).await,
            }
        }
        self.see(ground, Trace::new(text.nonce().as_str(), line_feeds(text)), screen).await
    }

    async fn paste_piece(&self, ground: &Ground, buffer: &str, piece: &str) -> Result<Done, Trouble> {
        let target = ground.session.pane.to_string();
        let changed = changed(ground);
        let refuse = format!("display-message -p {REFUSED} ; delete-buffer -b {buffer}");
        let paste = format!("paste-buffer -p -d -b {buffer} -t {target}");
        let arguments =
            ["load-buffer", "-b", buffer, "-", ";", "if-shell", "-F", "-t", &target, &changed, &refuse, &paste];
        let answer = call(&ground.session.socket, &arguments, Some(piece.as_bytes()), self.settings.timeout).await?;
        Ok(done(&answer))
    }

    async fn after_failure(&self, ground: &Ground, buffer: &str, number: usize, trouble: Trouble) -> Paste {
        let delete = ["delete-buffer", "-b", buffer];
        // Most failures leave no buffer: that there is none to delete is fine.
        drop(call(&ground.session.socket, &delete, None, self.settings.timeout).await);
        match trouble {
            Trouble::Timeout(_) => Paste::Unseen("tmux did not answer while the text was being pasted"),
            _ if number > 0 => Paste::Unseen("tmux refused while the text was being pasted"),
            trouble => Paste::NotPasted(trouble.into()),
        }
    }

    async fn see(&self, ground: Box<Ground>, trace: Trace, before: Screen) -> Paste {
        let deadline = Instant::now() + self.settings.see;
        for pause in pauses() {
            let seen = view::look(&ground.session.socket, &ground.session.pane, self.settings.timeout).await;
            match seen {
                Ok(view) if trace.is_shown(&view.screen, &before, &ground.profile) => {
                    tokio::time::sleep(ground.profile.settle()).await;
                    return Paste::Seen(Pasted { ground, trace, screen: view.screen });
                }
                _ if Instant::now() >= deadline => break,
                _ => tokio::time::sleep(pause).await,
            }
        }
        Paste::Unseen("the text was pasted but does not show in the pane")
    }

    /// Puts a person's half-typed line away; the agent brings it back after the next submit.
    async fn stash(&self, ground: &Ground) -> Result<(), Hold> {
        let Some(Stash { keys, .. }) = &ground.profile.stash else { return Err(Hold::Typing) };
        self.press_guarded(ground, keys).await?;
        let deadline = Instant::now() + STASH_WAIT;
        for pause in pauses() {
            let view = view::look(&ground.session.socket, &ground.session.pane, self.settings.timeout).await?;
            let prompt = view.screen.prompt_box();
            if prompt.is_some_and(|prompt| !prompt.shell && prompt.typed.is_empty()) {
                return Ok(());
            }
            if Instant::now() >= deadline {
                break;
            }
            tokio::time::sleep(pause).await;
        }
        Err(Hold::Typing)
    }

    /// Presses keys in one call, unless the pane is no longer as the guard saw it.
    pub(super) async fn press_guarded(&self, ground: &Ground, keys: &[String]) -> Result<(), Hold> {
        let target = ground.session.pane.to_string();
        let changed = changed(ground);
        let refuse = format!("display-message -p {REFUSED}");
        let press = format!("send-keys -t {target} {}", keys.join(" "));
        let arguments = ["if-shell", "-F", "-t", &target, &changed, &refuse, &press];
        let answer = call(&ground.session.socket, &arguments, None, self.settings.timeout).await?;
        match done(&answer) {
            Done::Ran => Ok(()),
            Done::Refused => Err(self.cause(ground).await),
        }
    }

    /// Why tmux refused, found by a second look.
    async fn cause(&self, ground: &Ground) -> Hold {
        let Ground { session, profile, .. } = ground;
        let facts = match self.examine(session, profile).await {
            Ok(facts) => facts,
            Err(hold) => return hold,
        };
        let judged = super::guard::judge(&facts, session, profile, &self.settings.profiles);
        judged.and_then(|()| draft(&facts.view.screen, profile)).err().unwrap_or(Hold::Changed)
    }
}

/// The waits between two looks at a screen or a file: soon at first, then 30 ms apart.
pub(super) fn pauses() -> impl Iterator<Item = Duration> {
    [2, 4, 8, 16].into_iter().chain(std::iter::repeat(30)).map(Duration::from_millis)
}

/// The tmux condition that is true when the pane is no longer as the guard saw it. tmux checks it in the same command as the
/// paste or the key, so nothing can come between: up to 3.3a a paste into a dead pane kills the server (field report M19),
/// in a mode the brackets are lost (agents-in-tmux fact 3), and a restarted server has other panes (M18).
fn changed(ground: &Ground) -> String {
    let session = &ground.session;
    let mut format = "#{pid} #{start_time} #{pane_id}".to_owned();
    let mut expected = format!("{} {} {}", session.server_pid, session.server_started, session.pane);
    if is_plain(&ground.command) {
        format.push_str(" #{pane_current_command}");
        expected = format!("{expected} {}", ground.command);
    }
    let flags = "#{||:#{pane_dead},#{||:#{pane_in_mode},#{||:#{pane_input_off},#{synchronize-panes}}}}";
    format!("#{{||:#{{!=:{format},{expected}}},{flags}}}")
}

/// Whether a program's name can stand in a tmux format as it is.
fn is_plain(command: &str) -> bool {
    !command.is_empty() && command.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._+-".contains(&byte))
}

fn done(answer: &str) -> Done {
    if answer.lines().any(|line| line == REFUSED) { Done::Refused } else { Done::Ran }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tmux::profile::Profiles;

    const RULE: &str = "────────────────────";

    fn check(agent: &str, line_feeds: usize, screen: &str, expected: bool) {
        let profiles = Profiles::built_in().unwrap();
        let before = Screen::parse("[Pasted Content 12 chars]\n");
        let trace = Trace::new("7f3a9c2e", line_feeds);
        let shown = trace.is_shown(&Screen::parse(screen), &before, profiles.get(agent).unwrap());
        assert_eq!(shown, expected, "{agent} {screen}");
    }

    #[test]
    fn claude_shows_our_text_by_its_end_line_or_a_placeholder_with_our_lines() {
        let check = |line_feeds: usize, body: &str, expected: bool| {
            check("claude", line_feeds, &format!("{RULE}\n{body}\n{RULE}\n"), expected);
        };
        check(2, "❯ [usher 7f3a9c2e] reply\n  hi\n  [usher 7f3a9c2e end]", true);
        check(2, "❯ [usher 7f3a9c2e] reply\n  hi", false);
        check(40, "❯ [Pasted text #1 +40 lines]", true);
        check(40, "❯ [Pasted text #1 +39 lines]", false);
        check(0, "❯ [Pasted text #2]", true);
        check(2, "! [usher 7f3a9c2e] reply\n  [usher 7f3a9c2e end]", false);
        check(2, "❯ [usher 00000000 end]", false);
        check(2, "  Search [usher 7f3a9c2e end]", false);
    }

    #[test]
    fn a_person_s_words_beside_ours_are_noticed() {
        let profiles = Profiles::built_in().unwrap();
        let check = |typed: &str, scrolled: bool, expected: bool| {
            let prompt = PromptBox { shell: false, scrolled, typed: typed.to_owned() };
            let alone = Trace::new("7f3a9c2e", 2).is_alone(&prompt, profiles.get("claude").unwrap());
            assert_eq!(alone, expected, "{typed}");
        };
        check("[usher 7f3a9c2e] reply\n  hi\n  [usher 7f3a9c2e end]", false, true);
        check("[Pasted text #1 +2 lines]", false, true);
        check("hi\n  [usher 7f3a9c2e end]", true, true);
        check("half a [usher 7f3a9c2e] reply\n  hi\n  [usher 7f3a9c2e end]", false, false);
        check("half a [Pasted text #1 +2 lines]", false, false);
        check("[Pasted text #1 +2 lines] and", false, false);
        check("hi\n  [usher 7f3a9c2e end] and", true, false);
    }

    #[test]
    fn others_show_it_by_our_frame_or_a_new_placeholder() {
        check("generic", 2, "[usher 7f3a9c2e] reply\n", true);
        check("generic", 2, "hi\n[usher 7f3a\n9c2e end]\n", true);
        check("generic", 2, "[usher 00000000] reply\n", false);
        check("codex", 2, "[Pasted Content 12 chars]\n", false);
        check("codex", 2, "[Pasted Content 12 chars]\n[Pasted Content 90 chars]\n", true);
    }

    #[test]
    fn only_plain_names_enter_a_tmux_format() {
        for (command, plain) in [("claude", true), ("python3.11", true), ("a,b", false), ("x}", false), ("", false)] {
            assert_eq!(is_plain(command), plain, "{command}");
        }
    }
}
