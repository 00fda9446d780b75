//! GitHub: the ledger, and what people say on it. Knows nothing of Slack.

pub mod api;
pub mod assets;
pub mod auth;
pub mod catch_up;
mod closing;
pub mod completion;
pub mod event;
pub mod feedback;
pub mod identity;
pub mod ledger;
pub mod pace;
pub mod signature;
pub mod webhook;
mod wire;
