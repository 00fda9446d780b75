//! What people say on GitHub reaches the pane: once, with its files, and by the right session.

mod files;
mod loops;
mod prompts;
mod reviews;
mod spoken;
