//! GitHub: the ledger. Knows nothing of Slack.

pub mod api;
pub mod ledger;
