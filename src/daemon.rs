//! The daemon: builds everything, starts it, and stops it in order.
//!
//! Owns which part gets which other one. It must not contain a decision about a message.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use jiff::{SignedDuration, Timestamp};
use sd_notify::NotifyState;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{interval, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, info};

use crate::clients::Clients;
use crate::config::{Config, Reactions};
use crate::core::envelope::EnvelopeKey;
use crate::core::feedback::Mark;
use crate::core::grant::Grants;
use crate::core::message::Person;
use crate::fetch::{Directory, Fetcher};
use crate::github::event::Own;
use crate::github::identity;
use crate::github::ledger::Ledger;
use crate::github::pace::Pace;
use crate::github::webhook::{self, Webhook};
use crate::health::Health;
use crate::inbox::messages::{Arrival, PRUNED_AT_ONCE};
use crate::inbox::{Inbox, portable};
use crate::layout::{Layout, Lock};
use crate::pipeline::{Downloads, Nudges, Pipeline};
use crate::slack::catch_up::CatchUp;
use crate::slack::event::{Copy, Names, What};
use crate::slack::feedback::Feedback;
use crate::slack::socket::{Link, Socket};
use crate::slack::{self, Workspace, workspace};
use crate::{clients, github, health, probe, serve};

/// What is under way when usher is told to stop has this long; the whole stop takes less than ten seconds.
const GRACE: Duration = Duration::from_secs(8);

/// Runs until SIGTERM or SIGINT, or until a part ends that should not.
pub async fn run(config: Config) -> anyhow::Result<()> {
    let started = Timestamp::now();
    let signals = Signals::catch()?;
    let layout = Layout::new(&config.state.root);
    layout.prepare()?;
    let _lock = Lock::take(&layout)?;
    Directory::sweep_all(&layout.attachments());
    let key = EnvelopeKey::new(layout.key()?);
    let (inbox, inbox_thread) = Inbox::open(&layout.database())?;
    for id in inbox.set_aside_unreadable(started).await? {
        error!(%id, "a stored message cannot be read: it is given up, see usher inbox list");
    }
    portable::adopt(&inbox, &layout.portable()).await?;
    let clients = Clients::new(&config)?;
    let (tell_workspace, workspace) = watch::channel(None);
    let (tell_link, link) = watch::channel(Link::Connecting);
    let stop = CancellationToken::new();

    let pace = Pace::default();
    let ledger = Ledger::new(inbox.clone(), clients.github.clone(), key.clone(), started, pace.clone());
    let pipeline = Arc::new(Pipeline {
        inbox: inbox.clone(),
        grants: grants(&config),
        names: names(&config),
        listen: config.slack.listen,
        disclose_private: config.slack.ledger_private_channels,
        slack: clients.slack.clone(),
        workspace: workspace.clone(),
        github: clients.github.clone(),
        fetcher: Fetcher::new(clients.net.clone()),
        downloads: Downloads::default(),
        tripped: std::sync::Mutex::default(),
        tmux: clients::tmux(&config)?,
        next_write: pace.next_write(),
        key: key.clone(),
        prompt: config.prompt.clone(),
        github_host: config.github.enterprise_host(),
        layout: layout.clone(),
        limits: config.attachments.clone(),
        patience: config.ledger.patience,
        nudges: Nudges::default(),
        pane: config.pane.clone(),
    });
    let mut tasks = JoinSet::new();
    let own = Own { key: Some(key.clone()), ..Own::default() };
    let (tell_own, own) = watch::channel(own);
    let mut listening = None;
    if !config.secrets.webhook.is_empty() {
        let listener = TcpListener::bind(config.webhook.listen).await;
        let listener = listener.with_context(|| format!("webhook.listen {} cannot be used", config.webhook.listen))?;
        let address = listener.local_addr()?;
        info!("accepting webhook={address}");
        listening = Some(address);
        let health = Health {
            inbox: inbox.clone(),
            github: clients.github.clone(),
            slack: config.slack.enabled.then(|| link.clone()),
            root: layout.root().to_owned(),
            asked: tokio::sync::Mutex::default(),
        };
        let routes = webhook::route(&config.webhook.path, webhook(&config, &inbox, own.clone()));
        let routes = routes.merge(health::routes(health));
        let serving = serve::serve(listener, routes, stop.clone());
        tasks.spawn(named("webhook", unfailing(serving)));
    }
    if clients.github.has_token() && !config.github.repositories.is_empty() {
        let (api, asking) = (clients.github.clone(), stop.clone());
        tasks.spawn(named("github login", unfailing(identity::identify(api, tell_own, asking))));
        let catch_up = github::catch_up::CatchUp {
            inbox: inbox.clone(),
            api: clients.github.clone(),
            grants: grants(&config),
            repositories: config.github.repositories.clone(),
            host: config.github.enterprise_host(),
            own,
            every: config.github.catch_up,
        };
        tasks.spawn(named("github catch-up", catch_up.run(stop.clone())));
    }
    let feedback = Feedback::new(inbox.clone(), clients.slack.clone(), emoji(&config.slack.reactions));
    tasks.spawn(named("pipeline", pipeline.run(stop.clone())));
    tasks.spawn(named("ledger", ledger.run(stop.clone())));
    tasks.spawn(named("slack feedback", feedback.run(stop.clone())));
    let github_feedback = github::feedback::Feedback { inbox: inbox.clone(), api: clients.github.clone(), pace, key };
    tasks.spawn(named("github feedback", github_feedback.run(stop.clone())));
    tasks.spawn(named("housekeeping", prune(inbox.clone(), stop.clone())));
    // Without its token a part would only fail again and again: the probe says what is missing.
    if config.slack.enabled && config.secrets.slack_bot.is_some() {
        let (api, asking) = (clients.slack.clone(), stop.clone());
        tasks.spawn(named("slack workspace", unfailing(workspace::identify(api, tell_workspace, asking))));
    }
    if config.slack.enabled && config.secrets.slack_app.is_some() {
        let store = store(inbox.clone(), grants(&config), names(&config), workspace.clone(), config.slack.twin_wait);
        let socket = Socket::new(clients.net.clone(), clients.slack.clone(), config.slack.silence);
        let (found, listening) = (stop.clone(), stop.clone());
        let catch_up = CatchUp {
            inbox: inbox.clone(),
            api: clients.slack.clone(),
            grants: grants(&config),
            names: names(&config),
            workspace,
            link: link.clone(),
            every: config.slack.catch_up,
        };
        tasks.spawn(named("slack catch-up", catch_up.run(found)));
        tasks.spawn(named("slack socket", unfailing(socket.run(store, tell_link, listening))));
    }
    let panes = clients::tmux(&config)?;
    let check = async {
        let measured = probe::measure(&config, &layout, &inbox, &clients, &panes, Some(link), listening).await;
        probe::log(&measured);
        info!("{}", probe::ready(&measured));
        notify(&[NotifyState::Ready]);
        std::future::pending().await
    };
    let outcome = tokio::select! {
        outcome = until_told_to_stop(&mut tasks, signals) => outcome,
        never = check => never,
    };
    notify(&[NotifyState::Stopping]);
    stop.cancel();
    if timeout(GRACE, async { while tasks.join_next().await.is_some() {} }).await.is_err() {
        info!("what was still under way is resumed at the next start");
        tasks.shutdown().await;
    }
    drop(inbox);
    drop(inbox_thread);
    info!("stopped");
    outcome
}

/// The signals that mean: stop in order.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// From here on they no longer end the process by themselves.
    fn catch() -> anyhow::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate()).context("SIGTERM cannot be waited for")?,
            interrupt: signal(SignalKind::interrupt()).context("SIGINT cannot be waited for")?,
        })
    }
}

/// Waits for a signal. A part that ends by itself before that is a fault of usher: better restarted than half alive.
async fn until_told_to_stop(
    tasks: &mut JoinSet<(&'static str, anyhow::Result<()>)>,
    mut signals: Signals,
) -> anyhow::Result<()> {
    loop {
        tokio::select! {
            _ = signals.terminate.recv() => { info!("SIGTERM: stopping"); return Ok(()) }
            _ = signals.interrupt.recv() => { info!("SIGINT: stopping"); return Ok(()) }
            Some(ended) = tasks.join_next() => match ended {
                Ok(("slack workspace" | "github login", Ok(()))) => {}
                Ok((part, outcome)) => {
                    let cause = outcome.err().unwrap_or_else(|| anyhow::anyhow!("it ended by itself"));
                    error!(part, error = format!("{cause:#}"), "a part of usher ended: stopping");
                    return Err(cause.context(format!("the {part} ended")));
                }
                Err(panicked) => {
                    error!(error = %panicked, "a part of usher panicked: stopping");
                    return Err(panicked.into());
                }
            },
        }
    }
}

async fn named(
    part: &'static str,
    work: impl Future<Output = anyhow::Result<()>>,
) -> (&'static str, anyhow::Result<()>) {
    (part, work.await)
}

/// A part that deals with every trouble itself.
async fn unfailing(work: impl Future<Output = ()>) -> anyhow::Result<()> {
    work.await;
    Ok(())
}

/// What becomes of an envelope: stored, and the future resolves when it is durable. Runs in the order of the frames.
fn store(
    inbox: Inbox,
    grants: Grants,
    names: Names,
    workspace: watch::Receiver<Option<Workspace>>,
    twin_wait: Duration,
) -> impl Fn(Value) -> std::pin::Pin<Box<dyn Future<Output = anyhow::Result<()>> + Send>> + Clone {
    let (grants, names) = (Arc::new(grants), Arc::new(names));
    move |payload| {
        let own = workspace.borrow().as_ref().map(|workspace| workspace.user_id.clone());
        let event = slack::event::read(&payload, own.as_deref(), &names);
        let (message, copy) = match event.what {
            What::Message { message, copy } => (grants.keepable(*message), copy),
            What::FileChanged(file) => return Box::pin(inbox.file_changed(file, Timestamp::now()).into_future()),
            What::PassedOver(why) => {
                debug!(reason = why.code(), "passed over");
                return Box::pin(std::future::ready(Ok(())));
            }
        };
        let now = Timestamp::now();
        let incomplete = copy == Copy::Mention && message.attachments.is_empty() && !twin_wait.is_zero();
        let twin_until = incomplete.then(|| now + SignedDuration::try_from(twin_wait).unwrap_or_default());
        let id = message.id.clone();
        let stored = inbox.put(Arrival { message, event: event.event_id.unwrap_or_default(), twin_until, now });
        Box::pin(async move {
            let put = stored.await?;
            info!(%id, outcome = ?put, "accepted");
            Ok(())
        })
    }
}

fn webhook(config: &Config, inbox: &Inbox, own: watch::Receiver<Own>) -> Webhook {
    Webhook {
        inbox: inbox.clone(),
        grants: grants(config),
        secrets: config.secrets.webhook.clone(),
        max_body: config.webhook.max_body,
        repositories: config.github.repositories.clone(),
        host: config.github.enterprise_host(),
        own,
    }
}

async fn prune(inbox: Inbox, stop: CancellationToken) -> anyhow::Result<()> {
    let mut hourly = interval(Duration::from_secs(3_600));
    loop {
        tokio::select! {
            _ = hourly.tick() => {
                while inbox.prune(Timestamp::now()).await? == PRUNED_AT_ONCE {}
                debug!("housekeeping");
            }
            () = stop.cancelled() => return Ok(()),
        }
    }
}

fn grants(config: &Config) -> Grants {
    Grants {
        people: config.people.clone(),
        slack_publish: config.slack.publish.clone(),
        github_publish: config.github.publish.clone(),
    }
}

fn names(config: &Config) -> Names {
    let slack = |person: &Person| match person {
        Person::Slack(id) => Some(id.clone()),
        Person::GitHub(_) => None,
    };
    let named =
        config.people.iter().flat_map(|known| known.ids.iter().filter_map(slack).map(|id| (id, known.name.clone())));
    Names::new(named)
}

fn emoji(reactions: &Reactions) -> BTreeMap<Mark, String> {
    let all = [
        (Mark::Received, &reactions.received),
        (Mark::Waiting, &reactions.waiting),
        (Mark::Done, &reactions.done),
        (Mark::Unsure, &reactions.unsure),
        (Mark::Failed, &reactions.failed),
    ];
    all.into_iter().filter_map(|(mark, emoji)| Some((mark, emoji.clone()?))).collect()
}

/// Tells systemd, where it listens.
fn notify(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        debug!(%error, "systemd was not told");
    }
}
