//! Who answers for which host name, and which credential may be seen there.

use std::sync::Arc;

use hyper::body::Incoming;
use hyper::{Request, header};

use super::github::FakeGitHub;
use super::http::{self, BrokenOff, Call, Reply};
use super::proxy::Tunnel;
use super::shared::Unexpected;
use super::slack::FakeSlack;

/// The hosts of the fake world.
#[derive(Clone)]
pub struct Hosts {
    pub slack: FakeSlack,
    pub github: FakeGitHub,
    pub unexpected: Unexpected,
}

/// The part that answers for a host.
enum Part {
    SlackApi,
    SlackSocket,
    SlackFiles,
    GitHubApi,
    GitHubFiles,
    Nobody,
}

fn part(host: &str) -> Part {
    match host {
        "slack.com" => Part::SlackApi,
        "wss-primary.slack.com" => Part::SlackSocket,
        "files.slack.com" | "files-origin.slack.com" | "acme.slack.com" => Part::SlackFiles,
        "api.github.com" => Part::GitHubApi,
        host if FakeGitHub::serves(host) => Part::GitHubFiles,
        _ => Part::Nobody,
    }
}

impl Hosts {
    /// Whether a `host:port` belongs to the world that usher may ask.
    pub fn knows(&self, target: &str) -> bool {
        target.strip_suffix(":443").is_some_and(|host| !matches!(part(host), Part::Nobody))
    }

    /// Answers one request. An error closes the connection without an answer.
    pub async fn answer(self, tunnel: Arc<Tunnel>, request: Request<Incoming>) -> Result<Reply, BrokenOff> {
        let host = tunnel.host.clone();
        self.check_head(&host, &request);
        match part(&host) {
            Part::SlackSocket => Ok(self.slack.upgrade(tunnel, request)),
            Part::SlackApi => self.slack.api(Call::read(&host, request).await).await,
            Part::SlackFiles => self.slack.file(Call::read(&host, request).await).await,
            Part::GitHubApi => self.github.api(Call::read(&host, request).await).await,
            Part::GitHubFiles => self.github.file(Call::read(&host, request).await).await,
            Part::Nobody => {
                self.unexpected.record(format!("{} https://{host}{}", request.method(), request.uri().path()));
                Ok(http::whole(200, "text/plain", "nobody lives here"))
            }
        }
    }

    /// The `Host` header names the host of the tunnel, and the credential is one for this host.
    fn check_head(&self, host: &str, request: &Request<Incoming>) {
        let text = |name| request.headers().get(name).and_then(|value| value.to_str().ok());
        if text(header::HOST) != Some(host) {
            self.unexpected.record(format!("Host header {:?} in a tunnel to {host}", text(header::HOST)));
        }
        let Some(authorization) = text(header::AUTHORIZATION) else { return };
        let allowed: &[&str] = if authorization.contains(&self.slack.app_token()) {
            &["slack.com"]
        } else if authorization.contains(&self.slack.bot_token()) {
            &["slack.com", "files.slack.com", "files-origin.slack.com"]
        } else if authorization.contains(&self.github.token()) {
            &["api.github.com", "github.com"]
        } else {
            return;
        };
        if !allowed.contains(&host) {
            self.unexpected.record(format!("a credential went astray to {host}{}", request.uri().path()));
        }
    }
}
