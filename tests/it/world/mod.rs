//! The fake world in which the real usher binary is tested: a Slack, a GitHub and a tmux server that behave as the real
//! ones do, under their real names.
//!
//! Nothing in usher knows that it is being tested. `HTTPS_PROXY` leads every host name into this process,
//! `SSL_CERT_FILE` makes it trusted, and the rest is ordinary configuration. The world uses none of usher's code.
//! It runs on a runtime of its own, so that a story is a plain function: do something, then look `eventually`.
#![allow(
    dead_code,
    unused_imports,
    unreachable_pub,
    missing_docs,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "included by the tests, the demo and the benches, each of which uses a part; a wrong step here must panic"
)]

mod agent;
mod ca;
mod daemon;
mod eventually;
mod github;
mod hosts;
mod http;
mod proxy;
mod shared;
mod slack;
mod tmux;
mod webhook;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use tempfile::TempDir;
use tokio::runtime::Runtime;

pub use agent::{Agent, recorder_path};
pub use daemon::{Daemon, Launch};
pub use eventually::{deadline, eventually, eventually_async};
pub use github::events::{bot, with};
pub use github::{AssetRequest, Comment, FakeGitHub, LOGIN, Review};
pub use proxy::Proxy;
pub use slack::{
    APP, Ack, BOT, BOT_USER, Behaviour, CENTRAL, ChannelKind, DANA, DANA_DM, Envelope, Ephemeral, FakeSlack, Fault,
    FileRequest, FileSpec, PRIVATE_ROOM, Posted, ROOM, SAM, TEAM, Transcript, Twin, disconnect_frame, hello_frame,
};
pub use tmux::Tmux;
pub use webhook::{Delivery, Hook, Response, signed};

use hosts::Hosts;
use shared::{Secrets, Unexpected};

/// The repository of most stories; private.
pub const REPOSITORY: &str = "acme/widgets";
/// The work item of most stories.
pub const ITEM: &str = "acme/widgets#12";

/// One world. When it is dropped it must be clean: no unexpected call, no secret in any output or file.
pub struct World {
    pub slack: FakeSlack,
    pub github: FakeGitHub,
    pub proxy: Proxy,
    pub tmux: Tmux,
    launch: Launch,
    secrets: Secrets,
    unexpected: Unexpected,
    dir: TempDir,
    runtime: Option<Runtime>,
}

impl World {
    /// A world around this usher binary: a workspace with Dana in it, a private repository with one issue, and a
    /// configuration in which Dana may speak.
    pub fn new(usher: impl Into<PathBuf>) -> Self {
        let dir = tempfile::Builder::new().prefix("usher-world-").tempdir().expect("a temporary directory");
        for name in ["home", "logs"] {
            fs::create_dir(dir.path().join(name)).expect("a directory of the world");
        }
        let (secrets, unexpected) = (Secrets::default(), Unexpected::default());
        let slack = FakeSlack::new(secrets.clone(), unexpected.clone());
        let github = FakeGitHub::new(&secrets, unexpected.clone());
        let hosts = Hosts { slack: slack.clone(), github: github.clone(), unexpected: unexpected.clone() };
        let runtime = runtime();
        let ca = ca::Ca::new();
        fs::write(dir.path().join("ca.pem"), &ca.pem).expect("the authority's certificate is written");
        let proxy = {
            let _inside = runtime.enter();
            Proxy::start(ca.acceptor, hosts)
        };
        let launch = Launch {
            program: usher.into(),
            config: dir.path().join("usher.toml"),
            environment: environment(dir.path(), &proxy, &slack, &github),
            logs: dir.path().join("logs"),
        };
        let tmux = Tmux::new(dir.path(), &dir.path().join("home"));
        let world = Self { slack, github, proxy, tmux, launch, secrets, unexpected, dir, runtime: Some(runtime) };
        world.github.add_repository(REPOSITORY, true);
        world.github.add_issue(ITEM, "The widgets squeak");
        world.config("");
        world
    }

    /// Writes the configuration: the usual one, with these TOML keys laid over it.
    pub fn config(&self, overrides: &str) {
        let mut table: toml::Table = self.usual_config().parse().expect("the usual configuration is TOML");
        lay_over(&mut table, overrides.parse().expect("the overrides are TOML"));
        fs::write(&self.launch.config, table.to_string()).expect("the configuration is written");
    }

    /// Sets an environment variable for usher, or another value for one it has.
    pub fn set_env(&mut self, name: &str, value: &str) {
        self.launch.environment.insert(name.to_owned(), value.to_owned());
    }

    /// Takes an environment variable away from usher, for example a token.
    pub fn unset_env(&mut self, name: &str) {
        self.launch.environment.remove(name);
    }

    /// Gives usher a webhook secret, so that it listens. The secret.
    pub fn with_webhook(&mut self) -> String {
        let secret = self.secret("webhook secret", "whs-");
        self.set_env("USHER_GITHUB_WEBHOOK_SECRET", &secret);
        secret
    }

    /// The webhook that GitHub posts to this daemon, signed with the secret of `with_webhook`.
    pub fn hook(&self, daemon: &Daemon) -> Hook {
        let secret = &self.launch.environment["USHER_GITHUB_WEBHOOK_SECRET"];
        Hook::new(daemon, secret.clone())
    }

    /// Starts `usher run`.
    pub fn daemon(&self) -> Daemon {
        self.launch.daemon()
    }

    /// Runs another verb of usher, beside the daemon or without it.
    pub fn cli(&self, arguments: &[&str]) -> Output {
        self.launch.cli(arguments)
    }

    /// A pane with an agent that behaves as Claude Code does.
    pub fn claude(&self) -> Agent {
        self.agent("claude")
    }

    /// A pane with an agent of this program name, which tells nothing about its state.
    pub fn agent(&self, name: &str) -> Agent {
        Agent::start(&self.tmux, self.dir(), name)
    }

    /// The directory that holds everything of this world; usher's own state is in `state` below it.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Every line that usher wrote, over all its processes.
    pub fn output(&self) -> Vec<String> {
        self.launch.output()
    }

    /// Makes one more secret that must not leak.
    pub fn secret(&self, name: &str, prefix: &str) -> String {
        self.secrets.issue(name, prefix)
    }

    /// The calls that no part of the world foresaw, taken out: for a story that wants them.
    pub fn take_unexpected(&self) -> Vec<String> {
        self.unexpected.take()
    }

    /// Where secrets have leaked to, as `name in file`: every file of this world, usher's output among them.
    pub fn secrets_leaked(&self) -> Vec<String> {
        let mut leaks = Vec::new();
        for path in files_below(self.dir()) {
            let bytes = fs::read(&path).unwrap_or_default();
            leaks.extend(self.secrets.found_in(&bytes).iter().map(|name| format!("{name} in {}", path.display())));
        }
        leaks
    }

    /// The files of usher's state that hold this text: the database and its log among them.
    pub fn state_holding(&self, text: &str) -> Vec<PathBuf> {
        let holds = |path: &PathBuf| {
            let bytes = fs::read(path).unwrap_or_default();
            bytes.windows(text.len()).any(|window| window == text.as_bytes())
        };
        files_below(&self.dir().join("state")).into_iter().filter(holds).collect()
    }

    /// Ends the world. The same happens when it is dropped; this says so in a story.
    pub fn finish(self) {}

    fn usual_config(&self) -> String {
        format!(
            r#"
            [state]
            root = "{dir}/state"

            [slack]
            publish = ["work-item.reply"]
            twin_wait = "300ms"
            silence = "3s"

            [github]
            repositories = ["{REPOSITORY}"]

            [webhook]
            listen = "127.0.0.1:0"

            [[people]]
            name = "Dana"
            github = "dana"
            slack = "{DANA}"

            [attachments]
            timeout = "2s"
            transcript_wait = "50ms"

            [pane]
            socket = "{socket}"
            mode_wait = "300ms"
            retry_min = "50ms"
            retry_max = "500ms"
            "#,
            dir = self.dir().display(),
            socket = self.tmux.socket().display(),
        )
    }

    fn complaints(&self) -> Vec<String> {
        let calls = self.unexpected.all().into_iter().map(|call| format!("unexpected: {call}"));
        let leaks = self.secrets_leaked().into_iter().map(|leak| format!("leaked: {leak}"));
        calls.chain(leaks).collect()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let complaints = self.complaints();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
        if std::thread::panicking() {
            self.output().iter().for_each(|line| eprintln_line(line));
            complaints.iter().for_each(|line| eprintln_line(line));
        } else {
            assert!(complaints.is_empty(), "the world is not clean:\n{}", complaints.join("\n"));
        }
    }
}

#[expect(clippy::print_stderr, reason = "a failed story is told on standard error")]
fn eprintln_line(line: &str) {
    eprintln!("{line}");
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
}

/// All that usher's processes see of the environment.
fn environment(dir: &Path, proxy: &Proxy, slack: &FakeSlack, github: &FakeGitHub) -> BTreeMap<String, String> {
    let path = |name: &str| dir.join(name).display().to_string();
    [
        ("PATH", std::env::var("PATH").unwrap_or_default()),
        ("HOME", path("home")),
        ("LANG", "C.UTF-8".to_owned()),
        ("HTTPS_PROXY", proxy.url()),
        ("SSL_CERT_FILE", path("ca.pem")),
        ("USHER_SLACK_APP_TOKEN", slack.app_token()),
        ("USHER_SLACK_BOT_TOKEN", slack.bot_token()),
        ("GH_TOKEN", github.token()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

/// Lays one table over another: tables are merged, everything else is replaced.
fn lay_over(table: &mut toml::Table, overrides: toml::Table) {
    for (key, value) in overrides {
        match (table.get_mut(&key), value) {
            (Some(toml::Value::Table(below)), toml::Value::Table(above)) => lay_over(below, above),
            (_, value) => drop(table.insert(key, value)),
        }
    }
}

/// Every regular file below a directory; sockets and links are left out.
fn files_below(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => found.extend(files_below(&entry.path())),
            Ok(kind) if kind.is_file() => found.push(entry.path()),
            _ => {}
        }
    }
    found
}
