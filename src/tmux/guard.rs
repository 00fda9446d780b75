//! The guard: whether text and a key may go into a pane now.
//!
//! Owns the examination of a pane and the judgement. An Enter in an open permission dialog approves it in four of five
//! agents (agents-in-tmux fact 1), so this is a security boundary: what is not known to be safe is held. It must not know
//! what is to be typed.

use std::fs;
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::termios::{LocalModes, tcgetattr};

use super::Tmux;
use super::claude::{self, Seat, SessionFile};
use super::command::call;
use super::hold::Hold;
use super::lock::PaneLock;
use super::process;
use super::profile::{Composer, Profile, Profiles, State};
use super::screen::Screen;
use super::transcript::Transcript;
use super::view::{self, View};
use crate::core::session::Session;

/// How often a pane in a mode is looked at again.
const MODE_POLL: Duration = Duration::from_millis(100);

/// The pane may be written to: only the guard makes it, only the paste takes it.
#[derive(Debug)]
pub struct Clear {
    pub(super) ground: Box<Ground>,
    pub(super) draft: Draft,
    pub(super) screen: Screen,
}

/// The pane of one delivery, from the guard to the verdict.
#[derive(Debug)]
pub(super) struct Ground {
    pub(super) session: Session,
    pub(super) profile: Arc<Profile>,
    /// The foreground program that the guard saw.
    pub(super) command: String,
    tty: String,
    /// The agent's transcript, read up to the moment before the paste.
    pub(super) transcript: Option<Transcript>,
    /// Held for as long as this lives.
    _lock: PaneLock,
}

impl Ground {
    /// Whether the terminal is still in raw mode.
    pub(super) async fn is_raw(&self) -> bool {
        let tty = self.tty.clone();
        tokio::task::spawn_blocking(move || line_mode(&tty)).await.is_ok_and(|gathers| gathers == Some(false))
    }
}

/// What the composer holds before the paste.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Draft {
    /// Nothing, or the profile cannot tell.
    None,
    /// A person's text, which the profile's key puts away.
    Stashable,
}

/// Everything that the judgement is about.
#[derive(Debug, Clone)]
pub(super) struct Facts {
    pub(super) view: View,
    /// Whether the terminal gathers lines; `None`: it cannot be examined.
    pub(super) line_mode: Option<bool>,
    /// The foreground program's arguments, where `/proc` shows them.
    pub(super) arguments: Vec<String>,
    /// Claude's own word about its state.
    pub(super) state: Option<SessionFile>,
}

impl Tmux {
    /// Whether a delivery to this session may begin. Waits up to `mode_wait` for a person to leave copy mode, then leaves
    /// it for them.
    pub async fn guard(&self, session: &Session) -> Result<Clear, Hold> {
        let profile = self.profile(session)?;
        let lock = PaneLock::take(session).await?;
        let facts = self.stand(session, &profile).await?;
        let draft = draft(&facts.view.screen, &profile)?;
        let transcript = self.transcript(&profile, facts.state.as_ref());
        let View { command, tty, screen, .. } = facts.view;
        let ground = Ground { session: session.clone(), profile, command, tty, transcript, _lock: lock };
        Ok(Clear { ground: Box::new(ground), draft, screen })
    }

    /// Examines the pane until it is in no tmux mode, and judges all but its composer.
    pub(super) async fn stand(&self, session: &Session, profile: &Profile) -> Result<Facts, Hold> {
        let patience = Instant::now() + self.settings.mode_wait;
        let mut left = false;
        loop {
            let facts = self.examine(session, profile).await?;
            match judge(&facts, session, profile, &self.settings.profiles) {
                Err(Hold::InMode) if Instant::now() < patience => tokio::time::sleep(MODE_POLL).await,
                Err(Hold::InMode) if !left => {
                    self.leave_mode(session).await?;
                    left = true;
                }
                judgement => return judgement.map(|()| facts),
            }
        }
    }

    /// Looks at the pane, its terminal, its processes and the agent's state file.
    pub(super) async fn examine(&self, session: &Session, profile: &Profile) -> Result<Facts, Hold> {
        let view = view::look(&session.socket, &session.pane, self.settings.timeout).await?;
        let configuration = profile.state.map(|State::ClaudeSessions| self.settings.claude_folder());
        let pane = session.pane.to_string();
        let gathered = tokio::task::spawn_blocking(move || {
            let foreground = process::foreground(view.pane_pid);
            let seat = Seat { pane: &pane, pane_pid: view.pane_pid, foreground, server_pid: view.server_pid };
            let state = configuration.and_then(|folder| claude::find(&folder, &seat));
            let arguments = foreground.and_then(process::arguments).unwrap_or_default();
            Facts { line_mode: line_mode(&view.tty), arguments, state, view }
        });
        gathered.await.map_err(|_| Hold::TerminalUnreadable)
    }

    pub(super) fn profile(&self, session: &Session) -> Result<Arc<Profile>, Hold> {
        let profile = self.settings.profiles.get(&session.agent).cloned();
        profile.ok_or_else(|| Hold::NoProfile(session.agent.clone()))
    }

    fn transcript(&self, profile: &Profile, state: Option<&SessionFile>) -> Option<Transcript> {
        let state = state.filter(|_| profile.evidence.is_some())?;
        Some(Transcript::at_end(&self.settings.claude_folder(), &state.session_id))
    }

    async fn leave_mode(&self, session: &Session) -> Result<(), Hold> {
        let target = session.pane.to_string();
        call(&session.socket, &["copy-mode", "-q", "-t", &target], None, self.settings.timeout).await?;
        Ok(())
    }
}

/// Everything but the composer. The mode comes last: nobody is taken out of copy mode for a message that is held anyway.
pub(super) fn judge(facts: &Facts, session: &Session, profile: &Profile, profiles: &Profiles) -> Result<(), Hold> {
    judge_pane(&facts.view, session)?;
    judge_program(facts, profile, profiles)?;
    judge_dialogs(facts, profile)?;
    if facts.view.in_mode { Err(Hold::InMode) } else { Ok(()) }
}

fn judge_pane(view: &View, session: &Session) -> Result<(), Hold> {
    if (view.server_pid, view.server_started) != (session.server_pid, session.server_started) {
        return Err(Hold::Restarted);
    }
    if view.dead {
        return Err(Hold::Dead);
    }
    if view.input_off {
        return Err(Hold::InputOff);
    }
    if view.synchronised { Err(Hold::Synchronised) } else { Ok(()) }
}

fn judge_program(facts: &Facts, profile: &Profile, profiles: &Profiles) -> Result<(), Hold> {
    let command = &facts.view.command;
    if profiles.is_shell(command) {
        return Err(Hold::Shell(short(command)));
    }
    if profiles.forbids(command) || !profile.is_in_front(command, &facts.arguments) {
        return Err(Hold::OtherProgram(short(command)));
    }
    match facts.line_mode {
        Some(false) => Ok(()),
        Some(true) => Err(Hold::LineMode),
        None => Err(Hold::TerminalUnreadable),
    }
}

fn judge_dialogs(facts: &Facts, profile: &Profile) -> Result<(), Hold> {
    if profile.state.is_some() {
        let state = facts.state.as_ref().ok_or(Hold::NoState)?;
        if let Some(what) = state.waits_for() {
            return Err(Hold::Dialog(short(what)));
        }
    }
    let View { title, screen, .. } = &facts.view;
    let in_title = profile.dialog_titles.iter().find(|words| title.contains(words.as_str()));
    let dialog = in_title.or_else(|| profile.dialog_screens.iter().find(|words| screen.shows_at_the_bottom(words)));
    dialog.map_or(Ok(()), |words| Err(Hold::Dialog(words.to_lowercase())))
}

/// What another program calls itself or its state, fit for a sentence.
fn short(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(40).collect()
}

/// What the composer holds, judged before a paste.
pub(super) fn draft(screen: &Screen, profile: &Profile) -> Result<Draft, Hold> {
    if profile.composer == Some(Composer::ClaudeBox) {
        let prompt = screen.prompt_box().ok_or(Hold::NoPrompt)?;
        if !prompt.shell && prompt.typed.is_empty() {
            return Ok(Draft::None);
        }
        // A second stash would overwrite the first, and the person's text in it (agents-in-tmux fact 10).
        let free = profile.stash.as_ref().is_some_and(|stash| !screen.shows(&stash.taken));
        return if free { Ok(Draft::Stashable) } else { Err(Hold::Typing) };
    }
    match &profile.empty_composer {
        Some(ghost) if !screen.shows_at_the_bottom(ghost) => Err(Hold::Typing),
        _ => Ok(Draft::None),
    }
}

/// A terminal that gathers lines has no agent reading it: a stopped one, `cat`, a busy aider (agents-in-tmux 1).
fn line_mode(tty: &str) -> Option<bool> {
    let flags = (OFlags::NOCTTY | OFlags::NONBLOCK).bits();
    let terminal = fs::OpenOptions::new().read(true).custom_flags(flags.cast_signed()).open(tty).ok()?;
    tcgetattr(&terminal).ok().map(|modes| modes.local_modes.contains(LocalModes::ICANON))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    const RULE: &str = "────────────────────";

    fn session(agent: &str) -> Session {
        let pane = "%3".parse().unwrap();
        Session { socket: PathBuf::from("/s"), server_pid: 7, server_started: 70, pane, agent: agent.to_owned() }
    }

    fn facts(command: &str, status: &str, screen: &str) -> Facts {
        let view = View {
            server_pid: 7,
            server_started: 70,
            dead: false,
            in_mode: false,
            input_off: false,
            synchronised: false,
            pane_pid: 8,
            tty: "/dev/pts/0".to_owned(),
            command: command.to_owned(),
            title: String::new(),
            screen: Screen::parse(screen),
        };
        let state = serde_json::from_str(&format!(r#"{{"pid":9,"sessionId":"a","status":"{status}"}}"#)).ok();
        Facts { view, line_mode: Some(false), arguments: Vec::new(), state }
    }

    fn verdict(agent: &str, facts: &Facts) -> String {
        let profiles = Profiles::built_in().unwrap();
        let profile = profiles.get(agent).unwrap();
        let judged = judge(facts, &session(agent), profile, &profiles);
        match judged.and_then(|()| draft(&facts.view.screen, profile)) {
            Ok(draft) => format!("{draft:?}"),
            Err(hold) => hold.code().to_owned(),
        }
    }

    #[test]
    fn the_pane_is_judged() {
        let check = |change: fn(&mut Facts), expected: &str| {
            let mut facts = facts("recorder", "idle", "");
            change(&mut facts);
            assert_eq!(verdict("generic", &facts), expected);
        };
        check(|_| {}, "None");
        check(|facts| facts.view.server_pid = 6, "restarted");
        check(|facts| facts.view.server_started = 71, "restarted");
        check(|facts| facts.view.dead = true, "dead");
        check(|facts| facts.view.input_off = true, "input-off");
        check(|facts| facts.view.synchronised = true, "synchronised");
        check(|facts| facts.view.in_mode = true, "in-mode");
        check(|facts| facts.view.command = "-zsh".to_owned(), "shell");
        check(|facts| facts.view.command = "vim".to_owned(), "other-program");
        check(|facts| facts.line_mode = Some(true), "line-mode");
        check(|facts| facts.line_mode = None, "terminal-unreadable");
        check(|facts| (facts.view.in_mode, facts.line_mode) = (true, Some(true)), "line-mode");
    }

    #[test]
    fn claude_is_judged_by_its_state_and_its_prompt_box() {
        let check = |status: &str, body: &str, below: &str, expected: &str| {
            let screen = format!("{RULE}\n{body}\n{RULE}\n{below}\n");
            assert_eq!(verdict("claude", &facts("claude", status, &screen)), expected, "{status} {body} {below}");
        };
        check("idle", "❯ ", "", "None");
        check("busy", "❯ ", "", "None");
        check("waiting", "❯ 1. Yes", "", "dialog");
        check("idle", "  Search", "", "no-prompt");
        check("idle", "❯ half", "", "Stashable");
        check("idle", "! ls", "", "Stashable");
        check("idle", "❯ half", "  draft stashed", "typing");
        check("idle", "❯ ", "  draft stashed", "None");
        let mut absent = facts("claude", "idle", "");
        absent.state = None;
        assert_eq!(verdict("claude", &absent), "no-state");
        assert_eq!(verdict("claude", &facts("make", "idle", "")), "other-program");
    }

    #[test]
    fn other_agents_are_judged_by_title_and_screen() {
        let check = |agent: &str, title: &str, screen: &str, expected: &str| {
            let mut facts = facts(agent, "idle", screen);
            facts.view.title = title.to_owned();
            assert_eq!(verdict(agent, &facts), expected, "{agent} {title} {screen}");
        };
        check("codex", "work", "› Ask Codex to do anything", "None");
        check("codex", "[ ! ] Action Required | work", "› Ask Codex to do anything", "dialog");
        check("codex", "work", "Press enter to confirm or esc to cancel", "dialog");
        check("codex", "work", "› half a line", "typing");
        check("gemini", "✋ Action Required", "> Type your message", "dialog");
        check("gemini", "◇ Ready", "> Type your message", "None");
        check("opencode", "", "△ Permission required", "dialog");
        check("opencode", "", "> ", "None");
    }
}
