//! The probe: what usher finds out about its world at start, and how it says so.
//!
//! Owns the checks, their fixed order and their sentences. Measuring is IO; the findings are a pure function of what was
//! measured, so that the log of a start and `usher probe` say the same. What could not be found out is never a finding.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::stream::{self, StreamExt as _};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use tokio::sync::watch;
use tokio::time::timeout;
use tracing::{info, warn};

use crate::clients::Clients;
use crate::config::Config;
use crate::core::message::Person;
use crate::core::session::Session;
use crate::core::work_item::WorkItem;
use crate::github::api::{ApiError as GitHubError, Repository};
use crate::github::auth::TokenKind;
use crate::inbox::Inbox;
use crate::layout::Layout;
use crate::slack::api::{ApiError as SlackError, AuthTest};
use crate::slack::scopes::SCOPES;
use crate::slack::socket::Link;
use crate::tmux::{Hold, Sight, Tmux, Version};

/// A check never takes longer.
const LIMIT: Duration = Duration::from_secs(5);

/// How many panes, or repositories, are asked at once.
const AT_ONCE: usize = 16;

/// Below this much free space, files are at risk.
const LITTLE_SPACE: u64 = 1024 * 1024 * 1024;

/// Clocks further apart than this make signed links and late marks wrong.
const SKEW: SignedDuration = SignedDuration::from_secs(60);

/// An answer of the world, or why there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer<T> {
    /// It is so.
    Is(T),
    /// It is not, for this reason: a finding.
    Not(String),
    /// It could not be found out: no finding.
    Unknown(String),
}

/// Everything that was measured.
#[derive(Debug, Clone)]
pub struct Measured {
    /// The configuration file, `None`: defaults.
    pub config_file: Option<String>,
    /// The state root, and the free bytes below it.
    pub state: (String, Answer<u64>),
    /// The tmux on the PATH.
    pub tmux: Answer<Version>,
    /// Each bound pane.
    pub sessions: Vec<(WorkItem, String, Answer<String>)>,
    /// The Slack side, `None`: off.
    pub slack: Option<SlackMeasured>,
    /// Whose GitHub token it is.
    pub github: Answer<String>,
    /// What kind of token it is, `None`: there is none.
    pub token_kind: Option<TokenKind>,
    /// The webhook, `None`: there is no secret, so nothing listens.
    pub webhook: Option<WebhookMeasured>,
    /// How often GitHub is read for what no delivery brought.
    pub catch_up: Duration,
    /// Each declared repository.
    pub repositories: Vec<(String, Answer<Repository>)>,
    /// People, and those of them who can speak in Slack.
    pub people: (usize, usize),
    /// How far this machine's clock is ahead of Slack's.
    pub skew: Answer<SignedDuration>,
}

/// What was measured of the webhook.
#[derive(Debug, Clone, Copy)]
pub struct WebhookMeasured {
    /// Where it listens, or would.
    pub listen: SocketAddr,
    /// When the newest message from GitHub was said.
    pub heard: Option<Timestamp>,
}

/// What was measured of Slack.
#[derive(Debug, Clone)]
pub struct SlackMeasured {
    /// The app token opens connections.
    pub app_token: Answer<()>,
    /// The bot token's identity.
    pub auth: Answer<AuthTest>,
    /// All connections of the app, ours included, where a socket is open.
    pub connections: Option<u64>,
}

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// As it should be.
    Ok,
    /// Something for the operator.
    Finding,
    /// Not measured.
    Skipped,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ok => "ok",
            Self::Finding => "finding",
            Self::Skipped => "skipped",
        })
    }
}

/// One line of the probe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Line {
    /// The check's name.
    pub check: &'static str,
    /// How it ended.
    pub status: Status,
    /// One sentence; of a finding: what is missing, what follows, the remedy.
    pub sentence: String,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "probe {} {} {}", self.check, self.status, self.sentence)
    }
}

/// Measures the world; every check side by side, each within five seconds. `link`: the daemon's own socket, if there is one.
pub async fn measure(
    config: &Config,
    layout: &Layout,
    inbox: &Inbox,
    clients: &Clients,
    tmux: &Tmux,
    link: Option<watch::Receiver<Link>>,
    listening: Option<SocketAddr>,
) -> Measured {
    let (tmux_version, sessions, slack, github, token_kind, repositories, heard) = tokio::join!(
        tmux_version(tmux),
        sessions(inbox, tmux),
        slack(config, clients, link),
        github(clients),
        clients.github.token_kind(),
        repositories(config, clients),
        inbox.last_from_github().into_future(),
    );
    let skew = match slack.as_ref().map(|slack| &slack.auth) {
        Some(Answer::Is(AuthTest { server_date: Some(date), .. })) => {
            Answer::Is(Timestamp::now().duration_since(*date))
        }
        _ => Answer::Unknown("no server told its time".to_owned()),
    };
    let in_slack = |known: &&crate::core::grant::KnownPerson| known.ids.iter().any(|id| matches!(id, Person::Slack(_)));
    Measured {
        config_file: config.file.as_ref().map(|file| file.display().to_string()),
        state: (layout.root().display().to_string(), state(layout)),
        tmux: tmux_version,
        sessions,
        slack,
        github,
        token_kind,
        repositories,
        webhook: webhook(config, listening, heard.ok().flatten()),
        catch_up: config.github.catch_up,
        people: (config.people.len(), config.people.iter().filter(in_slack).count()),
        skew,
    }
}

/// The daemon knows the real port; a probe of its own knows the configured one.
fn webhook(config: &Config, listening: Option<SocketAddr>, heard: Option<Timestamp>) -> Option<WebhookMeasured> {
    let listen = listening.unwrap_or(config.webhook.listen);
    (!config.secrets.webhook.is_empty()).then_some(WebhookMeasured { listen, heard })
}

fn state(layout: &Layout) -> Answer<u64> {
    if let Err(error) = layout.prepare() {
        return Answer::Not(format!("{error:#}"));
    }
    match rustix::fs::statvfs(layout.root()) {
        Ok(stat) => Answer::Is(stat.f_bavail.saturating_mul(stat.f_frsize)),
        Err(error) => Answer::Unknown(error.to_string()),
    }
}

async fn tmux_version(tmux: &Tmux) -> Answer<Version> {
    match tmux.version().await {
        Ok(version) => Answer::Is(version),
        Err(trouble) => Answer::Not(trouble.to_string()),
    }
}

async fn sessions(inbox: &Inbox, tmux: &Tmux) -> Vec<(WorkItem, String, Answer<String>)> {
    let bindings = inbox.bindings().await.unwrap_or_default();
    let bound = bindings.into_iter().filter_map(|binding| Some((binding.work_item, binding.session?)));
    let look = async |(work_item, session): (WorkItem, Session)| {
        let answer = match timeout(LIMIT, tmux.look(&session)).await {
            Ok(Sight::Ready(command)) => Answer::Is(command),
            Ok(Sight::Held(hold @ Hold::Dead)) => Answer::Not(format!("{hold}: start the agent again")),
            Ok(Sight::Held(hold)) if hold.is_lasting() => Answer::Not(hold.to_string()),
            Ok(Sight::Held(hold)) => Answer::Unknown(hold.to_string()),
            Err(_) => Answer::Unknown("tmux does not answer".to_owned()),
        };
        (work_item, session.pane.to_string(), answer)
    };
    side_by_side(bound, look).await
}

/// Each one asked, some at a time, the answers in the order of the questions.
async fn side_by_side<Q, A>(questions: impl Iterator<Item = Q>, ask: impl AsyncFn(Q) -> A) -> Vec<A> {
    stream::iter(questions).map(|question| ask(question)).buffered(AT_ONCE).collect().await
}

async fn slack(config: &Config, clients: &Clients, link: Option<watch::Receiver<Link>>) -> Option<SlackMeasured> {
    if !config.slack.enabled {
        return None;
    }
    let (app_token, auth) = tokio::join!(app_token(clients, link.clone()), timeout(LIMIT, clients.slack.auth_test()));
    let auth = auth.map_or_else(|_| Answer::Unknown("Slack did not answer in time".to_owned()), of_slack);
    let connections = match link.as_ref().map(|link| link.borrow().clone()) {
        Some(Link::Up { connections }) => Some(connections),
        _ => None,
    };
    Some(SlackMeasured { app_token, auth, connections })
}

/// The daemon's own socket tells; a probe of its own asks for a connection and does not use it.
async fn app_token(clients: &Clients, link: Option<watch::Receiver<Link>>) -> Answer<()> {
    let Some(mut link) = link.filter(|_| clients.slack.has_app_token()) else {
        let opened = timeout(LIMIT, clients.slack.open_connection()).await;
        return opened.map_or_else(
            |_| Answer::Unknown("Slack did not answer in time".to_owned()),
            |opened| of_slack(opened.map(|_| ())),
        );
    };
    let known = timeout(LIMIT, link.wait_for(|link| *link != Link::Connecting)).await;
    match known.ok().and_then(Result::ok).map(|link| link.clone()) {
        Some(Link::Up { .. }) => Answer::Is(()),
        Some(Link::Down { why, needs_attention: true }) => Answer::Not(why),
        Some(Link::Down { why, .. }) => Answer::Unknown(why),
        Some(Link::Connecting) | None => Answer::Unknown("the socket is still connecting".to_owned()),
    }
}

fn of_slack<T>(answer: Result<T, SlackError>) -> Answer<T> {
    match answer {
        Ok(value) => Answer::Is(value),
        Err(error @ (SlackError::Transport(_) | SlackError::RateLimited { .. })) => Answer::Unknown(error.to_string()),
        Err(error) => Answer::Not(error.to_string()),
    }
}

async fn github(clients: &Clients) -> Answer<String> {
    of_github(timeout(LIMIT, clients.github.user()).await.map(|user| user.map(|user| user.login)))
}

async fn repositories(config: &Config, clients: &Clients) -> Vec<(String, Answer<Repository>)> {
    let names = config.github.repositories.iter().filter(|_| clients.github.has_token());
    let ask = async |name: &String| (name.clone(), of_github(timeout(LIMIT, clients.github.repository(name)).await));
    side_by_side(names, ask).await
}

fn of_github<T>(answer: Result<Result<T, GitHubError>, tokio::time::error::Elapsed>) -> Answer<T> {
    match answer {
        Ok(Ok(value)) => Answer::Is(value),
        Ok(Err(error @ (GitHubError::Transport(_) | GitHubError::RateLimited(_)))) => {
            Answer::Unknown(error.to_string())
        }
        Ok(Err(error)) => Answer::Not(error.to_string()),
        Err(_) => Answer::Unknown("GitHub did not answer in time".to_owned()),
    }
}

/// The lines, in their fixed order.
pub fn lines(measured: &Measured) -> Vec<Line> {
    let mut lines = vec![config_line(measured), state_line(measured), tmux_line(measured)];
    lines.extend(session_lines(measured));
    lines.extend(slack_lines(measured));
    lines.extend(github_lines(measured));
    lines.push(people_line(measured));
    lines.push(clock_line(measured));
    lines
}

/// Whether anything is left for the operator.
pub fn has_findings(lines: &[Line]) -> bool {
    lines.iter().any(|line| line.status == Status::Finding)
}

/// Writes the lines to the log.
pub fn log(measured: &Measured) {
    for line in lines(measured) {
        match line.status {
            Status::Finding => warn!("{line}"),
            Status::Ok | Status::Skipped => info!("{line}"),
        }
    }
}

/// The line that says that usher works.
pub fn ready(measured: &Measured) -> String {
    let slack = match measured.slack.as_ref().map(|slack| &slack.app_token) {
        None => "off",
        Some(Answer::Is(())) => "up",
        Some(Answer::Not(_) | Answer::Unknown(_)) => "down",
    };
    let github = if matches!(measured.github, Answer::Is(_)) { "up" } else { "down" };
    let webhook = measured.webhook.map_or_else(|| "off".to_owned(), |webhook| webhook.listen.to_string());
    format!("ready webhook={webhook} slack={slack} github={github} sessions={}", measured.sessions.len())
}

fn line(check: &'static str, status: Status, sentence: impl Into<String>) -> Line {
    Line { check, status, sentence: sentence.into() }
}

fn skipped(check: &'static str, why: &str) -> Line {
    line(check, Status::Skipped, format!("could not be checked: {why}"))
}

fn config_line(measured: &Measured) -> Line {
    match &measured.config_file {
        Some(file) => line("config", Status::Ok, format!("read from {file}")),
        None => line(
            "config",
            Status::Finding,
            "there is no configuration file, so the defaults hold and nobody may do anything: copy config/usher.toml and name it with --config",
        ),
    }
}

fn state_line(measured: &Measured) -> Line {
    let (root, free) = &measured.state;
    match free {
        Answer::Is(free) if *free < LITTLE_SPACE => line(
            "state",
            Status::Finding,
            format!(
                "only {} MB are free below {root}, so files may be refused: make room, or move state.root",
                free / 1_000_000
            ),
        ),
        Answer::Is(free) => line("state", Status::Ok, format!("{root} is writable free_mb={}", free / 1_000_000)),
        Answer::Not(why) => {
            line("state", Status::Finding, format!("{root} cannot be used, so nothing can be kept: {why}"))
        }
        Answer::Unknown(why) => skipped("state", why),
    }
}

fn tmux_line(measured: &Measured) -> Line {
    match &measured.tmux {
        Answer::Is(version) if version.dead_pane_paste_is_fatal() => line(
            "tmux",
            Status::Ok,
            format!("version {}, so the guard against its crash on dead panes matters and is on", version.as_str()),
        ),
        Answer::Is(version) => line("tmux", Status::Ok, format!("version {}", version.as_str())),
        Answer::Not(why) => line("tmux", Status::Finding, format!("no pane can be written to: {why}")),
        Answer::Unknown(why) => skipped("tmux", why),
    }
}

fn session_lines(measured: &Measured) -> Vec<Line> {
    if measured.sessions.is_empty() {
        let sentence = "no pane is bound, so messages wait: usher bind owner/repo#12 --pane %N --slack LINK";
        return vec![line("sessions", Status::Finding, sentence)];
    }
    let one = |(item, pane, answer): &(WorkItem, String, Answer<String>)| match answer {
        Answer::Is(command) => line("sessions", Status::Ok, format!("{item} in pane {pane} is ready agent={command}")),
        Answer::Not(why) => line(
            "sessions",
            Status::Finding,
            format!("{item} in pane {pane} cannot be reached, so its messages wait: {why}"),
        ),
        Answer::Unknown(why) => line("sessions", Status::Ok, format!("{item} in pane {pane} would wait now: {why}")),
    };
    measured.sessions.iter().map(one).collect()
}

fn slack_lines(measured: &Measured) -> Vec<Line> {
    let Some(slack) = &measured.slack else {
        return vec![line("slack", Status::Skipped, "slack.enabled is false")];
    };
    let mut lines = vec![match &slack.app_token {
        Answer::Is(()) => line("slack.app_token", Status::Ok, "Socket Mode connects"),
        Answer::Not(why) => line(
            "slack.app_token",
            Status::Finding,
            format!(
                "Socket Mode does not connect, so nothing arrives from Slack: {why}; set USHER_SLACK_APP_TOKEN (xapp-, with connections:write), and see that Socket Mode is on"
            ),
        ),
        Answer::Unknown(why) => skipped("slack.app_token", why),
    }];
    match &slack.auth {
        Answer::Is(auth) => {
            lines.push(line("slack.auth", Status::Ok, format!("workspace {} bot={}", auth.team, auth.user_id)));
            lines.extend(scope_lines(auth));
        }
        Answer::Not(why) => {
            let sentence = format!(
                "the bot token does not work, so no file, mark or notice does: {why}; set USHER_SLACK_BOT_TOKEN (xoxb-), from the app as it is installed now"
            );
            lines.push(line("slack.auth", Status::Finding, sentence));
        }
        Answer::Unknown(why) => lines.push(skipped("slack.auth", why)),
    }
    if let Some(others) = slack.connections.map(|all| all.saturating_sub(1)).filter(|others| *others > 0) {
        let sentence = format!(
            "{others} other connection(s) use this app's token and take a share of the messages: stop the other consumer, or rotate the app token"
        );
        lines.push(line("slack.sockets", Status::Finding, sentence));
    }
    lines
}

fn scope_lines(auth: &AuthTest) -> Vec<Line> {
    let Some(granted) = &auth.scopes else {
        return vec![skipped("slack.scopes", "Slack did not say which scopes are granted")];
    };
    let missing: Vec<Line> = SCOPES
        .iter()
        .filter(|scope| !granted.contains(scope.name))
        .map(|scope| {
            let sentence = format!(
                "the app lacks {}, so {}: re-import manifest/slack-app.yaml and reinstall the app",
                scope.name, scope.without
            );
            line("slack.scopes", Status::Finding, sentence)
        })
        .collect();
    if missing.is_empty() { vec![line("slack.scopes", Status::Ok, "every scope is granted")] } else { missing }
}

fn github_lines(measured: &Measured) -> Vec<Line> {
    let mut lines = vec![match &measured.github {
        Answer::Is(login) => {
            let kind = measured.token_kind.unwrap_or(TokenKind::Other);
            line("github.token", Status::Ok, format!("GitHub knows the token login={login} kind={kind}"))
        }
        Answer::Not(why) => {
            line("github.token", Status::Finding, format!("records cannot be written, so they wait: {why}"))
        }
        Answer::Unknown(why) => skipped("github.token", why),
    }];
    for (name, answer) in &measured.repositories {
        lines.push(match answer {
            Answer::Is(repository) if repository.archived => {
                line("github.token", Status::Finding, format!("{name} is archived, so its tickets take no records: unarchive it, or take it out of github.repositories"))
            }
            Answer::Is(repository) => {
                let visibility = if repository.private { "private" } else { "public" };
                line("github.token", Status::Ok, format!("{name} can be read visibility={visibility}"))
            }
            Answer::Not(why) => line("github.token", Status::Finding, format!("{name} cannot be read, so its tickets take no records: {why}")),
            Answer::Unknown(why) => skipped("github.token", why),
        });
    }
    lines.extend([webhook_line(measured), assets_line(measured)]);
    lines
}

/// Without a secret nothing listens. That is a way to run usher, not a fault.
fn webhook_line(measured: &Measured) -> Line {
    match measured.webhook {
        Some(WebhookMeasured { listen, heard }) => {
            let heard = heard.map_or_else(|| "never".to_owned(), |moment| moment.to_string());
            line("github.webhook", Status::Ok, format!("the secret is set listen={listen} last={heard}"))
        }
        None => {
            let every = measured.catch_up.as_secs();
            let sentence = format!(
                "USHER_GITHUB_WEBHOOK_SECRET is not set, so nothing is delivered: the tickets are read every {every} s"
            );
            line("github.webhook", Status::Ok, sentence)
        }
    }
}

/// Which attachments of private repositories can be had (platform-facts E3). A limit of the token's kind, not a fault.
fn assets_line(measured: &Measured) -> Line {
    let Some(kind) = measured.token_kind else { return skipped("github.assets", "there is no token") };
    let sentence = match kind.reads_private_attachments() {
        Some(true) => "attachments of private repositories are fetched",
        Some(false) => {
            "GitHub hands no attachments of private repositories to this kind of token: images and videos come by the links that it signs, other files are linked only"
        }
        None => "whether attachments of private repositories can be fetched shows with the first one",
    };
    line("github.assets", Status::Ok, sentence)
}

fn people_line(measured: &Measured) -> Line {
    match measured.people {
        (0, _) => line(
            "people",
            Status::Finding,
            "[[people]] is empty, so nobody may do anything: add those who may speak to the agents",
        ),
        (all, in_slack) => line("people", Status::Ok, format!("{all} may speak, {in_slack} of them in Slack")),
    }
}

fn clock_line(measured: &Measured) -> Line {
    match &measured.skew {
        Answer::Is(skew) if skew.abs() > SKEW => {
            let sentence = format!(
                "this machine's clock is {} s off, so times on the ticket are wrong: set the clock",
                skew.as_secs()
            );
            line("clock", Status::Finding, sentence)
        }
        Answer::Is(skew) => line("clock", Status::Ok, format!("within {} s of Slack's", skew.abs().as_secs())),
        Answer::Not(why) | Answer::Unknown(why) => skipped("clock", why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item() -> WorkItem {
        "acme/widgets#12".parse().unwrap()
    }

    fn auth(scopes: Option<Vec<&str>>) -> AuthTest {
        AuthTest {
            team: "Acme".into(),
            team_id: "T0ACME".into(),
            user_id: "U0USHER".into(),
            bot_id: None,
            url: "https://acme.slack.com/".into(),
            scopes: scopes.map(|scopes| scopes.into_iter().map(str::to_owned).collect()),
            server_date: None,
        }
    }

    /// A world in which everything is as it should be.
    fn well() -> Measured {
        let scopes = SCOPES.iter().map(|scope| scope.name).collect();
        let repository = Repository { private: true, permissions: None, archived: false };
        Measured {
            config_file: Some("/etc/usher/usher.toml".into()),
            state: ("/var/lib/usher".into(), Answer::Is(70_000_000_000)),
            tmux: Answer::Is(Version::parse("tmux 3.5a")),
            sessions: vec![(item(), "%3".into(), Answer::Is("claude".into()))],
            slack: Some(SlackMeasured {
                app_token: Answer::Is(()),
                auth: Answer::Is(auth(Some(scopes))),
                connections: Some(1),
            }),
            github: Answer::Is("usher-bot".into()),
            token_kind: Some(TokenKind::Classic),
            webhook: Some(WebhookMeasured { listen: "127.0.0.1:8787".parse().unwrap(), heard: None }),
            catch_up: Duration::from_secs(900),
            repositories: vec![("acme/widgets".into(), Answer::Is(repository))],
            people: (2, 1),
            skew: Answer::Is(SignedDuration::from_secs(-2)),
        }
    }

    fn slack(app_token: Answer<()>, auth: Answer<AuthTest>, connections: Option<u64>) -> Option<SlackMeasured> {
        Some(SlackMeasured { app_token, auth, connections })
    }

    fn shown(measured: &Measured) -> String {
        let mut text: String = lines(measured).iter().map(|line| format!("{line}\n")).collect();
        text.push_str(&ready(measured));
        text
    }

    #[test]
    fn a_world_as_it_should_be() {
        assert!(!has_findings(&lines(&well())));
        insta::assert_snapshot!(shown(&well()), @"
        probe config ok read from /etc/usher/usher.toml
        probe state ok /var/lib/usher is writable free_mb=70000
        probe tmux ok version 3.5a
        probe sessions ok acme/widgets#12 in pane %3 is ready agent=claude
        probe slack.app_token ok Socket Mode connects
        probe slack.auth ok workspace Acme bot=U0USHER
        probe slack.scopes ok every scope is granted
        probe github.token ok GitHub knows the token login=usher-bot kind=classic
        probe github.token ok acme/widgets can be read visibility=private
        probe github.webhook ok the secret is set listen=127.0.0.1:8787 last=never
        probe github.assets ok attachments of private repositories are fetched
        probe people ok 2 may speak, 1 of them in Slack
        probe clock ok within 2 s of Slack's
        ready webhook=127.0.0.1:8787 slack=up github=up sessions=1
        ");
    }

    #[test]
    fn a_machine_where_nothing_is_set_up_yet() {
        let no = || "usher holds no Slack token for this".to_owned();
        let measured = Measured {
            config_file: None,
            tmux: Answer::Not("tmux could not be started (not found): install it".into()),
            sessions: Vec::new(),
            slack: slack(Answer::Not(no()), Answer::Not(no()), None),
            github: Answer::Not("usher holds no GitHub token: set GH_TOKEN".into()),
            token_kind: None,
            webhook: None,
            repositories: Vec::new(),
            people: (0, 0),
            skew: Answer::Unknown("no server told its time".into()),
            ..well()
        };
        assert!(has_findings(&lines(&measured)));
        insta::assert_snapshot!(shown(&measured), @"
        probe config finding there is no configuration file, so the defaults hold and nobody may do anything: copy config/usher.toml and name it with --config
        probe state ok /var/lib/usher is writable free_mb=70000
        probe tmux finding no pane can be written to: tmux could not be started (not found): install it
        probe sessions finding no pane is bound, so messages wait: usher bind owner/repo#12 --pane %N --slack LINK
        probe slack.app_token finding Socket Mode does not connect, so nothing arrives from Slack: usher holds no Slack token for this; set USHER_SLACK_APP_TOKEN (xapp-, with connections:write), and see that Socket Mode is on
        probe slack.auth finding the bot token does not work, so no file, mark or notice does: usher holds no Slack token for this; set USHER_SLACK_BOT_TOKEN (xoxb-), from the app as it is installed now
        probe github.token finding records cannot be written, so they wait: usher holds no GitHub token: set GH_TOKEN
        probe github.webhook ok USHER_GITHUB_WEBHOOK_SECRET is not set, so nothing is delivered: the tickets are read every 900 s
        probe github.assets skipped could not be checked: there is no token
        probe people finding [[people]] is empty, so nobody may do anything: add those who may speak to the agents
        probe clock skipped could not be checked: no server told its time
        ready webhook=off slack=down github=down sessions=0
        ");
    }

    #[test]
    fn a_world_where_much_is_wrong() {
        let archived = Repository { private: false, permissions: None, archived: true };
        let measured = Measured {
            state: ("/var/lib/usher".into(), Answer::Is(5_000_000)),
            tmux: Answer::Is(Version::parse("tmux 3.3a")),
            sessions: vec![
                (item(), "%3".into(), Answer::Not("the pane is gone: bind again".into())),
                (item(), "%4".into(), Answer::Unknown("someone is typing in the pane".into())),
            ],
            slack: slack(
                Answer::Not("Slack does not accept the token or the app (invalid_auth)".into()),
                Answer::Is(auth(Some(
                    SCOPES.iter().map(|scope| scope.name).filter(|name| *name != "files:read").collect(),
                ))),
                Some(3),
            ),
            repositories: vec![
                ("acme/old".into(), Answer::Is(archived)),
                (
                    "acme/hidden".into(),
                    Answer::Not("GitHub shows no repository acme/hidden to this token (HTTP 404)".into()),
                ),
            ],
            skew: Answer::Is(SignedDuration::from_secs(400)),
            ..well()
        };
        insta::assert_snapshot!(shown(&measured), @"
        probe config ok read from /etc/usher/usher.toml
        probe state finding only 5 MB are free below /var/lib/usher, so files may be refused: make room, or move state.root
        probe tmux ok version 3.3a, so the guard against its crash on dead panes matters and is on
        probe sessions finding acme/widgets#12 in pane %3 cannot be reached, so its messages wait: the pane is gone: bind again
        probe sessions ok acme/widgets#12 in pane %4 would wait now: someone is typing in the pane
        probe slack.app_token finding Socket Mode does not connect, so nothing arrives from Slack: Slack does not accept the token or the app (invalid_auth); set USHER_SLACK_APP_TOKEN (xapp-, with connections:write), and see that Socket Mode is on
        probe slack.auth ok workspace Acme bot=U0USHER
        probe slack.scopes finding the app lacks files:read, so files are named and linked, never fetched: re-import manifest/slack-app.yaml and reinstall the app
        probe slack.sockets finding 2 other connection(s) use this app's token and take a share of the messages: stop the other consumer, or rotate the app token
        probe github.token ok GitHub knows the token login=usher-bot kind=classic
        probe github.token finding acme/old is archived, so its tickets take no records: unarchive it, or take it out of github.repositories
        probe github.token finding acme/hidden cannot be read, so its tickets take no records: GitHub shows no repository acme/hidden to this token (HTTP 404)
        probe github.webhook ok the secret is set listen=127.0.0.1:8787 last=never
        probe github.assets ok attachments of private repositories are fetched
        probe people ok 2 may speak, 1 of them in Slack
        probe clock finding this machine's clock is 400 s off, so times on the ticket are wrong: set the clock
        ready webhook=127.0.0.1:8787 slack=down github=up sessions=2
        ");
    }

    #[test]
    fn what_could_not_be_found_out_is_no_finding() {
        let unknown = || "Slack could not be reached".to_owned();
        let measured = Measured {
            state: ("/var/lib/usher".into(), Answer::Unknown("not measured".into())),
            slack: slack(Answer::Unknown(unknown()), Answer::Unknown(unknown()), None),
            github: Answer::Unknown("GitHub could not be reached".into()),
            repositories: vec![("acme/widgets".into(), Answer::Unknown("GitHub could not be reached".into()))],
            skew: Answer::Unknown("no server told its time".into()),
            ..well()
        };
        assert!(!has_findings(&lines(&measured)));
        insta::assert_snapshot!(shown(&measured), @"
        probe config ok read from /etc/usher/usher.toml
        probe state skipped could not be checked: not measured
        probe tmux ok version 3.5a
        probe sessions ok acme/widgets#12 in pane %3 is ready agent=claude
        probe slack.app_token skipped could not be checked: Slack could not be reached
        probe slack.auth skipped could not be checked: Slack could not be reached
        probe github.token skipped could not be checked: GitHub could not be reached
        probe github.token skipped could not be checked: GitHub could not be reached
        probe github.webhook ok the secret is set listen=127.0.0.1:8787 last=never
        probe github.assets ok attachments of private repositories are fetched
        probe people ok 2 may speak, 1 of them in Slack
        probe clock skipped could not be checked: no server told its time
        ready webhook=127.0.0.1:8787 slack=down github=down sessions=1
        ");
    }

    #[test]
    fn slack_may_be_off_and_may_not_tell_its_scopes() {
        assert!(shown(&Measured { slack: None, ..well() }).contains("probe slack skipped slack.enabled is false\n"));
        let silent = slack(Answer::Is(()), Answer::Is(auth(None)), Some(1));
        let text = shown(&Measured { slack: silent, ..well() });
        assert!(
            text.contains(
                "probe slack.scopes skipped could not be checked: Slack did not say which scopes are granted\n"
            ),
            "{text}"
        );
    }
}
