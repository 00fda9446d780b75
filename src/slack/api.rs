//! The Web API methods that usher calls, and what their failures mean.
//!
//! Owns method names and their fields, the bearer tokens, the fixed host and the classes of failures. It must not know the
//! socket's rules, files' bytes (their hosts are `core::hop`'s matter) or what an answer is used for.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use jiff::Timestamp;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde_json::Value;
use url::{Host, Url};

use super::answer::{Answer, parse, read, text_at, unexpected};
use crate::net::{Net, without_url};

/// The only place where the tokens go.
const BASE: &str = "https://slack.com/api/";

/// How long a call may take, its body included.
const CALL_LIMIT: Duration = Duration::from_secs(10);

/// The longest ephemeral text, in characters; Slack cuts longer ones where it likes.
const MAX_EPHEMERAL: usize = 3000;

/// Why a call brought nothing.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// usher was given no token for this method.
    #[error("usher holds no Slack token for this")]
    NoToken,
    /// The token or the app has to be mended by a person.
    #[error("Slack does not accept the token or the app ({error})")]
    NeedsAttention {
        /// Slack's word for it.
        error: String,
    },
    /// The app was not given a scope, or was not reinstalled after it was.
    #[error("the Slack app lacks the scope {needed}, or was not reinstalled after it was added")]
    MissingScope {
        /// The scope, or several with commas between.
        needed: String,
    },
    /// Too many calls; the wait is always at most an hour.
    #[error("Slack limits the rate of calls, the next is allowed in {} seconds", retry_after.as_secs())]
    RateLimited {
        /// How long to wait before the next call of this method.
        retry_after: Duration,
    },
    /// Any other `ok: false`.
    #[error("Slack refused the call ({error})")]
    Refused {
        /// Slack's word for it.
        error: String,
    },
    /// No answer, or none that can be read. Carries no URL.
    #[error("Slack could not be reached: {0:#}")]
    Transport(anyhow::Error),
}

impl ApiError {
    /// Whether trying again will not help until a person mends something.
    pub fn is_lasting(&self) -> bool {
        matches!(self, Self::NoToken | Self::NeedsAttention { .. } | Self::MissingScope { .. })
    }

    /// Whether Slack refused with this word.
    pub fn is_refusal(&self, word: &str) -> bool {
        matches!(self, Self::Refused { error } if error == word)
    }
}

/// Who usher is in the workspace (`auth.test`).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct AuthTest {
    /// The workspace's name.
    #[serde(default)]
    pub team: String,
    /// The workspace's id, `T…`.
    pub team_id: String,
    /// usher's own member id, `U…`: what a mention of it contains.
    pub user_id: String,
    /// usher's bot id, `B…`; a user token has none.
    #[serde(default)]
    pub bot_id: Option<String>,
    /// The workspace's URL.
    #[serde(default)]
    pub url: String,
    /// The granted scopes (`x-oauth-scopes`); `None` when Slack did not say.
    #[serde(skip)]
    pub scopes: Option<BTreeSet<String>>,
    /// Slack's clock (`Date`), to see how far off ours is.
    #[serde(skip)]
    pub server_date: Option<Timestamp>,
}

/// What kind of conversation it is, and whether usher is in it (`conversations.info`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct ConversationInfo {
    /// Private channel, or any direct message on some workspaces.
    #[serde(default)]
    pub is_private: bool,
    /// Direct message.
    #[serde(default)]
    pub is_im: bool,
    /// Group direct message.
    #[serde(default)]
    pub is_mpim: bool,
    /// Whether usher is a member.
    #[serde(default)]
    pub is_member: bool,
}

/// A page of posts, as they came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The posts.
    pub posts: Vec<Value>,
    /// Where the next page begins; `None`: this was the last.
    pub next: Option<String>,
}

/// The Web API with usher's tokens. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Api {
    net: Net,
    bot: Option<SecretString>,
    app: Option<SecretString>,
}

impl Api {
    /// The API for a bot token (`xoxb-`) and an app-level token (`xapp-`), as far as there are any.
    pub fn new(net: Net, bot: Option<SecretString>, app: Option<SecretString>) -> Self {
        Self { net, bot, app }
    }

    /// Whether there is an app-level token.
    pub fn has_app_token(&self) -> bool {
        self.app.is_some()
    }

    /// The bot token, for downloads from Slack's own file hosts.
    pub fn bot_token(&self) -> Option<SecretString> {
        self.bot.clone()
    }

    /// Asks for a Socket Mode URL (`apps.connections.open`). It carries a ticket, good for one connection.
    pub async fn open_connection(&self) -> Result<SecretString, ApiError> {
        let answer = self.call(self.app.as_ref(), "apps.connections.open", &[]).await?;
        socket_url(text_at(&answer.body, "/url")).map(SecretString::from).map_err(ApiError::Transport)
    }

    /// Asks who usher is, what it may do and what time it is (`auth.test`).
    pub async fn auth_test(&self) -> Result<AuthTest, ApiError> {
        self.bot_call("auth.test", &[]).await?.auth_test()
    }

    /// A file object (`files.info`), as it came.
    pub async fn files_info(&self, id: &str) -> Result<Value, ApiError> {
        self.bot_call("files.info", &[("file", id)]).await?.part("file")
    }

    /// The post with this time stamp, as it came; `thread` is the time stamp of its thread's first post.
    pub async fn post_at(&self, channel: &str, ts: &str, thread: Option<&str>) -> Result<Option<Value>, ApiError> {
        let mut fields = vec![("channel", channel), ("latest", ts), ("oldest", ts), ("inclusive", "true")];
        let method = match thread {
            // The thread's first post comes along whatever the range (platform-facts C3), hence two.
            Some(thread) => {
                fields.extend([("ts", thread), ("limit", "2")]);
                "conversations.replies"
            }
            None => {
                fields.push(("limit", "1"));
                "conversations.history"
            }
        };
        Ok(self.bot_call(method, &fields).await?.post(ts))
    }

    /// A page of the posts since a time stamp: of a thread, or of a conversation's top level.
    ///
    /// 200 a page is what Slack recommends; apps under its limits of 2025 get 15 and one call a minute (platform-facts C3).
    pub async fn posts_since(
        &self,
        channel: &str,
        thread: Option<&str>,
        oldest: &str,
        cursor: Option<&str>,
    ) -> Result<Page, ApiError> {
        let mut fields = vec![("channel", channel), ("oldest", oldest), ("limit", "200")];
        fields.extend(cursor.map(|cursor| ("cursor", cursor)));
        let method = match thread {
            Some(thread) => {
                fields.push(("ts", thread));
                "conversations.replies"
            }
            None => "conversations.history",
        };
        Ok(self.bot_call(method, &fields).await?.page())
    }

    /// Puts a reaction on a post; one that is there already is fine.
    pub async fn add_reaction(&self, channel: &str, ts: &str, name: &str) -> Result<(), ApiError> {
        let fields = [("channel", channel), ("timestamp", ts), ("name", name)];
        unless("already_reacted", self.bot_call("reactions.add", &fields).await)
    }

    /// Takes usher's reaction off a post; one that is not there is fine.
    pub async fn remove_reaction(&self, channel: &str, ts: &str, name: &str) -> Result<(), ApiError> {
        let fields = [("channel", channel), ("timestamp", ts), ("name", name)];
        unless("no_reaction", self.bot_call("reactions.remove", &fields).await)
    }

    /// Tells one person something in a conversation, seen by nobody else.
    ///
    /// `text` is mrkdwn: [`escape`] what others wrote before it goes in. It is cut after 3,000 characters.
    pub async fn post_ephemeral(
        &self,
        channel: &str,
        user: &str,
        thread: Option<&str>,
        text: &str,
    ) -> Result<(), ApiError> {
        let text = shortened(text);
        let mut fields = vec![("channel", channel), ("user", user), ("text", &text)];
        fields.extend(thread.map(|thread| ("thread_ts", thread)));
        self.bot_call("chat.postEphemeral", &fields).await.map(drop)
    }

    /// What kind of conversation it is (`conversations.info`).
    pub async fn conversation_info(&self, channel: &str) -> Result<ConversationInfo, ApiError> {
        let info = self.bot_call("conversations.info", &[("channel", channel)]).await?.part("channel")?;
        serde_json::from_value(info).map_err(|_| unexpected("conversations.info"))
    }

    /// What a person is called: the display name, else the real name, else the handle, else the id.
    pub async fn user_name(&self, id: &str) -> Result<String, ApiError> {
        let user = self.bot_call("users.info", &[("user", id)]).await?.part("user")?;
        Ok(name_of(&user).unwrap_or(id).to_owned())
    }

    async fn bot_call(&self, method: &'static str, fields: &[(&str, &str)]) -> Result<Answer, ApiError> {
        self.call(self.bot.as_ref(), method, fields).await
    }

    async fn call(
        &self,
        token: Option<&SecretString>,
        method: &'static str,
        fields: &[(&str, &str)],
    ) -> Result<Answer, ApiError> {
        let token = token.ok_or(ApiError::NoToken)?;
        let request = self
            .net
            .client()
            .post(format!("{BASE}{method}"))
            .bearer_auth(token.expose_secret())
            .timeout(CALL_LIMIT)
            .form(fields);
        let response = request.send().await.map_err(|error| ApiError::Transport(without_url(error)))?;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = read(response).await.map_err(ApiError::Transport)?;
        parse(method, status, headers, &body)
    }
}

/// Makes text of others safe inside mrkdwn: no mention, no link, no entity of theirs.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn unless<T>(harmless: &str, outcome: Result<T, ApiError>) -> Result<(), ApiError> {
    match outcome {
        Err(error) if !error.is_refusal(harmless) => Err(error),
        _ => Ok(()),
    }
}

/// A socket may be on any host of Slack's and nowhere else (platform-facts A1).
fn socket_url(text: &str) -> anyhow::Result<String> {
    let url = Url::parse(text).context("the socket URL from Slack is not a URL")?;
    let on_slack = match url.host() {
        Some(Host::Domain(host)) => host.ends_with(".slack.com") || host.ends_with(".slack-gov.com"),
        _ => false,
    };
    let plain = url.username().is_empty() && url.password().is_none() && url.port().is_none();
    if url.scheme() == "wss" && on_slack && plain {
        Ok(url.into())
    } else {
        Err(anyhow!("the socket URL from Slack is not wss on a host of Slack's: usher does not connect to it"))
    }
}

fn name_of(user: &Value) -> Option<&str> {
    let names = ["/profile/display_name", "/profile/real_name", "/real_name", "/name"];
    names.into_iter().map(|name| text_at(user, name).trim()).find(|name| !name.is_empty())
}

/// At most [`MAX_EPHEMERAL`] characters, never ending inside an entity or a `<…>` token.
fn shortened(text: &str) -> String {
    if text.chars().nth(MAX_EPHEMERAL).is_none() {
        return text.to_owned();
    }
    let mut head: String = text.chars().take(MAX_EPHEMERAL - 1).collect();
    for (open, close) in [('&', ';'), ('<', '>')] {
        if let Some((whole, tail)) = head.rsplit_once(open)
            && !tail.contains(close)
        {
            head.truncate(whole.len());
        }
    }
    head.push('…');
    head
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use serde_json::json;

    use super::*;

    #[test]
    fn harmless_refusals_of_reactions_are_successes() {
        let refused = |word: &str| Err::<(), _>(ApiError::Refused { error: word.to_owned() });
        assert!(unless("already_reacted", refused("already_reacted")).is_ok());
        assert!(
            unless("already_reacted", refused("message_not_found")).is_err_and(|e| e.is_refusal("message_not_found"))
        );
        assert!(unless::<()>("no_reaction", Err(ApiError::NoToken)).is_err());
        assert!(unless("no_reaction", Ok(())).is_ok());
    }

    #[test]
    fn only_a_socket_on_slacks_hosts_is_opened() {
        for url in [
            "wss://wss-primary.slack.com/link/?ticket=1-2&app_id=3",
            "wss://wss.slack.com/link/",
            "wss://wss-a.slack-gov.com/link/?ticket=1",
            "wss://WSS.Slack.com:443/link/",
        ] {
            assert!(socket_url(url).is_ok(), "{url}");
        }
        for url in [
            "",
            "ws://wss.slack.com/link/?ticket=sesame",
            "https://wss.slack.com/?ticket=sesame",
            "wss://slack.com.example.org/?ticket=sesame",
            "wss://evilslack.com/?ticket=sesame",
            "wss://wss.slack.com@example.org/?ticket=sesame",
            "wss://example.org#.slack.com",
            "wss://user@wss.slack.com/?ticket=sesame",
            "wss://wss.slack.com:8443/?ticket=sesame",
            "wss://127.0.0.1/?ticket=sesame",
            "wss://[::1]/?ticket=sesame",
        ] {
            let error = socket_url(url).expect_err(url);
            assert!(!format!("{error:#}").contains("sesame"), "{error:#}");
        }
    }

    #[test]
    fn a_person_is_called_by_the_first_name_that_says_something() {
        let table = [
            (json!({"name": "dana", "real_name": "Dana Q", "profile": {"display_name": "Dana"}}), Some("Dana")),
            (json!({"name": "dana", "profile": {"display_name": " ", "real_name": "Dana Q"}}), Some("Dana Q")),
            (json!({"name": "dana", "profile": []}), Some("dana")),
            (json!({"name": null}), None),
        ];
        for (user, name) in table {
            assert_eq!(name_of(&user), name, "{user}");
        }
    }

    #[test]
    fn words_of_others_cannot_mention_anybody() {
        assert_snapshot!(escape("<!channel> & <@U1> &lt;"), @"&lt;!channel&gt; &amp; &lt;@U1&gt; &amp;lt;");
    }

    #[test]
    fn a_long_text_ends_between_its_tokens() {
        let check = |tail: &str, expected_tail: &str| {
            let text = format!("{}{tail}{}", "é".repeat(MAX_EPHEMERAL - 4), "x".repeat(50));
            let expected = format!("{}{expected_tail}…", "é".repeat(MAX_EPHEMERAL - 4));
            assert_eq!(shortened(&text), expected, "{tail}");
        };
        check("abcdef", "abc");
        check("&amp;", "");
        check("a&amp;", "a");
        check("<@U1>", "");
        check("&;<@U1>", "&;");
        let exact = "é".repeat(MAX_EPHEMERAL);
        assert_eq!(shortened(&exact), exact);
    }

    #[tokio::test]
    async fn without_a_token_nothing_is_asked() {
        let api = Api::new(Net::new().expect("a client"), None, None);
        assert!(matches!(api.open_connection().await, Err(ApiError::NoToken)));
        assert!(matches!(api.auth_test().await, Err(ApiError::NoToken)));
    }
}
