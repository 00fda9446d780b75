//! GitHub: the ledger, and what people say on it. Knows nothing of Slack.

pub mod api;
pub mod assets;
mod closing;
pub mod event;
pub mod ledger;
pub mod prompt;
pub mod signature;
pub mod webhook;
