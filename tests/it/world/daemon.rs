//! The usher binary as a child process, in an environment that holds nothing but what it needs.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::eventually::eventually;

/// How to start the binary: which one, and in which environment.
#[derive(Debug, Clone)]
pub struct Launch {
    pub program: PathBuf,
    pub config: PathBuf,
    pub environment: BTreeMap<String, String>,
    /// Where the output of every process goes, a file for each.
    pub logs: PathBuf,
}

impl Launch {
    /// Starts `usher run`. Both its streams go to one file, so that their order is kept and nothing is lost at its end.
    pub fn daemon(&self) -> Daemon {
        let log = self.logs.join(format!("run-{}.log", self.log_count()));
        let file = append_to(&log);
        let mut command = self.command(&["run"]);
        command.stdout(file.try_clone().expect("a second handle")).stderr(file);
        Daemon { child: command.spawn().expect("the binary starts"), log }
    }

    /// Runs another verb to its end.
    pub fn cli(&self, arguments: &[&str]) -> Output {
        let output = self.command(arguments).output().expect("the binary starts");
        let log = self.logs.join(format!("cli-{}.log", self.log_count()));
        fs::write(log, [output.stdout.as_slice(), &output.stderr].concat()).expect("the output is kept");
        output
    }

    /// Every line that any of the processes has written.
    pub fn output(&self) -> Vec<String> {
        let logs = fs::read_dir(&self.logs).into_iter().flatten().flatten();
        logs.flat_map(|log| lines_of(&log.path())).collect()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.env_clear().envs(&self.environment).stdin(Stdio::null());
        command.args(arguments).arg("--config").arg(&self.config);
        command
    }

    fn log_count(&self) -> usize {
        fs::read_dir(&self.logs).into_iter().flatten().count()
    }
}

/// A running daemon; killed when dropped.
pub struct Daemon {
    child: Child,
    log: PathBuf,
}

impl Daemon {
    /// What this daemon has written so far, both streams in order.
    pub fn lines(&self) -> Vec<String> {
        lines_of(&self.log)
    }

    /// Waits for a line that contains this text, and gives it.
    #[track_caller]
    pub fn wait_line(&self, part: &str) -> String {
        eventually(&format!("a line with `{part}`"), || {
            let lines = self.lines();
            lines.iter().find(|line| line.contains(part)).cloned().ok_or(lines)
        })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The power goes off.
    pub fn kill9(mut self) {
        self.end();
    }

    /// Asks it to end, and waits until it has.
    #[track_caller]
    pub fn sigterm(self) -> ExitStatus {
        self.ask_to_end();
        self.wait_end()
    }

    /// Asks it to end.
    pub fn ask_to_end(&self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).expect("the daemon is running");
    }

    /// Waits until it has ended by itself.
    #[track_caller]
    pub fn wait_end(mut self) -> ExitStatus {
        eventually("the daemon ends", || self.ended().ok_or_else(|| self.lines()))
    }

    /// The exit status, when it has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("the daemon is our child")
    }

    fn end(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.end();
    }
}

fn append_to(path: &Path) -> File {
    OpenOptions::new().create(true).append(true).open(path).expect("a log file")
}

fn lines_of(path: &Path) -> Vec<String> {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).lines().map(str::to_owned).collect()
}
