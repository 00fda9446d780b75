//! A thread that is bound to an agent's pane, and what is told about a message that was posted in it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::main_job::USHER;
use crate::world::{Agent, DANA, Daemon, FileSpec, ITEM, Posted, ROOM, TEAM, World, eventually};

/// The whole world with a running daemon, an agent, and a thread that is bound to it.
pub(super) struct Desk {
    pub(super) agent: Agent,
    pub(super) daemon: Option<Daemon>,
    pub(super) thread: String,
    // Dropped last: it looks for leaked secrets in what the others wrote.
    pub(super) world: World,
}

/// What was told about one message, everywhere.
pub(super) struct Told {
    pub(super) pane: String,
    pub(super) record: String,
    /// As `usher inbox show --json` has it.
    pub(super) shown: Value,
}

impl Desk {
    pub(super) fn new() -> Self {
        Self::with("", |_| ())
    }

    pub(super) fn configured(overrides: &str) -> Self {
        Self::with(overrides, |_| ())
    }

    /// With this configuration, and the world prepared before the daemon starts.
    pub(super) fn with(overrides: &str, prepare: impl FnOnce(&mut World)) -> Self {
        let mut world = World::new(USHER);
        world.config(overrides);
        prepare(&mut world);
        let agent = world.claude();
        let daemon = world.daemon();
        eventually("usher listens", || world.slack.sockets() == 1);
        let thread = world.slack.earlier(ROOM, None, DANA, "The widgets squeak");
        let bound = world.cli(&["bind", ITEM, "--pane", &agent.pane, "--slack", &world.slack.permalink(ROOM, &thread)]);
        assert!(bound.status.success(), "{}", String::from_utf8_lossy(&bound.stderr));
        Self { agent, daemon: Some(daemon), thread, world }
    }

    /// Dana posts these files with these words.
    pub(super) fn post(&self, text: &str, files: impl IntoIterator<Item = FileSpec>) -> Posted {
        let files: Vec<Value> = files.into_iter().map(|file| self.world.slack.add_file(file)).collect();
        self.post_objects(text, &files)
    }

    /// Dana posts these files, which Slack holds already.
    pub(super) fn post_objects(&self, text: &str, files: &[Value]) -> Posted {
        self.world.slack.post(ROOM, Some(&self.thread), DANA, text, files)
    }

    /// Dana posts a file with words, and the message is carried.
    pub(super) fn send(&self, file: FileSpec) -> Told {
        self.told(&self.post("Look at this", [file]))
    }

    /// Waits until the message is in the pane and on the ticket, and gives what was told of it.
    #[track_caller]
    pub(super) fn told(&self, posted: &Posted) -> Told {
        eventually("the check mark", || {
            let marks = self.world.slack.reactions_on(&posted.ts);
            if marks.contains("white_check_mark") { Ok(()) } else { Err((marks, self.agent.submitted())) }
        });
        self.told_of(&format!("slack:{TEAM}/{ROOM}/{}", posted.ts))
    }

    /// What was told of the message with this id, which is settled.
    #[track_caller]
    pub(super) fn told_of(&self, id: &str) -> Told {
        let shown = self.shown(id);
        let frame = format!("[usher {}]", shown["nonce"].as_str().expect("a nonce"));
        let submitted = self.agent.submitted();
        let pane = submitted.iter().find(|text| text.starts_with(&frame)).expect("a submission with the nonce");
        let envelope = format!("\"id\":\"{id}\"");
        let comments = self.world.github.comments(ITEM);
        let record = comments.iter().find(|comment| comment.body.contains(&envelope)).expect("a record with the id");
        self.check_record(&record.body);
        Told { pane: pane.clone(), record: record.body.clone(), shown }
    }

    /// What `usher inbox show --json` says.
    #[track_caller]
    pub(super) fn shown(&self, id: &str) -> Value {
        let output = self.world.cli(&["inbox", "show", id, "--json"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// A ticket is for others than the machine's user: no path, no URL that needs a token.
    #[track_caller]
    fn check_record(&self, record: &str) {
        for private in ["files-pri", "files-tmb", "https://files", "local/attachments", self.state_root()] {
            assert!(!record.contains(private), "`{private}` is on the ticket: {record}");
        }
    }

    fn state_root(&self) -> &str {
        self.world.dir().to_str().expect("a UTF-8 path")
    }

    /// The directory of the work item's files.
    pub(super) fn directory(&self) -> PathBuf {
        self.world.dir().join("state/local/attachments/acme--widgets--12")
    }

    /// Every name in it, hidden ones included.
    pub(super) fn on_disk(&self) -> BTreeSet<String> {
        let entries = fs::read_dir(self.directory()).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().into_string().expect("a plain name")).collect()
    }

    /// The paths that the file hosts were asked for: `host/path`.
    pub(super) fn asked(&self) -> Vec<String> {
        self.world.slack.file_requests().into_iter().map(|asked| format!("{}{}", asked.host, asked.path)).collect()
    }

    /// What the sender was told about files, once it was.
    #[track_caller]
    pub(super) fn sender_told(&self) -> String {
        eventually("the sender is told", || {
            let told = self.world.slack.ephemerals();
            told.first().filter(|_| told.len() == 1).map(|told| told.text.clone()).ok_or(told)
        })
    }

    /// The power goes off, and comes back.
    pub(super) fn restart_after_kill9(&mut self) {
        self.daemon.take().expect("a running daemon").kill9();
        self.start_again();
    }

    /// Starts a daemon where there was one. Slack first notices that the old one is gone: what it sent there until then
    /// would be lost.
    pub(super) fn start_again(&mut self) {
        eventually("the old socket is gone", || self.world.slack.sockets() == 0);
        self.daemon = Some(self.world.daemon());
        eventually("usher listens again", || self.world.slack.sockets() == 1);
    }
}

impl Told {
    /// The `index`th file of the message as the store has it.
    pub(super) fn file(&self, index: usize) -> &Value {
        &self.shown["attachments"][index]
    }

    /// Where the `index`th file was saved. The pane names the same path.
    #[track_caller]
    pub(super) fn path(&self, index: usize) -> PathBuf {
        let path = self.file(index)["outcome"]["saved"]["path"].as_str();
        let path = path.unwrap_or_else(|| panic!("file {index} was not saved: {:#}", self.shown["attachments"]));
        assert!(self.pane.contains(&format!("saved at `{path}`")), "the pane names another path: {}", self.pane);
        PathBuf::from(path)
    }

    /// The `index`th file was saved under this name, with these bytes, and the store has their hash.
    #[track_caller]
    pub(super) fn assert_saved(&self, index: usize, name: &str, bytes: &[u8]) {
        let path = self.path(index);
        assert_eq!(path.file_name().and_then(|name| name.to_str()), Some(name));
        assert!(fs::read(&path).expect("the saved file") == bytes, "{name} has other bytes");
        assert_eq!(self.file(index)["outcome"]["saved"]["sha256"], hex::encode(Sha256::digest(bytes)), "{name}");
    }

    /// The `index`th file was not fetched; pane, record and store say so in the same words.
    #[track_caller]
    pub(super) fn assert_refused(&self, index: usize, code: &str, words: &str) {
        let outcome = &self.file(index)["outcome"]["not-fetched"];
        let stored =
            outcome.as_str().or_else(|| outcome.as_object().and_then(|it| it.keys().next()).map(String::as_str));
        assert_eq!(stored, Some(code), "{:#}", self.shown["attachments"]);
        let line = self.pane.lines().find(|line| line.starts_with(&format!("{}. ", index + 1)));
        assert!(line.is_some_and(|line| line.contains(&format!("not fetched ({code}): {words} — "))), "{}", self.pane);
        assert!(self.record.contains(&format!("(not fetched: {words})")), "{}", self.record);
    }
}

/// The permissions of a path.
pub(super) fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    fs::metadata(path).expect("it is there").permissions().mode() & 0o7777
}

/// The id that Slack gave a file.
pub(super) fn id(file: &Value) -> &str {
    file["id"].as_str().expect("a file object")
}
