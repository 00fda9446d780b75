//! A real tmux server of its own, on a socket in the world's directory, and gone with the world.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A private tmux server. It starts with its first pane.
pub struct Tmux {
    socket: PathBuf,
    home: PathBuf,
}

impl Tmux {
    pub fn new(dir: &Path, home: &Path) -> Self {
        Self { socket: dir.join("tmux.sock"), home: home.to_owned() }
    }

    /// The socket, for `[pane] socket` and `--socket`.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Starts a program, given word by word, in a window of its own. The pane's id, such as `%3`.
    pub fn new_pane(&self, command: &[&str]) -> String {
        let opening: &[&str] = if self.output(&["has-session", "-t", "=s:"]).status.success() {
            &["new-window", "-d", "-t", "=s:"]
        } else {
            &["new-session", "-d", "-s", "s", "-x", "160", "-y", "50"]
        };
        self.run(&[opening, &["-P", "-F", "#{pane_id}"], command].concat())
    }

    /// What the pane shows.
    pub fn capture(&self, pane: &str) -> String {
        self.run(&["capture-pane", "-p", "-t", pane])
    }

    /// Runs a tmux command that must succeed. What it prints, without the last line end.
    pub fn run(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        assert!(output.status.success(), "tmux {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim_end_matches('\n').to_owned()
    }

    /// Runs a tmux command that may fail.
    pub fn output(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new("tmux");
        command.arg("-u").arg("-S").arg(&self.socket).args(["-f", "/dev/null"]).args(arguments);
        command.env_clear().env("HOME", &self.home).env("LANG", "C.UTF-8").env("SHELL", "/bin/sh");
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("TERM", "xterm-256color");
        command.output().expect("tmux is installed")
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        self.output(&["kill-server"]);
    }
}
