//! The pure heart: what a message is, who may say it, what becomes of it, and how it reads.
//!
//! Owns the words of the domain and every text that a person or an agent reads. It must not know tokio, HTTP, SQLite,
//! the file system, the environment, a clock or a log: the time is an argument, and what comes out is a value.

pub mod act;
pub mod attachment;
pub mod breaker;
pub mod classify;
pub mod delivery;
pub mod envelope;
pub mod excerpt;
pub mod feedback;
pub mod grant;
pub mod hop;
pub mod loose;
pub mod message;
pub mod pane_text;
pub mod prompt;
pub mod record;
pub mod safe_name;
pub mod scrub;
pub mod session;
pub mod sniff;
pub mod vtt;
pub mod work_item;
