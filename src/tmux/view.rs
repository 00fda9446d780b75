//! One look at a pane: what tmux says about it and what it shows, in one call.
//!
//! Owns the format line and its reading. It must not know what is allowed in which state (`guard`).

use std::path::Path;
use std::time::Duration;

use super::command::{Trouble, call};
use super::screen::Screen;
use crate::core::session::PaneId;

/// What tmux knows about a pane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct View {
    /// The server's process.
    pub(super) server_pid: u32,
    /// When the server started, in seconds since 1970.
    pub(super) server_started: i64,
    /// The process has exited, the pane stays.
    pub(super) dead: bool,
    /// Copy mode or another mode is open.
    pub(super) in_mode: bool,
    /// What is typed is dropped.
    pub(super) input_off: bool,
    /// Keys go to all panes of the window.
    pub(super) synchronised: bool,
    /// The pane's first process.
    pub(super) pane_pid: u32,
    /// The pane's terminal.
    pub(super) tty: String,
    /// The foreground program's name.
    pub(super) command: String,
    /// The pane's title.
    pub(super) title: String,
    /// What the pane shows, without any tmux mode.
    pub(super) screen: Screen,
}

/// The words of programs stand on lines of their own, so that none of them can pass for another field.
const FORMAT: &str = "#{pid} #{start_time} #{pane_id} #{pane_dead} #{?pane_in_mode,1,0} #{pane_input_off} \
                      #{synchronize-panes} #{pane_pid} #{pane_tty}\n#{pane_current_command}\n#{pane_title}";

/// Looks at a pane. tmux answers for a pane that is not there with empty fields and rc 0: `NoPane` then.
pub(super) async fn look(socket: &Path, pane: &PaneId, limit: Duration) -> Result<View, Trouble> {
    let target = pane.to_string();
    let arguments = ["display-message", "-p", "-t", &target, FORMAT, ";", "capture-pane", "-p", "-e", "-t", &target];
    let answer = call(socket, &arguments, None, limit).await?;
    parse(&answer, &target)
}

fn parse(answer: &str, target: &str) -> Result<View, Trouble> {
    let mut parts = answer.splitn(4, '\n');
    let [facts, command, title, screen] = std::array::from_fn(|_| parts.next().unwrap_or_default());
    let fields: Vec<&str> = facts.split(' ').collect();
    let [pid, started, pane, dead, in_mode, input_off, synchronised, pane_pid, tty] = fields.as_slice() else {
        return Err(unreadable());
    };
    if *pane != target {
        return Err(Trouble::NoPane);
    }
    Ok(View {
        server_pid: pid.parse().map_err(|_| unreadable())?,
        server_started: started.parse().map_err(|_| unreadable())?,
        dead: is_on(dead),
        in_mode: is_on(in_mode),
        input_off: is_on(input_off),
        synchronised: is_on(synchronised),
        pane_pid: pane_pid.parse().map_err(|_| unreadable())?,
        tty: (*tty).to_owned(),
        command: command.to_owned(),
        title: title.to_owned(),
        screen: Screen::parse(screen),
    })
}

fn unreadable() -> Trouble {
    Trouble::Refused("its description of the pane cannot be read".to_owned())
}

fn is_on(flag: &str) -> bool {
    matches!(flag, "1" | "on")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_is_read() {
        let view = parse("16423 1796135315 %0 0 1 0 on 16424 /dev/pts/0\nmy agent\ntitle 1 0\n$ x\n", "%0").unwrap();
        assert_eq!((view.server_pid, view.server_started, view.pane_pid), (16423, 1_796_135_315, 16424));
        assert_eq!((view.dead, view.in_mode, view.input_off, view.synchronised), (false, true, false, true));
        assert_eq!(
            (view.tty.as_str(), view.command.as_str(), view.title.as_str()),
            ("/dev/pts/0", "my agent", "title 1 0")
        );
        assert!(view.screen.shows("$ x"));
    }

    #[test]
    fn a_pane_that_is_not_there_is_told_from_damage() {
        assert_eq!(parse("1 2  0 0 0 0", "%9"), Err(unreadable()));
        assert_eq!(parse("1 2   0    \n\n\n", "%9"), Err(Trouble::NoPane));
        assert_eq!(parse("1 2 %8 0 0 0 0 7 /dev/pts/1\nsh\n\n", "%9"), Err(Trouble::NoPane));
        assert_eq!(parse("", "%9"), Err(unreadable()));
    }
}
