//! The workspace that the bot token belongs to.
//!
//! Owns finding out which it is, again and again until Slack says so, and the links to its posts. It must not know what
//! a link is used for.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::api::{Api, AuthTest};
use crate::core::message::SlackPlace;

/// The workspace, as `auth.test` names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workspace {
    /// Its id, `T…`.
    pub team_id: String,
    /// The bot's own user id: its mention addresses usher, and its own posts are no messages.
    pub user_id: String,
    /// Its address, `https://acme.slack.com/`.
    pub url: String,
}

impl Workspace {
    /// The link to a post, built as Slack's own "copy link" does: no call is spent on it.
    pub fn permalink(&self, place: &SlackPlace) -> String {
        let base = self.url.trim_end_matches('/');
        let digits: String = place.ts.chars().filter(char::is_ascii_digit).collect();
        let link = format!("{base}/archives/{}/p{digits}", place.channel);
        match &place.thread {
            Some(thread) => format!("{link}?thread_ts={thread}&cid={}", place.channel),
            None => link,
        }
    }
}

impl From<AuthTest> for Workspace {
    fn from(answer: AuthTest) -> Self {
        Self { team_id: answer.team_id, user_id: answer.user_id, url: answer.url }
    }
}

/// Asks Slack until it answers; a token that needs attention is asked about every five minutes, without a restart.
pub async fn identify(api: Api, known: watch::Sender<Option<Workspace>>, stop: CancellationToken) {
    let mut wait = Duration::from_secs(1);
    loop {
        let answer = tokio::select! {
            answer = api.auth_test() => answer,
            () = stop.cancelled() => return,
        };
        match answer {
            Ok(answer) => {
                info!(team = %answer.team_id, "slack workspace known");
                known.send_replace(Some(answer.into()));
                return;
            }
            Err(error) => warn!(%error, wait_s = wait.as_secs(), "the Slack workspace is not known yet; asked again"),
        }
        tokio::select! {
            () = sleep(wait) => wait = (wait * 2).min(Duration::from_secs(300)),
            () = stop.cancelled() => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::message::ConversationKind;

    #[test]
    fn links_are_those_that_slack_makes() {
        let workspace = Workspace { team_id: "T1".into(), user_id: "U1".into(), url: "https://acme.slack.com/".into() };
        let place = |thread: Option<&str>| SlackPlace {
            team: "T1".into(),
            channel: "C1".into(),
            ts: "1700000000.000100".into(),
            thread: thread.map(str::to_owned),
            conversation: ConversationKind::Channel,
        };
        assert_eq!(workspace.permalink(&place(None)), "https://acme.slack.com/archives/C1/p1700000000000100");
        assert_eq!(
            workspace.permalink(&place(Some("1690000000.000200"))),
            "https://acme.slack.com/archives/C1/p1700000000000100?thread_ts=1690000000.000200&cid=C1"
        );
    }
}
