//! The one door to tmux: every call names its socket, has a timeout, and carries no text in its arguments.
//!
//! Owns the spawning of `tmux`, what its failures mean, and its version. It must not know what a pane shows or why it is
//! written to.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// Why tmux could not be asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// The program could not be started.
    #[error("tmux could not be started ({0}): install it, or put it on the service's PATH")]
    NotStarted(String),
    /// It did not answer in time; a stuck client must not block the other panes (field report M17).
    #[error("tmux did not answer within {}", seconds(.0))]
    Timeout(Duration),
    /// Nothing listens on the socket.
    #[error("no tmux server answers on this socket: start it, or bind the pane with its --socket")]
    NoServer,
    /// The pane does not exist on this server.
    #[error("tmux has no such pane")]
    NoPane,
    /// Anything else that tmux said, one line.
    #[error("tmux refused: {0}")]
    Refused(String),
}

/// A tmux release such as `3.3a` or `next-3.7`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    text: String,
    number: (u32, u32),
}

impl Version {
    /// Reads what `tmux -V` prints. A build without a number (`master`) counts as newer than all.
    pub fn parse(output: &str) -> Self {
        let text = output.trim().trim_start_matches("tmux ").to_owned();
        let mut numbers = text.trim_start_matches("next-").split(|c: char| !c.is_ascii_digit()).map(str::parse);
        let number = match (numbers.next(), numbers.next()) {
            (Some(Ok(major)), Some(Ok(minor))) => (major, minor),
            _ => (u32::MAX, u32::MAX),
        };
        Self { text, number }
    }

    /// The version as tmux writes it.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether a paste into a dead pane kills the whole server: all releases up to 3.3a (platform-facts F, tmux #3830).
    pub fn dead_pane_paste_is_fatal(&self) -> bool {
        self.number < (3, 4)
    }
}

/// Asks for the version of the tmux on the PATH.
pub(super) async fn version(limit: Duration) -> Result<Version, Trouble> {
    let mut command = tmux();
    command.arg("-V");
    Ok(Version::parse(&finish(command, None, limit).await?))
}

/// Runs one or more tmux commands (separated by a `;` argument) in one call and returns what they print.
///
/// `input` is what `load-buffer -` reads: a text never stands in the arguments, where tmux eats a trailing `;`, refuses a
/// leading `-`, and ends at 16 KiB (field reports M2 and M3).
pub(super) async fn call<A: AsRef<OsStr>>(
    socket: &Path,
    arguments: &[A],
    input: Option<&[u8]>,
    limit: Duration,
) -> Result<String, Trouble> {
    let mut command = tmux();
    command.arg("-S").arg(socket).args(arguments);
    finish(command, input, limit).await
}

fn tmux() -> Command {
    let mut command = Command::new("tmux");
    // Without a UTF-8 locale tmux prints `_` for every other character; inside a pane it would ask the wrong server.
    command.env("LC_ALL", "C.UTF-8").env_remove("TMUX").env_remove("TMUX_PANE").kill_on_drop(true);
    command
}

async fn finish(mut command: Command, input: Option<&[u8]>, limit: Duration) -> Result<String, Trouble> {
    let stdin = if input.is_some() { Stdio::piped() } else { Stdio::null() };
    let spawned = command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = spawned.map_err(|error| Trouble::NotStarted(error.to_string()))?;
    match timeout(limit, talk(child, input)).await {
        Ok(Ok(output)) => answer(&output),
        Ok(Err(error)) => Err(Trouble::Refused(error.to_string())),
        Err(_) => Err(Trouble::Timeout(limit)),
    }
}

async fn talk(mut child: Child, input: Option<&[u8]>) -> std::io::Result<Output> {
    let writing = child.stdin.take().zip(input);
    let write = async {
        if let Some((mut stdin, bytes)) = writing {
            // A client that fails early stops reading: its own words, not the broken pipe, are the cause.
            match stdin.write_all(bytes).await {
                Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => return Err(error),
                _ => {}
            }
        }
        Ok(())
    };
    let (written, output) = tokio::join!(write, child.wait_with_output());
    written.and(output)
}

fn answer(output: &Output) -> Result<String, Trouble> {
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(meaning(&String::from_utf8_lossy(&output.stderr)))
}

fn meaning(words: &str) -> Trouble {
    let line = words.lines().next().unwrap_or_default();
    let absent = ["no server running", "error connecting to", "server exited", "lost server"];
    if !line.contains("Permission denied") && absent.iter().any(|start| line.starts_with(start)) {
        return Trouble::NoServer;
    }
    if line.starts_with("can't find pane") {
        return Trouble::NoPane;
    }
    Trouble::Refused(line.chars().take(200).collect())
}

fn seconds(limit: &Duration) -> String {
    format!("{} s", limit.as_secs_f32())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_up_to_3_3a_die_of_a_paste_into_a_dead_pane() {
        for (text, fatal) in [
            ("tmux 2.9a", true),
            ("tmux 3.3a\n", true),
            ("tmux 3.4", false),
            ("tmux next-3.7", false),
            ("tmux 3.10", false),
            ("tmux master", false),
        ] {
            assert_eq!(Version::parse(text).dead_pane_paste_is_fatal(), fatal, "{text}");
        }
        assert_eq!(Version::parse("tmux 3.3a\n").as_str(), "3.3a");
    }

    #[test]
    fn failures_are_told_apart() {
        let refused = |words: &str| Trouble::Refused(words.to_owned());
        for (words, trouble) in [
            ("no server running on /tmp/s", Trouble::NoServer),
            ("error connecting to /tmp/s (No such file or directory)", Trouble::NoServer),
            ("error connecting to /s (Permission denied)", refused("error connecting to /s (Permission denied)")),
            ("can't find pane: %9", Trouble::NoPane),
            ("no buffer usher-1\nmore", refused("no buffer usher-1")),
        ] {
            assert_eq!(meaning(words), trouble, "{words}");
        }
    }

    #[tokio::test]
    async fn a_socket_without_a_server_is_said_so() {
        let folder = tempfile::tempdir().unwrap();
        let answer = call(&folder.path().join("s"), &["list-panes"], None, Duration::from_secs(5)).await;
        assert_eq!(answer, Err(Trouble::NoServer));
    }
}
