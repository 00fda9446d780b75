//! From what is written to what is valid.
//!
//! Owns every rule about a value and its sentence. It must not know where a value came from (`report` does), and it
//! looks at nothing outside: whether a path exists or a token works is the probe's to say.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::environment::Environment;
use super::raw;
use super::report::Report;
use super::secrets::Secrets;
use super::{Attachments, GitHub, Ledger, Log, LogFormat, Pane, Reactions, Slack, State, Webhook};
use super::{sources, units};
use crate::core::act::{self, Act};
use crate::core::grant::KnownPerson;
use crate::core::message::Person;
use crate::core::prompt::{self, Prompt};
use crate::core::session::Listen;
use crate::core::work_item::WorkItem;

impl GitHub {
    /// An app is known by its id and its key, and by neither alone.
    pub(super) fn check(&self, secrets: &Secrets, report: &mut Report) {
        match (self.app_id, &secrets.github_app_key) {
            (Some(_), None) => report.key("github.app_id", "needs the app's private key: set USHER_GITHUB_APP_KEY, or its _FILE"),
            (None, Some(_)) => report.other("USHER_GITHUB_APP_KEY is set and github.app_id is not: write the App ID of the app's settings page there"),
            (Some(_), Some(_)) | (None, None) => {}
        }
    }
}

/// The rules, with what they need. A rule that finds a problem reports it and answers with a stand-in that nobody sees:
/// with a problem there is no configuration.
pub(super) struct Validator<'a> {
    pub(super) environment: &'a Environment,
    pub(super) report: &'a mut Report,
}

impl Validator<'_> {
    pub(super) fn state(&mut self, raw: &raw::State) -> State {
        State { root: self.path("state.root", &raw.root) }
    }

    pub(super) fn slack(&mut self, raw: &raw::Slack) -> Slack {
        Slack {
            enabled: raw.enabled,
            publish: self.acts("slack.publish", &raw.publish),
            listen: self.listen("slack.listen", &raw.listen),
            ledger_private_channels: raw.ledger_private_channels,
            twin_wait: self.duration("slack.twin_wait", &raw.twin_wait),
            catch_up: self.wait("slack.catch_up", &raw.catch_up, "the conversations would be read without a pause"),
            silence: self.wait("slack.silence", &raw.silence, "every connection would count as dead at once"),
            reactions: self.reactions(&raw.reactions),
        }
    }

    fn reactions(&mut self, raw: &raw::Reactions) -> Reactions {
        Reactions {
            received: self.reaction("slack.reactions.received", &raw.received),
            waiting: self.reaction("slack.reactions.waiting", &raw.waiting),
            done: self.reaction("slack.reactions.done", &raw.done),
            unsure: self.reaction("slack.reactions.unsure", &raw.unsure),
            failed: self.reaction("slack.reactions.failed", &raw.failed),
        }
    }

    pub(super) fn github(&mut self, raw: &raw::GitHub) -> GitHub {
        GitHub {
            host: self.host("github.host", &raw.host),
            app_id: self.app_id("github.app_id", raw.app_id),
            repositories: self.repositories("github.repositories", &raw.repositories),
            publish: self.acts("github.publish", &raw.publish),
            limit_wait: self.wait("github.limit_wait", &raw.limit_wait, "usher would hammer a limit that GitHub set"),
            catch_up: self.wait("github.catch_up", &raw.catch_up, "the repositories would be read without a pause"),
        }
    }

    /// 0: no app.
    fn app_id(&mut self, key: &str, id: i64) -> Option<u64> {
        let read = u64::try_from(id);
        let id =
            read.unwrap_or_else(|_| self.refuse(key, "must be the App ID of the app's settings page, or 0: no app", 0));
        (id > 0).then_some(id)
    }

    pub(super) fn people(&mut self, raw: &[raw::Person]) -> Vec<KnownPerson> {
        let mut taken = Vec::new();
        raw.iter().enumerate().map(|(index, person)| self.person(index, person, &mut taken)).collect()
    }

    pub(super) fn attachments(&mut self, raw: &raw::Attachments) -> Attachments {
        let attachments = Attachments {
            receive: raw.receive,
            max_files: self.count("attachments.max_files", raw.max_files, 1, "receive = false turns files off"),
            max_bytes: self.size("attachments.max_bytes", &raw.max_bytes, "receive = false turns files off"),
            parallel: self.count("attachments.parallel", raw.parallel, 1, "no file could ever be fetched"),
            mode: self.mode("attachments.mode", &raw.mode),
            timeout: self.wait("attachments.timeout", &raw.timeout, "no transfer could ever succeed"),
            deadline: self.wait("attachments.deadline", &raw.deadline, "no file could ever arrive with its message"),
            file_deadline: self.wait("attachments.file_deadline", &raw.file_deadline, "no transfer could ever succeed"),
            transcript_retries: self.count("attachments.transcript_retries", raw.transcript_retries, 0, "0 asks once"),
            transcript_wait: self.wait("attachments.transcript_wait", &raw.transcript_wait, "usher would hammer Slack"),
            transcript_poll: self.wait("attachments.transcript_poll", &raw.transcript_poll, "usher would hammer Slack"),
        };
        let (message, file) = (attachments.deadline, attachments.file_deadline);
        self.ordered(("attachments.deadline", message), ("attachments.file_deadline", file));
        attachments
    }

    pub(super) fn ledger(&mut self, raw: &raw::Ledger) -> Ledger {
        Ledger { patience: self.duration("ledger.patience", &raw.patience) }
    }

    pub(super) fn pane(&mut self, raw: &raw::Pane) -> Pane {
        let pane = Pane {
            socket: self.socket(&raw.socket),
            agent_home: self.path("pane.agent_home", &raw.agent_home),
            claude_config: self
                .environment
                .get("CLAUDE_CONFIG_DIR")
                .map(|path| self.environment.directory().join(path)),
            timeout: self.wait("pane.timeout", &raw.timeout, "no call of tmux could ever succeed"),
            mode_wait: self.duration("pane.mode_wait", &raw.mode_wait),
            retry_min: self.wait("pane.retry_min", &raw.retry_min, "usher would look at the pane without a pause"),
            retry_max: self.wait("pane.retry_max", &raw.retry_max, "usher would look at the pane without a pause"),
            evidence: self.wait("pane.evidence", &raw.evidence, "every delivery would end as unsure"),
        };
        self.ordered(("pane.retry_min", pane.retry_min), ("pane.retry_max", pane.retry_max));
        pane
    }

    pub(super) fn webhook(&mut self, raw: &raw::Webhook) -> Webhook {
        let stand_in = SocketAddr::from(([127, 0, 0, 1], 0));
        let listen = raw.listen.parse().unwrap_or_else(|_| {
            self.refuse("webhook.listen", "is not an address and a port, such as \"127.0.0.1:8787\"", stand_in)
        });
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.".contains(&byte);
        if !raw.path.starts_with('/') || !raw.path.bytes().all(plain) {
            self.report.key("webhook.path", "must begin with / and be made of letters, digits, -, _ and .");
        }
        let max_body = self.size("webhook.max_body", &raw.max_body, "no delivery could ever arrive");
        if ["/healthz", "/readyz"].contains(&raw.path.as_str()) {
            self.report.key("webhook.path", "must be another one: /healthz and /readyz tell how usher is");
        }
        Webhook { listen, path: raw.path.clone(), max_body: usize::try_from(max_body).unwrap_or(usize::MAX) }
    }

    pub(super) fn prompt(&mut self, raw: &raw::Prompt) -> Prompt {
        let template = if raw.event.is_empty() { prompt::EVENT } else { &raw.event };
        Prompt::new(template).unwrap_or_else(|bad| self.refuse("prompt.event", bad, Prompt::default()))
    }

    pub(super) fn log(&mut self, raw: &raw::Log) -> Log {
        let format = match raw.format.as_str() {
            "text" => LogFormat::Text,
            "json" => LogFormat::Json,
            _ => self.refuse("log.format", "must be \"text\" or \"json\"", LogFormat::Text),
        };
        Log { format, filter: self.environment.get("RUST_LOG").map(str::to_owned) }
    }

    /// Reports a problem; answers with the stand-in.
    fn refuse<T>(&mut self, key: &str, sentence: impl std::fmt::Display, stand_in: T) -> T {
        self.report.key(key, sentence);
        stand_in
    }

    /// A duration that may be zero.
    fn duration(&mut self, key: &str, text: &str) -> Duration {
        units::duration(text).unwrap_or_else(|sentence| self.refuse(key, sentence, Duration::from_secs(1)))
    }

    /// A duration that zero would make nonsense of, and why.
    fn wait(&mut self, key: &str, text: &str, why: &str) -> Duration {
        let read = self.duration(key, text);
        if read.is_zero() { self.refuse(key, format_args!("must be above zero: {why}"), read) } else { read }
    }

    fn size(&mut self, key: &str, text: &str, why: &str) -> u64 {
        match units::size(text) {
            Ok(0) => self.refuse(key, format_args!("must be above zero: {why}"), 0),
            Ok(bytes) => bytes,
            Err(sentence) => self.refuse(key, sentence, 0),
        }
    }

    fn count(&mut self, key: &str, number: i64, least: u32, why: &str) -> u32 {
        let counted = u32::try_from(number).ok().filter(|count| (least..=1_000).contains(count));
        counted.unwrap_or_else(|| self.refuse(key, format_args!("must be from {least} to 1000: {why}"), least))
    }

    fn ordered(&mut self, (shorter_key, shorter): (&str, Duration), (longer_key, longer): (&str, Duration)) {
        if shorter > longer {
            self.report.key(shorter_key, format_args!("must not be longer than {longer_key}"));
        }
    }

    /// A path, absolute: `~` is the home directory, anything relative belongs to the working directory.
    fn path(&mut self, key: &str, text: &str) -> PathBuf {
        if text.is_empty() {
            return self.refuse(key, "must name a directory", PathBuf::new());
        }
        let Some(below_home) = text.strip_prefix('~') else { return self.environment.directory().join(text) };
        match self.environment.get("HOME") {
            Some(home) if below_home.is_empty() => PathBuf::from(home),
            Some(home) if below_home.starts_with('/') => {
                PathBuf::from(format!("{}{below_home}", home.trim_end_matches('/')))
            }
            Some(_) => self.refuse(key, "names somebody else's home: write the whole path", PathBuf::new()),
            None => self.refuse(key, "begins with ~, and HOME is not set: write the whole path", PathBuf::new()),
        }
    }

    /// The tmux socket: as configured, else the one that usher itself runs in, else the one that tmux takes by itself.
    fn socket(&mut self, text: &str) -> PathBuf {
        if !text.is_empty() {
            return self.path("pane.socket", text);
        }
        // $TMUX is `socket,pid,session`; only the first may hold a comma of its own.
        let inside = self.environment.get("TMUX").and_then(|value| value.rsplitn(3, ',').nth(2));
        let default = || {
            let directory = self.environment.get("TMUX_TMPDIR").unwrap_or("/tmp");
            PathBuf::from(format!("{directory}/tmux-{}/default", rustix::process::getuid().as_raw()))
        };
        inside.filter(|path| !path.is_empty()).map_or_else(default, PathBuf::from)
    }

    fn acts(&mut self, key: &str, names: &[String]) -> BTreeSet<Act> {
        let mut acts = BTreeSet::new();
        for (index, name) in names.iter().enumerate() {
            match name.parse() {
                Ok(act) => drop(acts.insert(act)),
                Err(_) => {
                    let known = act::ALL.map(Act::name).join(", ");
                    self.report.key(key, format_args!("has no act as entry {}: the acts are {known}", index + 1));
                }
            }
        }
        acts
    }

    fn listen(&mut self, key: &str, text: &str) -> Listen {
        match text {
            "all" => Listen::All,
            "mentions" => Listen::Mentions,
            _ => self.refuse(key, "must be \"all\" or \"mentions\"", Listen::Mentions),
        }
    }

    /// The name of an emoji; empty turns this mark off.
    fn reaction(&mut self, key: &str, name: &str) -> Option<String> {
        let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_+'-".contains(&byte);
        if name.len() <= 100 && name.bytes().all(allowed) {
            return Some(name.to_owned()).filter(|name| !name.is_empty());
        }
        self.refuse(
            key,
            "is not the name of an emoji: write it without colons, such as \"eyes\", or \"\" for no mark",
            None,
        )
    }

    fn host(&mut self, key: &str, text: &str) -> String {
        let host = text.to_ascii_lowercase();
        let label = |label: &str| {
            !label.is_empty()
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
                && !label.starts_with('-')
        };
        if host.len() <= 253 && host.contains('.') && host.split('.').all(label) {
            return host;
        }
        self.refuse(
            key,
            "is not a host name: write it alone, such as \"github.com\", without https:// and slashes",
            host,
        )
    }

    fn repositories(&mut self, key: &str, names: &[String]) -> Vec<String> {
        let mut repositories = Vec::new();
        for (index, name) in names.iter().enumerate() {
            match repository(name) {
                Some(name) if repositories.contains(&name) => {
                    self.report.key(key, format_args!("has entry {} twice: remove one", index + 1));
                }
                Some(name) => repositories.push(name),
                None => {
                    self.report.key(key, format_args!("has no repository as entry {}: write owner/repo", index + 1))
                }
            }
        }
        repositories
    }

    /// The mode of saved files, octal.
    fn mode(&mut self, key: &str, text: &str) -> u32 {
        let octal = matches!(text.len(), 3 | 4) && text.bytes().all(|byte| (b'0'..=b'7').contains(&byte));
        let Some(mode) = u32::from_str_radix(text, 8).ok().filter(|mode| octal && *mode <= 0o777) else {
            return self.refuse(key, "is not a file mode: write it in octal, such as \"0400\" or \"0440\"", 0o400);
        };
        match mode {
            mode if mode & 0o400 == 0 => self.refuse(key, "must let the owner read: add 0400", mode),
            mode if mode & 0o022 != 0 => {
                self.refuse(key, "must not let group or others write: others could swap what the agent reads", mode)
            }
            mode if mode & 0o111 != 0 => self.refuse(key, "must not be executable: files from outside are data", mode),
            mode => mode,
        }
    }

    fn person(&mut self, index: usize, raw: &raw::Person, taken: &mut Vec<(Person, usize)>) -> KnownPerson {
        let entry = sources::person_key(index);
        let name = self.name(&format!("{entry}.name"), &raw.name);
        let slack = self.slack_id(&format!("{entry}.slack"), &raw.slack);
        let github = self.login(&format!("{entry}.github"), &raw.github);
        if raw.slack.is_empty() && raw.github.is_empty() {
            self.report.key(&entry, "has neither slack nor github: add one, it is how a person is recognised");
        }
        let ids: Vec<Person> = slack.into_iter().chain(github).collect();
        for id in &ids {
            if let Some((_, other)) = taken.iter().find(|(other, _)| other == id) {
                self.report
                    .key(&entry, format_args!("has an id of {}: one person, one entry", sources::person_key(*other)));
            }
        }
        taken.extend(ids.iter().map(|id| (id.clone(), index)));
        KnownPerson { name, ids }
    }

    fn name(&mut self, key: &str, text: &str) -> String {
        let name = text.trim();
        let plain = !name.is_empty() && name.chars().count() <= 80 && !name.chars().any(breaks_a_line);
        if plain {
            name.to_owned()
        } else {
            self.refuse(key, "must be a name of one line, at most 80 characters", String::new())
        }
    }

    fn slack_id(&mut self, key: &str, text: &str) -> Option<Person> {
        let rest = text.strip_prefix(['U', 'W']).unwrap_or_default();
        let is_id = rest.len() >= 2 && rest.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
        if is_id || text.is_empty() {
            return is_id.then(|| Person::Slack(text.to_owned()));
        }
        let how = "in Slack open the person's profile, then the three dots, then \"Copy member ID\"";
        self.refuse(key, format_args!("is not a member id (U0456GHIJ; names and handles change): {how}"), None)
    }

    fn login(&mut self, key: &str, text: &str) -> Option<Person> {
        // Enterprise-managed logins end in _SHORTCODE, so the underscore is a part of some.
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if text.len() <= 100 && text.bytes().all(allowed) {
            return Some(text)
                .filter(|login| !login.is_empty())
                .map(|login| Person::GitHub(login.to_ascii_lowercase()));
        }
        self.refuse(key, "is not a GitHub login: write it without @ and without https://github.com/", None)
    }
}

/// Control characters, line separators and those that turn or hide what follows them.
fn breaks_a_line(c: char) -> bool {
    let turns = matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    c.is_control() || turns
}

/// `owner/repo`, lower-cased, in the alphabet that work items have.
fn repository(name: &str) -> Option<String> {
    let item: WorkItem = format!("{name}#1").parse().ok()?;
    (name.matches('/').count() == 1).then(|| item.repository())
}
