//! `usher run` and `usher probe`.
//!
//! Owns the runtime of the daemon and the printing of the probe. It must not know what a check measures.

use std::time::Duration;

use anyhow::Context as _;

use super::{Ended, Json, block_on, open_inbox, print_as};
use crate::clients::{self, Clients};
use crate::config::Config;
use crate::{daemon, probe, telemetry};

/// Blocking work (a file being synced) has this long after everything else has stopped.
const LAST_GRACE: Duration = Duration::from_secs(1);

/// Runs the daemon until it is told to stop.
pub(super) fn daemon(config: Config) -> anyhow::Result<Ended> {
    telemetry::init(&config.log)?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("no runtime could be started")?;
    let outcome = runtime.block_on(daemon::run(config));
    runtime.shutdown_timeout(LAST_GRACE);
    outcome.map(|()| Ended::Well)
}

/// Checks the world as a start does.
pub(super) fn probe(config: &Config, json: Json) -> anyhow::Result<Ended> {
    let (layout, inbox) = open_inbox(config)?;
    let lines = block_on(async {
        let clients = Clients::new(config)?;
        let measured = probe::measure(config, &layout, &inbox, &clients, &clients::tmux(config)?, None, None).await;
        Ok(probe::lines(&measured))
    })?;
    print_as(json, &lines, |lines| lines.iter().map(|line| format!("{line}\n")).collect())?;
    Ok(if probe::has_findings(&lines) { Ended::WithFindings } else { Ended::Well })
}
