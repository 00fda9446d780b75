//! `usher sessions` and `usher status`.
//!
//! Owns how the state of usher reads for a person. It changes nothing.

use serde::Serialize;

use super::{Ended, Json, block_on, open_inbox, print_as};
use crate::clients;
use crate::config::Config;
use crate::core::session::Binding;
use crate::inbox::operator::Counts;
use crate::layout::{Lock, NotTaken};
use crate::tmux::{Sight, Tmux};

#[derive(Serialize)]
struct Seen {
    #[serde(flatten)]
    binding: Binding,
    state: String,
}

/// Shows each binding, and whether a message would be delivered now.
pub(super) fn sessions(config: &Config, json: Json) -> anyhow::Result<Ended> {
    let (_layout, inbox) = open_inbox(config)?;
    let bindings = inbox.bindings().wait()?;
    let tmux = clients::tmux(config)?;
    let seen: Vec<Seen> = block_on(async {
        let mut seen = Vec::new();
        for binding in bindings {
            let state = state(&tmux, &binding).await;
            seen.push(Seen { binding, state });
        }
        Ok(seen)
    })?;
    print_as(json, &seen, |seen| match seen.is_empty() {
        true => "nothing is bound: usher bind owner/repo#12 --pane %N --slack LINK\n".to_owned(),
        false => seen.iter().map(line).collect(),
    })
}

async fn state(tmux: &Tmux, binding: &Binding) -> String {
    let Some(session) = &binding.session else { return "no pane is bound: messages wait".to_owned() };
    match tmux.look(session).await {
        Sight::Ready(_) => "ready".to_owned(),
        Sight::Held(hold) => format!("messages wait: {hold}"),
    }
}

fn line(seen: &Seen) -> String {
    let pane = seen
        .binding
        .session
        .as_ref()
        .map_or_else(|| "-".to_owned(), |session| format!("{} {}", session.pane, session.agent));
    let places: Vec<String> = seen.binding.conversations.iter().map(|it| it.channel.clone()).collect();
    let places = if places.is_empty() { "-".to_owned() } else { places.join(",") };
    format!("{}\t{pane}\t{places}\t{}\n", seen.binding.work_item, seen.state)
}

#[derive(Serialize)]
struct Status {
    running: bool,
    pid: Option<u32>,
    #[serde(flatten)]
    counts: Counts,
}

/// Shows whether the daemon runs and how many messages are where; exit code 1 when it does not run.
pub(super) fn status(config: &Config, json: Json) -> anyhow::Result<Ended> {
    let (layout, inbox) = open_inbox(config)?;
    let (running, pid) = match Lock::take(&layout) {
        Err(NotTaken::Held { pid, .. }) => (true, pid),
        Err(failed @ NotTaken::Failed { .. }) => return Err(failed.into()),
        Ok(_lock) => (false, None),
    };
    let status = Status { running, pid, counts: inbox.counts().wait()? };
    print_as(json, &status, text)?;
    Ok(if running { Ended::Well } else { Ended::WithFindings })
}

fn text(status: &Status) -> String {
    let daemon = match (status.running, status.pid) {
        (true, Some(pid)) => format!("usher runs (pid {pid})"),
        (true, None) => "usher runs".to_owned(),
        (false, _) => "usher does not run".to_owned(),
    };
    let Counts { open, held, records_waiting, settled, unsure, refused } = status.counts;
    format!(
        "{daemon}\nunder way       {open} ({held} held)\nrecords waiting {records_waiting}\ndelivered       {settled}\nunsure          {unsure}\nrefused         {refused}\n"
    )
}
