//! `usher bind` and `usher unbind`.
//!
//! Owns turning what a person typed into a binding. The running daemon sees the result at once, because it reads the
//! bindings anew for every message.

use std::path::PathBuf;

use anyhow::bail;
use jiff::{SignedDuration, Timestamp};

use super::{Ended, Item, Json, ListenArgument, block_on, open_inbox, pane_id, print_as};
use crate::clients;
use crate::config::{Config, duration};
use crate::core::session::{Binding, Conversation, PaneId, Session};
use crate::core::work_item::WorkItem;
use crate::inbox::bindings::Bind;
use crate::inbox::{Inbox, portable};
use crate::layout::Layout;
use crate::slack::link;

/// What `usher bind` takes.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// owner/repo#12, or host/owner/repo#12 on an Enterprise host
    work_item: WorkItem,
    /// The pane of the agent, as tmux shows it: %3
    #[arg(long, value_parser = pane_id, value_name = "%N", required_unless_present = "slack")]
    pane: Option<PaneId>,
    /// The socket of the tmux server [default: pane.socket, else $TMUX, else the user's own server]
    #[arg(long, value_name = "PATH", requires = "pane")]
    socket: Option<PathBuf>,
    /// The agent's profile [default: recognised by what runs in the pane]
    #[arg(long, value_name = "NAME", requires = "pane")]
    agent: Option<String>,
    /// A Slack message's link (its thread is bound), CHANNEL (the room), or CHANNEL/TS
    #[arg(long, value_name = "LINK|CHANNEL[/TS]")]
    slack: Option<String>,
    /// Which messages of the conversation count [default: as slack.listen says; in a room, mentions]
    #[arg(long, value_enum, requires = "slack")]
    listen: Option<ListenArgument>,
    /// Deliver what was said in the conversation since then: a time (2026-12-01T10:00Z) or an age (2h) [default: now]
    #[arg(long, value_parser = since, requires = "slack", value_name = "TIME|AGE")]
    since: Option<Timestamp>,
    #[command(flatten)]
    json: Json,
}

/// Binds a work item to a pane, to a conversation, or to both.
pub(super) fn bind(config: &Config, arguments: &Arguments) -> anyhow::Result<Ended> {
    let conversation = arguments.slack.as_deref().map(|text| conversation(text, arguments)).transpose()?;
    let session = arguments.pane.as_ref().map(|pane| session(config, arguments, pane)).transpose()?;
    let (layout, inbox) = open_inbox(config)?;
    let item = &arguments.work_item;
    match inbox.bind(item, session, conversation).wait()? {
        Bind::Bound => {}
        Bind::PaneTaken(owner) => bail!("that pane belongs to {owner}: usher unbind {owner} first"),
        Bind::ConversationTaken(owner) => bail!("that conversation belongs to {owner}: usher unbind {owner} first"),
    }
    let Some(binding) = save(&layout, &inbox, item)? else { bail!("the binding of {item} was taken away meanwhile") };
    print_as(arguments.json, &binding, text)
}

/// Takes every binding of a work item away.
pub(super) fn unbind(config: &Config, item: &Item) -> anyhow::Result<Ended> {
    let (layout, inbox) = open_inbox(config)?;
    let was_bound = inbox.unbind(&item.work_item).wait()?;
    save(&layout, &inbox, &item.work_item)?;
    let said =
        if was_bound { "is no longer bound; messages under way wait until it is bound again" } else { "was not bound" };
    let outcome = serde_json::json!({ "work_item": item.work_item, "was_bound": was_bound });
    print_as(item.json, &outcome, |_| format!("{} {said}\n", item.work_item))?;
    Ok(if was_bound { Ended::Well } else { Ended::WithFindings })
}

fn conversation(text: &str, arguments: &Arguments) -> anyhow::Result<Conversation> {
    let target = link::parse(text)?;
    let since = arguments.since.unwrap_or_else(Timestamp::now);
    Ok(Conversation {
        channel: target.channel,
        thread: target.thread,
        listen: arguments.listen.map(Into::into),
        since,
        read_to: since,
    })
}

fn since(text: &str) -> Result<Timestamp, String> {
    if let Ok(moment) = text.parse() {
        return Ok(moment);
    }
    let age = duration(text).ok().and_then(|age| SignedDuration::try_from(age).ok());
    let moment = age.and_then(|age| Timestamp::now().checked_sub(age).ok());
    moment.ok_or_else(|| "this is neither a time (2026-12-01T10:00Z) nor an age (2h)".to_owned())
}

fn session(config: &Config, arguments: &Arguments, pane: &PaneId) -> anyhow::Result<Session> {
    let socket = arguments.socket.clone().unwrap_or_else(|| config.pane.socket.clone());
    let tmux = clients::tmux(config)?;
    block_on(async { Ok(tmux.find(&socket, pane, arguments.agent.as_deref()).await?) })
}

/// Brings the portable file in line with the database.
fn save(layout: &Layout, inbox: &Inbox, item: &WorkItem) -> anyhow::Result<Option<Binding>> {
    let binding = inbox.bindings().wait()?.into_iter().find(|binding| binding.work_item == *item);
    portable::save(&layout.portable(), item, binding.as_ref())?;
    Ok(binding)
}

fn text(binding: &Binding) -> String {
    let pane = binding.session.as_ref().map(|session| format!("pane {} ({})", session.pane, session.agent));
    let places = binding.conversations.iter().map(|it| match &it.thread {
        Some(thread) => format!("thread {}/{thread}", it.channel),
        None => format!("room {}", it.channel),
    });
    let bound: Vec<String> = pane.into_iter().chain(places).collect();
    format!("{} is bound to {}\n", binding.work_item, bound.join(", "))
}
