//! usher brings what people say on Slack and GitHub, words and files, to the tmux pane where a coding agent works, and
//! writes it on the ticket.
//!
//! The modules, in reading order:
//!
//! - [`core`]: the pure heart: messages, grants, wording. Knows no IO.
//! - [`pipeline`]: what happens to a message, step by step. Start here.
//! - [`inbox`]: the durable truth, in SQLite.
//! - [`slack`] and [`github`]: the two vendors, who do not know each other.
//! - [`net`], [`fetch`], [`tmux`]: the hands: HTTP, downloads, panes.
//! - [`config`], [`layout`], [`telemetry`], [`probe`], [`health`]: what the operator sets, finds and reads.
//! - [`clients`], [`daemon`] and [`cli`]: put everything together.
//!
//! `docs/architecture.md` tells the same with the invariants and the reasons.

pub mod cli;
pub mod clients;
pub mod config;
pub mod core;
pub mod daemon;
pub mod fetch;
pub mod github;
pub mod health;
pub mod inbox;
pub mod layout;
pub mod net;
pub mod pipeline;
pub mod probe;
pub mod serve;
pub mod slack;
pub mod telemetry;
pub mod tmux;
