//! A tmux server with one pane, and what runs in it.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::core::pane_text::PaneText;
use crate::core::session::Session;
use crate::tmux::{Clear, Paste, Pasted, Profiles, Settings, Tmux};

/// A raw terminal with bracketed paste that shows what it gets, writes it to a file, and answers a line feed.
pub(super) const RECORDER: &str =
    r"stty raw echo icrnl opost onlcr; printf '\033[?2004h'; exec sed -u -e 'w FILE' -e 's/^/took /'";

/// A raw terminal that writes every byte to a file at once and shows nothing.
pub(super) const SILENT: &str = r"stty raw -echo; printf '\033[?2004hready'; exec dd of=FILE bs=1 status=none";

/// The same under the name of an agent, inside that agent's prompt box.
pub(super) const CLAUDE: &str = r#"mkdir FILE.d; ln -s "$(command -v sed)" FILE.d/claude; stty raw echo -echoctl icrnl opost onlcr
    printf '\033[?2004h\033[2J\033[H────────────\n❯ \n\n\n\n\n\n\n────────────\n\033[2;3H'; exec FILE.d/claude -u -n 'w FILE'"#;

/// A tmux server of its own, gone with the value.
pub(super) struct World {
    folder: tempfile::TempDir,
}

impl World {
    /// Starts a server whose pane `%0` runs this shell line, and waits until the program is in front.
    pub(super) fn new(line: &str) -> Self {
        let world = Self { folder: tempfile::tempdir().unwrap() };
        let line = line.replace("FILE", world.file().to_str().unwrap());
        world.tmux(&["new-session", "-d", "-x", "100", "-y", "30", &format!("exec sh -c {}", quoted(&line))]);
        world.tmux(&["set-option", "-w", "remain-on-exit", "on"]);
        world
    }

    pub(super) fn ready(line: &str, command: &str) -> Self {
        let world = Self::new(line);
        world.eventually(|world| world.ask("#{pane_current_command}") == command);
        world.eventually(|world| command != "dd" || world.shows("ready"));
        world
    }

    /// A world with a Claude Code of this status in its pane.
    pub(super) fn claude(status: &str) -> Self {
        let world = Self::ready(CLAUDE, "claude");
        world.eventually(|world| world.shows("❯"));
        fs::create_dir_all(world.folder.path().join(".claude/sessions")).unwrap();
        fs::create_dir_all(world.folder.path().join(".claude/projects/-work")).unwrap();
        world.say(status);
        world
    }

    /// Lets that Claude Code say this about itself.
    pub(super) fn say(&self, status: &str) {
        let pid = self.ask("#{pane_pid}");
        let text = format!(r#"{{"pid":{pid},"sessionId":"s1","version":"2.1.332",{status}}}"#);
        fs::write(self.folder.path().join(format!(".claude/sessions/{pid}.json")), text).unwrap();
    }

    pub(super) fn write_transcript(&self, line: &str) {
        fs::write(self.folder.path().join(".claude/projects/-work/s1.jsonl"), format!("{line}\n")).unwrap();
    }

    pub(super) fn socket(&self) -> PathBuf {
        self.folder.path().join("s")
    }

    pub(super) fn file(&self) -> PathBuf {
        self.folder.path().join("got")
    }

    pub(super) fn got(&self) -> String {
        fs::read_to_string(self.file()).unwrap_or_default()
    }

    pub(super) fn tmux(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("tmux");
        command
            .arg("-S")
            .arg(self.socket())
            .args(["-f", "/dev/null"])
            .args(arguments)
            .env_remove("TMUX")
            .env("LC_ALL", "C.UTF-8");
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    }

    pub(super) fn ask(&self, format: &str) -> String {
        self.tmux(&["display-message", "-p", "-t", "%0", format]).trim().to_owned()
    }

    pub(super) fn shows(&self, words: &str) -> bool {
        self.tmux(&["capture-pane", "-p", "-t", "%0"]).contains(words)
    }

    #[track_caller]
    pub(super) fn eventually(&self, holds: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(10);
        while !holds(self) {
            assert!(Instant::now() < deadline, "still not so: {}", self.tmux(&["capture-pane", "-p", "-t", "%0"]));
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(super) fn usher(&self) -> Tmux {
        Tmux::new(self.settings())
    }

    pub(super) fn settings(&self) -> Settings {
        Settings {
            timeout: Duration::from_secs(5),
            mode_wait: Duration::from_millis(50),
            evidence: Duration::from_secs(5),
            see: Duration::from_secs(3),
            agent_home: self.folder.path().to_owned(),
            claude_config_dir: None,
            profiles: Profiles::built_in().unwrap(),
        }
    }

    pub(super) async fn session(&self, agent: &str) -> Session {
        self.usher().find(&self.socket(), &"%0".parse().unwrap(), Some(agent)).await.unwrap()
    }

    pub(super) async fn clear(&self) -> Clear {
        self.usher().guard(&self.session("generic").await).await.unwrap()
    }

    pub(super) async fn pasted(&self) -> Pasted {
        match self.usher().paste(self.clear().await, &text("7f3a9c2e")).await {
            Paste::Seen(pasted) => pasted,
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    pub(super) fn stays_untouched(&self) {
        assert_eq!(self.got(), "");
        assert_eq!(self.tmux(&["list-buffers"]), "");
        assert_ne!(self.ask("#{pid}"), "", "the server lives");
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

fn quoted(line: &str) -> String {
    format!("'{}'", line.replace('\'', r"'\''"))
}

pub(super) fn text(nonce: &str) -> PaneText {
    let words = format!("[usher {nonce}] reply from Dana\n\n$(touch x); `y` \"z\" ü ;\n[usher {nonce} end]");
    pieces(nonce, &[&words])
}

/// A text in these pieces.
pub(super) fn pieces(nonce: &str, pieces: &[&str]) -> PaneText {
    PaneText::of_pieces(nonce, pieces)
}
