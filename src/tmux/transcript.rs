//! Claude Code's transcript: the durable evidence that a message was submitted.
//!
//! Owns finding `projects/*/<session>.jsonl`, reading what was appended, and recognising our message in it (agents-in-tmux
//! fact 12, field report M15). It must not know how a message is submitted.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::Deserialize;

use super::confirm::Evidence;

/// The most that one look reads: more than any message that fits into a pane, however it is escaped.
const WINDOW: u64 = 4 * 1024 * 1024;

/// A file's time may lie a little before the clock's.
const CLOCK_SLACK: Duration = Duration::from_secs(2);

/// A place in a session's transcript, up to which it was read.
#[derive(Debug, Clone)]
pub(super) struct Transcript {
    projects: PathBuf,
    name: String,
    path: Option<PathBuf>,
    read_to: u64,
}

impl Transcript {
    /// The transcript of a session, at its present end. It need not exist yet: Claude writes it with the first message.
    pub(super) fn at_end(configuration: &Path, session_id: &str) -> Self {
        let mut transcript = Self::at_start(configuration, session_id);
        transcript.read_to = transcript.length().unwrap_or(0);
        transcript
    }

    fn at_start(configuration: &Path, session_id: &str) -> Self {
        let name = format!("{session_id}.jsonl");
        Self { projects: configuration.join("projects"), name, path: None, read_to: 0 }
    }

    /// Reads what was appended since the last look; tells whether a line of it is the submission of this message. An
    /// error: there is no saying. A file that is not there is no error, because then nothing was submitted yet.
    pub(super) fn look(&mut self, nonce: &str) -> io::Result<Option<Evidence>> {
        let Some(path) = self.locate()? else { return Ok(None) };
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(self.read_to))?;
        let mut appended = Vec::new();
        let length = file.take(WINDOW).read_to_end(&mut appended)?;
        let whole = match appended.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => end + 1,
            // One line that fills the window is an image or the like, not a message.
            None if length as u64 == WINDOW => length,
            None => 0,
        };
        self.read_to += whole as u64;
        let lines = appended.get(..whole).unwrap_or_default().split(|byte| *byte == b'\n');
        Ok(lines.filter_map(|line| evidence(line, nonce)).next())
    }

    /// Reads to the end, a window at a time.
    fn look_through(&mut self, nonce: &str) -> io::Result<Option<Evidence>> {
        loop {
            let from = self.read_to;
            let found = self.look(nonce)?;
            if found.is_some() || self.read_to == from {
                return Ok(found);
            }
        }
    }

    fn length(&mut self) -> Option<u64> {
        let path = self.locate().ok()??;
        fs::metadata(path).ok().map(|metadata| metadata.len())
    }

    fn locate(&mut self) -> io::Result<Option<PathBuf>> {
        if self.path.is_none() {
            self.path = search(&self.projects, &self.name)?;
        }
        Ok(self.path.clone())
    }
}

/// Whether any session took this message at or after `since`. All transcripts written since then are read, whole: after a
/// `/clear` or a restart the agent in the pane has another session than the one that took it.
pub(super) fn recorded(configuration: &Path, nonce: &str, since: SystemTime) -> io::Result<Option<Evidence>> {
    let projects = configuration.join("projects");
    for project in entries(&projects)? {
        for path in entries(&project)?.into_iter().filter(|path| path.extension().is_some_and(|end| end == "jsonl")) {
            if fs::metadata(&path)?.modified()? + CLOCK_SLACK < since {
                continue;
            }
            let mut transcript =
                Transcript { projects: projects.clone(), name: String::new(), path: Some(path), read_to: 0 };
            if let Some(evidence) = transcript.look_through(nonce)? {
                return Ok(Some(evidence));
            }
        }
    }
    Ok(None)
}

/// What a folder holds; nothing when it is none, or is not there.
fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    match fs::read_dir(folder) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(Vec::new()),
        entries => entries?.map(|entry| Ok(entry?.path())).collect(),
    }
}

fn search(projects: &Path, name: &str) -> io::Result<Option<PathBuf>> {
    // The name is data of another program: it must stay one component.
    if name.contains('/') {
        return Err(io::ErrorKind::InvalidData.into());
    }
    Ok(entries(projects)?.into_iter().map(|project| project.join(name)).find(|path| path.is_file()))
}

#[derive(Deserialize)]
struct Entry {
    r#type: String,
    #[serde(default)]
    operation: Option<String>,
    #[serde(default)]
    content: Option<Content>,
    #[serde(default)]
    message: Option<Message>,
}

#[derive(Deserialize)]
struct Message {
    content: Content,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Blocks(Vec<Block>),
    Other(serde::de::IgnoredAny),
}

#[derive(Deserialize)]
struct Block {
    #[serde(default)]
    text: Option<String>,
}

impl Content {
    /// Whether it is a person's text with our frame. A tool's result may quote the frame (an agent that reads its own
    /// screen): that stands in `content` of a block, not in `text`.
    fn holds(&self, frame: &str) -> bool {
        match self {
            Self::Text(text) => text.contains(frame),
            Self::Blocks(blocks) => blocks.iter().filter_map(|block| block.text.as_deref()).any(|t| t.contains(frame)),
            Self::Other(_) => false,
        }
    }
}

fn evidence(line: &[u8], nonce: &str) -> Option<Evidence> {
    // Most lines are not ours: they are not parsed.
    if !line.windows(nonce.len().max(1)).any(|window| window == nonce.as_bytes()) {
        return None;
    }
    let entry: Entry = serde_json::from_slice(line).ok()?;
    let frame = format!("[usher {nonce}");
    match (entry.r#type.as_str(), entry.operation.as_deref()) {
        ("user", _) => entry.message?.content.holds(&frame).then_some(Evidence::Transcript),
        ("queue-operation", Some("enqueue")) => entry.content?.holds(&frame).then_some(Evidence::Queue),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn check(line: &str, expected: Option<Evidence>) {
        assert_eq!(evidence(line.as_bytes(), "7f3a9c2e"), expected, "{line}");
    }

    #[test]
    fn only_a_submission_is_evidence() {
        let user = Some(Evidence::Transcript);
        check(
            r#"{"type":"user","message":{"role":"user","content":"[usher 7f3a9c2e] hi\n[usher 7f3a9c2e end]"}}"#,
            user,
        );
        check(r#"{"type":"user","message":{"content":[{"type":"text","text":"\n[usher 7f3a9c2e] hi"}]}}"#, user);
        check(
            r#"{"type":"user","message":{"content":[{"type":"tool_result","content":"[usher 7f3a9c2e] hi"}]}}"#,
            None,
        );
        check(r#"{"type":"user","message":{"content":[{"type":"text","text":"what is 7f3a9c2e"}]}}"#, None);
        check(r#"{"type":"assistant","message":{"content":[{"type":"text","text":"[usher 7f3a9c2e] hi"}]}}"#, None);
        check(
            r#"{"type":"queue-operation","operation":"enqueue","content":"[usher 7f3a9c2e] x"}"#,
            Some(Evidence::Queue),
        );
        check(r#"{"type":"queue-operation","operation":"remove","content":"[usher 7f3a9c2e] x"}"#, None);
        check(r#"{"type":"user","message":{"content":"[usher 00000000] hi"}}"#, None);
        check(r#"{"type":"user","message":{"content":"[usher 7f3a9c2e"#, None);
        check("", None);
    }

    #[test]
    fn only_what_was_appended_counts_and_half_a_line_waits() {
        let home = tempfile::tempdir().unwrap();
        let project = home.path().join("projects/-work");
        fs::create_dir_all(&project).unwrap();
        let line = |nonce: &str| format!(r#"{{"type":"user","message":{{"content":"[usher {nonce}] hi"}}}}"#);
        let mut file = File::create(project.join("s1.jsonl")).unwrap();
        writeln!(file, "{}", line("aaaa")).unwrap();

        let mut transcript = Transcript::at_end(home.path(), "s1");
        assert_eq!(transcript.look("aaaa").unwrap(), None);

        let (head, tail) = {
            let text = line("bbbb");
            let (a, b) = text.split_at(40);
            (a.to_owned(), b.to_owned())
        };
        write!(file, "{head}").unwrap();
        assert_eq!(transcript.look("bbbb").unwrap(), None);
        writeln!(file, "{tail}").unwrap();
        assert_eq!(transcript.look("bbbb").unwrap(), Some(Evidence::Transcript));
    }

    #[test]
    fn after_a_crash_every_session_written_since_is_read_whole() {
        let home = tempfile::tempdir().unwrap();
        let began = SystemTime::now();
        assert_eq!(recorded(home.path(), "aaaa", began).unwrap(), None);
        let project = home.path().join("projects/p");
        fs::create_dir_all(&project).unwrap();
        fs::write(home.path().join("projects/stray.jsonl"), "x").unwrap();
        fs::write(project.join("other.jsonl"), "{}\n").unwrap();
        let line = "{\"type\":\"user\",\"message\":{\"content\":\"[usher aaaa] hi\"}}\n";
        let filler = format!("{}\n", "x".repeat(100_000)).repeat(60);
        fs::write(project.join("cleared.jsonl"), format!("{filler}{line}{filler}")).unwrap();
        assert_eq!(recorded(home.path(), "aaaa", began).unwrap(), Some(Evidence::Transcript));
        assert_eq!(recorded(home.path(), "bbbb", began).unwrap(), None);
        assert_eq!(recorded(home.path(), "aaaa", began + Duration::from_secs(60)).unwrap(), None);
    }

    #[test]
    fn a_transcript_that_begins_with_our_message_is_found() {
        let home = tempfile::tempdir().unwrap();
        let mut transcript = Transcript::at_end(home.path(), "s1");
        assert_eq!(transcript.look("cccc").unwrap(), None);
        fs::create_dir_all(home.path().join("projects/p")).unwrap();
        let line = "{\"type\":\"user\",\"message\":{\"content\":\"[usher cccc] hi\"}}\n";
        fs::write(home.path().join("projects/p/s1.jsonl"), line).unwrap();
        assert_eq!(transcript.look("cccc").unwrap(), Some(Evidence::Transcript));
    }

    #[test]
    fn a_session_id_cannot_lead_elsewhere() {
        assert!(Transcript::at_end(Path::new("/tmp"), "../../x").look("a").is_err());
    }
}
