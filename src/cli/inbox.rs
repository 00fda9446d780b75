//! `usher inbox`: list, show, retry, drop.
//!
//! Owns how messages read for the operator. A list never shows their words; `show` does, because it was asked for.

use anyhow::bail;
use jiff::Timestamp;

use super::{Ended, Json, open_inbox, print, print_as};
use crate::config::Config;
use crate::core::attachment::Outcome;
use crate::core::pane_text::one_line;
use crate::inbox::operator::{Line, Retry, Whole};

/// What may be done to the inbox.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// The latest messages, newest first (the default)
    List {
        /// Only those that have not ended
        #[arg(long)]
        open: bool,
        /// How many
        #[arg(long, default_value_t = 50)]
        limit: usize,
    },
    /// Everything about one message
    Show {
        /// Its id, or its number in the list
        id: String,
    },
    /// Try a message again: its record, or an unsure or dropped delivery
    Retry {
        /// Its id, or its number in the list
        id: String,
    },
    /// Give a message up that has not been delivered
    Drop {
        /// Its id, or its number in the list
        id: String,
    },
}

impl Default for Verb {
    fn default() -> Self {
        Self::List { open: false, limit: 50 }
    }
}

/// Does it.
pub(super) fn answer(config: &Config, verb: Verb, json: Json) -> anyhow::Result<Ended> {
    let (_layout, inbox) = open_inbox(config)?;
    let now = Timestamp::now();
    match verb {
        Verb::List { open, limit } => {
            print_as(json, &inbox.list(open, limit).wait()?, |lines| match lines.is_empty() {
                true => "no messages\n".to_owned(),
                false => lines.iter().map(line).collect(),
            })
        }
        Verb::Show { id } => match inbox.show(&id).wait()? {
            Some(whole) => print_as(json, &whole, text),
            None => bail!("there is no message `{}`: see usher inbox list", one_line(&id, 80)),
        },
        Verb::Retry { id } => match inbox.retry(&id, now).wait()? {
            Retry::Unknown => bail!("there is no message `{}`: see usher inbox list", one_line(&id, 80)),
            Retry::Record => print("the ticket is asked again to take the record\n"),
            Retry::Delivery => print("it is delivered anew\n"),
            Retry::UnderWay => print("it is on its way; its pane is looked at now\n"),
            Retry::Nothing => print("there is nothing to try again: it ended well, or its words are erased\n")
                .map(|_| Ended::WithFindings),
        },
        Verb::Drop { id } => match inbox.drop_message(&id, now).wait()? {
            true => print("dropped; its sender is told\n"),
            false => {
                print("there is nothing to drop: it is unknown, or has been delivered\n").map(|_| Ended::WithFindings)
            }
        },
    }
}

fn line(line: &Line) -> String {
    let state = if line.verdict.is_empty() { line.stage.clone() } else { format!("{} ({})", line.stage, line.verdict) };
    let item = line.work_item.as_deref().unwrap_or("-");
    let cause = if line.cause.is_empty() { String::new() } else { format!("\t{}", line.cause) };
    format!("{}\t{}\t{item}\t{state}\t{}{cause}\n", line.seq, line.arrived_at, line.id)
}

fn text(whole: &Whole) -> String {
    let mut out = line(&whole.line);
    if let Some(message) = &whole.message {
        out.push_str(&format!("from {} at {}\n", message.author, message.sent_at));
        if let Some(link) = &message.permalink {
            out.push_str(&format!("{link}\n"));
        }
        let words = crate::core::pane_text::clean(&message.text);
        out.extend(words.lines().map(|line| format!("  {line}\n")));
    }
    for attachment in &whole.attachments {
        let outcome = match &attachment.outcome {
            Outcome::Saved(file) => format!("saved at {} sha256={}", file.path.display(), file.sha256),
            Outcome::NotFetched(reason) => format!("not fetched ({}): {reason}", reason.code()),
        };
        out.push_str(&format!("file {}: {outcome}\n", one_line(&attachment.name, 120)));
    }
    for record in &whole.records {
        out.push_str(&format!("record {}: {} {}{}\n", record.part, record.state, record.link, record.cause));
    }
    out
}
