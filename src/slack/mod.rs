//! Slack: from its wire to the normalized message, and back as answers.
//!
//! Owns everything that is Slack's way of doing things: event shapes, mrkdwn, file objects, Socket Mode, the Web API.
//! It must not know GitHub, tmux, or what a message will be used for; what leaves it is `core::message::Message`.

mod answer;
pub mod api;
pub mod backoff;
pub mod catch_up;
mod drive;
pub mod event;
pub mod feedback;
pub mod file;
pub mod files;
pub mod link;
pub mod mrkdwn;
pub mod scopes;
pub mod session;
pub mod socket;
pub mod workspace;

pub use workspace::Workspace;
