//! The configuration: one file, variables over it, secrets beside it, validated before anything runs.
//!
//! Owns what can be configured, its rules, and every read of the environment. It must not know what is done with it.
//! Every problem is reported at once, a sentence each, and no sentence repeats a value (field report X7).

mod environment;
mod raw;
mod report;
mod secrets;
mod sources;
mod units;
mod validate;

#[cfg(test)]
mod documents;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use environment::Environment;
pub use secrets::Secrets;
pub use units::{NotADuration, duration};

use crate::core::act::Act;
use crate::core::grant::KnownPerson;
use crate::core::prompt::Prompt;
use crate::core::session::Listen;
use report::Report;
use validate::Validator;

/// Why there is no configuration: every problem, one sentence each.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct ConfigError(pub Vec<String>);

/// A valid configuration. Paths in it are absolute.
#[derive(Debug)]
pub struct Config {
    /// The file it came from, as it was named; `None` when there is none and the defaults hold.
    pub file: Option<PathBuf>,
    /// `[state]`
    pub state: State,
    /// `[slack]`
    pub slack: Slack,
    /// `[github]`
    pub github: GitHub,
    /// `[webhook]`
    pub webhook: Webhook,
    /// `[prompt]`
    pub prompt: Prompt,
    /// `[[people]]`; empty: nobody may do anything.
    pub people: Vec<KnownPerson>,
    /// `[attachments]`
    pub attachments: Attachments,
    /// `[ledger]`
    pub ledger: Ledger,
    /// `[pane]`
    pub pane: Pane,
    /// `[log]`
    pub log: Log,
    /// What is never in the file.
    pub secrets: Secrets,
    raw: raw::Raw,
}

/// Where usher keeps what it must not forget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// The state root.
    pub root: PathBuf,
}

/// The Slack side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slack {
    /// Whether usher connects to Slack at all.
    pub enabled: bool,
    /// The acts that a Slack message may become.
    pub publish: BTreeSet<Act>,
    /// Which messages of bound threads and direct messages count.
    pub listen: Listen,
    /// Whether words of a private channel may stand on a public repository.
    pub ledger_private_channels: bool,
    /// How long a mention without files waits for its twin; zero does not wait.
    pub twin_wait: Duration,
    /// A socket without a frame or ping for this long is dead.
    pub silence: Duration,
    /// How often the bound conversations are read again, beside the start and every reconnect.
    pub catch_up: Duration,
    /// The marks on the message itself.
    pub reactions: Reactions,
}

/// Names of emoji, without colons; `None`: this mark is off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reactions {
    /// Stored.
    pub received: Option<String>,
    /// Held; taken off afterwards.
    pub waiting: Option<String>,
    /// In the pane and on the ticket.
    pub done: Option<String>,
    /// Perhaps in the pane.
    pub unsure: Option<String>,
    /// Not delivered.
    pub failed: Option<String>,
}

/// The GitHub side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitHub {
    /// `github.com`, or an Enterprise host; lower-cased.
    pub host: String,
    /// The GitHub App that usher is, `None`: a token instead.
    pub app_id: Option<u64>,
    /// `owner/repo`, lower-cased; empty: none.
    pub repositories: Vec<String>,
    /// The acts that a GitHub comment may become.
    pub publish: BTreeSet<Act>,
    /// The least wait after a secondary limit without `Retry-After`.
    pub limit_wait: Duration,
    /// How often the repositories are read for what no delivery brought, beside the start.
    pub catch_up: Duration,
}

impl GitHub {
    /// The Enterprise host, as work items name it; `None` for github.com.
    pub fn enterprise_host(&self) -> Option<String> {
        (self.host != "github.com").then(|| self.host.clone())
    }
}

/// Where GitHub delivers what is said there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    /// The address and port; port 0 takes any free one.
    pub listen: SocketAddr,
    /// The path.
    pub path: String,
    /// The largest delivery, in bytes.
    pub max_body: usize,
}

/// How files are fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachments {
    /// Whether files are fetched at all; otherwise they are named and linked.
    pub receive: bool,
    /// The most files a message.
    pub max_files: u32,
    /// The largest file, in bytes.
    pub max_bytes: u64,
    /// Transfers of one message at the same time.
    pub parallel: u32,
    /// The mode of saved files.
    pub mode: u32,
    /// Without a byte for this long, a transfer failed.
    pub timeout: Duration,
    /// How long a message waits for its files.
    pub deadline: Duration,
    /// How long a file may take in all; at least `deadline`.
    pub file_deadline: Duration,
    /// How often Slack is asked again for a transcript that is being made.
    pub transcript_retries: u32,
    /// The wait before each of these.
    pub transcript_wait: Duration,
    /// After this long it is looked for once more, then after twice as long, up to an hour, for a day.
    pub transcript_poll: Duration,
}

/// The record on the issue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ledger {
    /// How long the delivery waits for the record; zero does not wait.
    pub patience: Duration,
}

/// The agent's terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pane {
    /// The tmux socket for bindings that name none: as configured, else that of `$TMUX`, else the user's default server's.
    pub socket: PathBuf,
    /// The home directory of the agent.
    pub agent_home: PathBuf,
    /// `$CLAUDE_CONFIG_DIR`: where Claude keeps its state instead of `.claude` in its home.
    pub claude_config: Option<PathBuf>,
    /// The longest that a call of tmux may take.
    pub timeout: Duration,
    /// How long a person who scrolls is left alone; zero does not wait.
    pub mode_wait: Duration,
    /// The first pause before a held pane is looked at again.
    pub retry_min: Duration,
    /// The longest such pause; at least `retry_min`.
    pub retry_max: Duration,
    /// How long proof of submission is waited for.
    pub evidence: Duration,
}

/// What usher says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// The form of a line.
    pub format: LogFormat,
    /// `RUST_LOG`, as it is.
    pub filter: Option<String>,
}

/// The form of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

impl Config {
    /// Reads everything: the file that `--config` names or the first that is found, the variables over it, the
    /// secrets.
    pub fn load(named: Option<&Path>, environment: &Environment) -> Result<Self, ConfigError> {
        let mut report = Report::default();
        let raw = sources::read(named, environment, &mut report);
        let secrets = Secrets::find(environment, &mut report);
        let file = report.file.clone().map(PathBuf::from);
        let mut validator = Validator { environment, report: &mut report };
        let config = Self {
            file,
            state: validator.state(&raw.state),
            slack: validator.slack(&raw.slack),
            github: validator.github(&raw.github),
            webhook: validator.webhook(&raw.webhook),
            prompt: validator.prompt(&raw.prompt),
            people: validator.people(&raw.people),
            attachments: validator.attachments(&raw.attachments),
            ledger: validator.ledger(&raw.ledger),
            pane: validator.pane(&raw.pane),
            log: validator.log(&raw.log),
            secrets,
            raw,
        };
        config.github.check(&config.secrets, &mut report);
        report.finish(config)
    }

    /// What is in force, as TOML that could be the file; of secrets only whether they are set and where from.
    pub fn show(&self) -> String {
        let source = self.file.as_ref().map_or_else(|| "no file".to_owned(), |file| file.display().to_string());
        let secrets: String = self.secrets.lines().iter().map(|line| format!("# {line}\n")).collect();
        let keys = toml::to_string(&self.raw).unwrap_or_default();
        format!(
            "# usher's configuration in force, from {source}, variables and defaults\n\n{keys}\n# secrets\n{secrets}"
        )
    }

    /// What the probe says when there is no file: not an error, but hardly intended.
    pub fn finding(&self) -> Option<String> {
        self.file.is_none().then(|| {
            let places = sources::places();
            format!(
                "no configuration file at {places}: the defaults hold, nobody may do anything; \
                 copy config/usher.toml and edit it"
            )
        })
    }
}
