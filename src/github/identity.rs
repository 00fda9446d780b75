//! Who usher is on GitHub.
//!
//! Owns finding out the login of the token, again and again until GitHub says so. What usher wrote itself is known by its
//! envelope as well, so that nothing depends on this answer coming first.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::api::Api;
use super::event::Own;

/// Asks GitHub until it answers or usher stops.
pub async fn identify(api: Api, own: watch::Sender<Own>, stop: CancellationToken) {
    let mut wait = Duration::from_secs(1);
    while !stop.is_cancelled() {
        let answer = tokio::select! {
            answer = api.user() => answer,
            () = stop.cancelled() => return,
        };
        match answer {
            Ok(user) => {
                info!(login = %user.login, "github login known");
                own.send_modify(|own| {
                    own.login = Some(user.login);
                    own.app_id = user.app_id;
                });
                return;
            }
            Err(error) => warn!(%error, wait_s = wait.as_secs(), "the GitHub login is not known yet; asked again"),
        }
        tokio::select! {
            () = sleep(wait) => wait = (wait * 2).min(Duration::from_secs(300)),
            () = stop.cancelled() => {}
        }
    }
}
