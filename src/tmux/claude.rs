//! Claude Code's own word about its state: `sessions/<pid>.json` below its configuration directory.
//!
//! Owns the reading of that file and the choice of the one that belongs to a pane (agents-in-tmux fact 11). It must not
//! know what follows from a state. Measured with 2.1.197 and 2.1.332.

use std::fs;
use std::path::Path;

use serde::Deserialize;

use super::process;

/// One running Claude Code.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SessionFile {
    /// Its process.
    pub(super) pid: u32,
    /// The name of its transcript.
    pub(super) session_id: String,
    #[serde(default)]
    started_at: f64,
    /// Its release.
    #[serde(default)]
    pub(super) version: Option<String>,
    /// Missing for a moment while it starts: then there is no session file yet.
    status: String,
    #[serde(default)]
    waiting_for: Option<String>,
    /// `session:@window.%pane`, since 2.1.332.
    #[serde(default)]
    tmux: Option<String>,
}

/// The pane whose agent is looked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seat<'a> {
    /// The pane id, `%3`.
    pub(super) pane: &'a str,
    /// The pane's first process.
    pub(super) pane_pid: u32,
    /// The leader of the group that reads the pane's terminal.
    pub(super) foreground: Option<u32>,
    /// The tmux server.
    pub(super) server_pid: u32,
}

impl SessionFile {
    /// What the agent waits for; `None`: it is idle or busy and takes messages. A state that is not known counts as
    /// waiting, because a key in an unknown dialog may approve it.
    pub(super) fn waits_for(&self) -> Option<&str> {
        let takes_messages = matches!(self.status.as_str(), "idle" | "busy");
        (!takes_messages).then(|| self.waiting_for.as_deref().unwrap_or(&self.status))
    }
}

/// The session file of the agent in a pane: the foreground process's own, else the newest that belongs to the pane.
pub(super) fn find(configuration: &Path, seat: &Seat<'_>) -> Option<SessionFile> {
    let folder = configuration.join("sessions");
    let own = seat.foreground.and_then(|pid| read(&folder.join(format!("{pid}.json"))));
    own.filter(|file| Some(file.pid) == seat.foreground).or_else(|| newest(&folder, seat))
}

fn newest(folder: &Path, seat: &Seat<'_>) -> Option<SessionFile> {
    let paths = fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let files = paths.filter(|path| path.extension().is_some_and(|end| end == "json")).filter_map(|path| read(&path));
    files.filter(|file| sits_in(file, seat)).max_by(|a, b| a.started_at.total_cmp(&b.started_at))
}

/// The pane id alone does not do: every tmux server has a `%0`.
fn sits_in(file: &SessionFile, seat: &Seat<'_>) -> bool {
    let names_pane = file.tmux.as_deref().and_then(|place| place.rsplit('.').next()) == Some(seat.pane);
    process::is_below(file.pid, seat.pane_pid)
        || (names_pane && process::tmux_server(file.pid) == Some(seat.server_pid))
}

fn read(path: &Path) -> Option<SessionFile> {
    // The agent rewrites the file in place: half a file is read again at the next look.
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, String)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("sessions")).unwrap();
        for (name, text) in files {
            fs::write(folder.path().join("sessions").join(name), text).unwrap();
        }
        folder
    }

    fn file(pid: u32, id: &str, started: u64) -> String {
        format!(r#"{{"pid":{pid},"sessionId":"{id}","startedAt":{started},"status":"idle","cwd":"/w","new":[1]}}"#)
    }

    fn seat(foreground: Option<u32>) -> Seat<'static> {
        Seat { pane: "%3", pane_pid: std::process::id(), foreground, server_pid: 1 }
    }

    #[test]
    fn the_newest_file_of_a_living_process_in_the_pane_is_chosen() {
        let own = std::process::id();
        let folder = folder(&[
            ("1.json", file(own, "old", 10)),
            ("2.json", file(own, "new", 20)),
            ("3.json", file(u32::MAX, "dead", 30)),
            ("4.json", file(std::os::unix::process::parent_id(), "elsewhere", 40)),
            ("5.json", "{\"pid\":".to_owned()),
            ("7.json", file(own, "starting", 60).replace("status", "stat")),
            ("6.txt", file(own, "other", 50)),
        ]);
        assert_eq!(find(folder.path(), &seat(None)).map(|file| file.session_id).as_deref(), Some("new"));
    }

    #[test]
    fn the_foreground_process_is_preferred() {
        let own = std::process::id();
        let folder = folder(&[(&format!("{own}.json"), file(own, "front", 10)), ("2.json", file(own, "new", 20))]);
        assert_eq!(find(folder.path(), &seat(Some(own))).map(|file| file.session_id).as_deref(), Some("front"));
    }

    #[test]
    fn the_same_pane_id_of_another_server_is_another_pane() {
        let parent = std::os::unix::process::parent_id();
        let text = file(parent, "other", 1).replace("\"cwd\"", "\"tmux\":\"w:@1.%3\",\"cwd\"");
        assert_eq!(find(folder(&[("1.json", text)]).path(), &seat(None)), None);
        assert_eq!(find(Path::new("/nonexistent"), &seat(None)), None);
    }

    #[test]
    fn only_idle_and_busy_take_messages() {
        for (state, waits_for) in [
            (r#""status":"idle""#, None),
            (r#""status":"busy""#, None),
            (r#""status":"waiting","waitingFor":"permission prompt""#, Some("permission prompt")),
            (r#""status":"waiting""#, Some("waiting")),
            (r#""status":"paused""#, Some("paused")),
        ] {
            let file: SessionFile = serde_json::from_str(&format!(r#"{{"pid":1,"sessionId":"a",{state}}}"#)).unwrap();
            assert_eq!(file.waits_for(), waits_for, "{state}");
        }
    }
}
