//! The connected parts that the daemon, the probe and a single command share.
//!
//! Owns how the configuration becomes a client. It must not decide what a client is used for.

use std::time::Duration;

use crate::config::Config;
use crate::github::auth::Auth;
use crate::net::Net;
use crate::tmux::{Profiles, Settings, Tmux};
use crate::{github, slack};

/// How long a paste may take to be seen: 85 ms was the longest measured (agents-in-tmux 8).
const SEE: Duration = Duration::from_secs(3);

/// Clients of everything that is reached over HTTP.
#[derive(Debug)]
pub struct Clients {
    /// The HTTP client.
    pub net: Net,
    /// Slack's Web API.
    pub slack: slack::api::Api,
    /// GitHub's REST API.
    pub github: github::api::Api,
}

impl Clients {
    /// Clients with the configured credentials; nothing is connected yet.
    pub fn new(config: &Config) -> anyhow::Result<Self> {
        let net = Net::new()?;
        let secrets = &config.secrets;
        let slack = slack::api::Api::new(net.clone(), secrets.slack_bot.clone(), secrets.slack_app.clone());
        let auth = github_auth(config)?;
        let github = github::api::Api::new(net.clone(), &config.github.host, auth, config.github.limit_wait);
        Ok(Self { net, slack, github })
    }
}

/// The app where one is configured, else the token.
fn github_auth(config: &Config) -> anyhow::Result<Option<Auth>> {
    let secrets = &config.secrets;
    match (config.github.app_id, &secrets.github_app_key) {
        (Some(id), Some(key)) => Auth::app(id, key).map(Some),
        _ => Ok(secrets.github.clone().map(|token| Auth::token(token, secrets.github_file.clone()))),
    }
}

/// The way to the panes, as configured.
pub fn tmux(config: &Config) -> anyhow::Result<Tmux> {
    Ok(Tmux::new(Settings {
        timeout: config.pane.timeout,
        mode_wait: config.pane.mode_wait,
        evidence: config.pane.evidence,
        see: SEE,
        agent_home: config.pane.agent_home.clone(),
        claude_config_dir: config.pane.claude_config.clone(),
        profiles: Profiles::built_in()?,
    }))
}
