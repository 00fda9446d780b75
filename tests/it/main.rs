//! The real usher binary in a fake world.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test, its helpers included, fails by panicking")]

mod attachments;
mod bound;
mod catch_up;
mod commands;
mod endpoint;
mod github;
mod github_examples;
mod github_service;
mod ledger;
mod main_job;
mod once;
mod pane;
mod people;
mod probe;
mod restart;
mod socket;
mod story;
mod supplements;
mod tidy;
mod webhook;
mod world;
mod world_works;
