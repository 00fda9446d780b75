//! The configuration as it is written: every key, its kind and its default, and nothing else.
//!
//! Owns the names. It must not know what is valid (`validate`) nor where a value came from (`sources`). The serialized
//! default is the list of known keys: an unknown one is found by comparison, and the documentation is tested against
//! it.

use serde::{Deserialize, Serialize};

/// The whole file.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Raw {
    pub(super) state: State,
    pub(super) slack: Slack,
    pub(super) github: GitHub,
    pub(super) webhook: Webhook,
    pub(super) prompt: Prompt,
    pub(super) people: Vec<Person>,
    pub(super) attachments: Attachments,
    pub(super) ledger: Ledger,
    pub(super) pane: Pane,
    pub(super) log: Log,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct State {
    pub(super) root: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Slack {
    pub(super) enabled: bool,
    pub(super) publish: Vec<String>,
    pub(super) listen: String,
    pub(super) ledger_private_channels: bool,
    pub(super) twin_wait: String,
    pub(super) silence: String,
    pub(super) catch_up: String,
    pub(super) reactions: Reactions,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Reactions {
    pub(super) received: String,
    pub(super) waiting: String,
    pub(super) done: String,
    pub(super) unsure: String,
    pub(super) failed: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GitHub {
    pub(super) host: String,
    pub(super) app_id: i64,
    pub(super) repositories: Vec<String>,
    pub(super) publish: Vec<String>,
    pub(super) limit_wait: String,
    pub(super) catch_up: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Webhook {
    pub(super) listen: String,
    pub(super) path: String,
    pub(super) max_body: String,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Prompt {
    pub(super) event: String,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Person {
    pub(super) name: String,
    pub(super) github: String,
    pub(super) slack: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Attachments {
    pub(super) receive: bool,
    pub(super) max_files: i64,
    pub(super) max_bytes: String,
    pub(super) parallel: i64,
    pub(super) mode: String,
    pub(super) timeout: String,
    pub(super) deadline: String,
    pub(super) file_deadline: String,
    pub(super) transcript_retries: i64,
    pub(super) transcript_wait: String,
    pub(super) transcript_poll: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ledger {
    pub(super) patience: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Pane {
    pub(super) socket: String,
    pub(super) agent_home: String,
    pub(super) timeout: String,
    pub(super) mode_wait: String,
    pub(super) retry_min: String,
    pub(super) retry_max: String,
    pub(super) evidence: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Log {
    pub(super) format: String,
}

impl Default for State {
    fn default() -> Self {
        Self { root: "state".into() }
    }
}

impl Default for Slack {
    fn default() -> Self {
        Self {
            enabled: true,
            publish: vec!["work-item.reply".into()],
            listen: "all".into(),
            ledger_private_channels: false,
            twin_wait: "1.5s".into(),
            silence: "30s".into(),
            catch_up: "15m".into(),
            reactions: Reactions::default(),
        }
    }
}

impl Default for Reactions {
    fn default() -> Self {
        Self {
            received: "eyes".into(),
            waiting: "hourglass_flowing_sand".into(),
            done: "white_check_mark".into(),
            unsure: "grey_question".into(),
            failed: "warning".into(),
        }
    }
}

impl Default for GitHub {
    fn default() -> Self {
        Self {
            host: "github.com".into(),
            app_id: 0,
            repositories: Vec::new(),
            publish: vec!["work-item.reply".into()],
            limit_wait: "60s".into(),
            catch_up: "15m".into(),
        }
    }
}

impl Default for Webhook {
    fn default() -> Self {
        Self { listen: "127.0.0.1:8787".into(), path: "/gh-webhook".into(), max_body: "25MiB".into() }
    }
}

impl Default for Attachments {
    fn default() -> Self {
        Self {
            receive: true,
            max_files: 10,
            max_bytes: "25MiB".into(),
            parallel: 10,
            mode: "0400".into(),
            timeout: "30s".into(),
            deadline: "60s".into(),
            file_deadline: "10m".into(),
            transcript_retries: 3,
            transcript_wait: "2s".into(),
            transcript_poll: "1m".into(),
        }
    }
}

impl Default for Ledger {
    fn default() -> Self {
        Self { patience: "2s".into() }
    }
}

impl Default for Pane {
    fn default() -> Self {
        Self {
            socket: String::new(),
            agent_home: "~".into(),
            timeout: "5s".into(),
            mode_wait: "10s".into(),
            retry_min: "1s".into(),
            retry_max: "60s".into(),
            evidence: "10s".into(),
        }
    }
}

impl Default for Log {
    fn default() -> Self {
        Self { format: "text".into() }
    }
}
