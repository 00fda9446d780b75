//! Attachments: what becomes of every file that somebody attaches, from Slack's hosts to the disk, the pane, the ticket
//! and the sender.

mod desk;
mod forwards;
mod hosts;
mod late;
mod memory;
mod names;
mod refused;
mod saved;
mod sizes;
mod transcripts;

use desk::Desk;
