//! usher brings what people say on Slack and GitHub, words and files, to the tmux pane where a coding agent works, and
//! writes it on the ticket.

pub mod core;
pub mod net;
