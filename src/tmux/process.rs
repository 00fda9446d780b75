//! What `/proc` tells about the processes of a pane.
//!
//! Owns the reading of `/proc/<pid>`. It must not know agents. Every answer is `None` when the process is gone or is
//! another user's.

use std::fs;

/// The part of `/proc/<pid>/stat` that is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stat {
    parent: u32,
    foreground: u32,
}

/// The leader of the process group that reads the terminal of this process.
pub(super) fn foreground(pid: u32) -> Option<u32> {
    stat(pid).map(|stat| stat.foreground).filter(|leader| *leader > 0)
}

/// Whether `pid` lives and is `root` or one of its descendants.
pub(super) fn is_below(pid: u32, root: u32) -> bool {
    // Deeper than any tree of shells and wrappers; a process that is reparented while this runs cannot make a cycle.
    const DEEPEST: usize = 64;
    let ancestry = std::iter::successors(Some(pid), |child| stat(*child).map(|stat| stat.parent));
    stat(pid).is_some() && ancestry.take(DEEPEST).take_while(|pid| *pid > 1).any(|pid| pid == root)
}

/// The arguments, the program's own name first.
pub(super) fn arguments(pid: u32) -> Option<Vec<String>> {
    let raw = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    Some(raw.split(|byte| *byte == 0).map(|argument| String::from_utf8_lossy(argument).into_owned()).collect())
}

/// The pid of the tmux server in whose pane this process was started, from its `TMUX` variable (`socket,pid,session`).
pub(super) fn tmux_server(pid: u32) -> Option<u32> {
    let raw = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let value = raw.split(|byte| *byte == 0).find_map(|variable| variable.strip_prefix(b"TMUX="))?;
    str::from_utf8(value).ok()?.rsplit(',').nth(1)?.parse().ok()
}

fn stat(pid: u32) -> Option<Stat> {
    parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The program's name stands in parentheses and may contain any of them: fields are counted from the last one.
fn parse_stat(text: &str) -> Option<Stat> {
    let mut fields = text.get(text.rfind(')')? + 1..)?.split_ascii_whitespace();
    let parent = fields.nth(1)?.parse().ok()?;
    // tpgid is -1 without a terminal.
    let foreground = fields.nth(3)?.parse().unwrap_or(0);
    Some(Stat { parent, foreground })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_cannot_forge_its_parent_by_its_name() {
        let line = "42 (evil) S 1 (x) S 7 42 42 34816 99 4194304 1 2";
        assert_eq!(parse_stat(line), Some(Stat { parent: 7, foreground: 99 }));
        assert_eq!(parse_stat("42 (x) S 7 42 42 0 -1 0"), Some(Stat { parent: 7, foreground: 0 }));
        for damaged in ["", "42", "42 (x) S", "42 (x) S y 1 1 1 1"] {
            assert_eq!(parse_stat(damaged), None, "{damaged}");
        }
    }

    #[test]
    fn ancestry_is_followed() {
        let own = std::process::id();
        assert!(is_below(own, own));
        assert!(is_below(own, std::os::unix::process::parent_id()));
        assert!(!is_below(std::os::unix::process::parent_id(), own));
        assert!(!is_below(u32::MAX, u32::MAX));
    }
}
