//! The stand-in for a coding agent in a pane: `examples/recorder`, and what it recorded.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::eventually::eventually;
use super::tmux::Tmux;

/// A pane with the recorder in it.
pub struct Agent {
    /// The pane's id, such as `%3`.
    pub pane: String,
    dir: PathBuf,
}

impl Agent {
    /// Starts the recorder as the program `name` (`claude`: it publishes its state and transcript as Claude Code does)
    /// and waits until it reads.
    pub fn start(tmux: &Tmux, world_dir: &Path, name: &str) -> Self {
        let number = (1..).find(|number| !world_dir.join(format!("agent-{number}")).exists()).expect("a free number");
        let dir = world_dir.join(format!("agent-{number}"));
        std::fs::create_dir(&dir).expect("a directory for the recorder");
        let program = dir.join(name);
        symlink(recorder_path(), &program).expect("a name for the recorder");
        let words = [program.to_str().expect("a UTF-8 path"), dir.to_str().expect("a UTF-8 path")];
        let agent = Self { pane: tmux.new_pane(&words), dir };
        eventually("the recorder draws its prompt", || tmux.capture(&agent.pane).contains('❯'));
        agent
    }

    /// Changes how the recorder behaves, and waits until it does: see `examples/recorder/control.rs`.
    pub fn control(&self, settings: &Value) {
        let text = settings.to_string();
        let (draft, control) = (self.dir.join("control.json.new"), self.dir.join("control.json"));
        std::fs::write(&draft, &text).expect("the settings are written");
        std::fs::rename(&draft, &control).expect("the settings are put in place");
        eventually("the recorder obeys", || self.read("obeyed.json") == text.as_bytes());
    }

    /// Every byte that came through the terminal.
    pub fn raw(&self) -> Vec<u8> {
        self.read("raw")
    }

    /// The texts that were submitted, in order.
    pub fn submitted(&self) -> Vec<String> {
        self.records().iter().filter_map(|record| record["text"].as_str().map(str::to_owned)).collect()
    }

    /// How many dialogs an Enter has approved.
    pub fn approvals(&self) -> usize {
        self.records().iter().filter(|record| record["approved"] == true).count()
    }

    /// Everything that the recorder noted down, in order.
    pub fn records(&self) -> Vec<Value> {
        let lines = String::from_utf8(self.read("submitted.jsonl")).expect("the recorder writes UTF-8");
        lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    fn read(&self, file: &str) -> Vec<u8> {
        std::fs::read(self.dir.join(file)).unwrap_or_default()
    }
}

/// The recorder, which Cargo builds beside the tests, benches and examples of this package.
pub fn recorder_path() -> PathBuf {
    let this = std::env::current_exe().expect("a running program has a path");
    let found = this.ancestors().map(|dir| dir.join("examples/recorder")).find(|path| path.is_file());
    found.expect("examples/recorder is built: `cargo build --examples`")
}
