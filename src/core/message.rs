//! The normalized message: the one form of everything that arrives, whichever platform it came from.
//!
//! Owns identity, place, author, words, quotes and attached files. It must not know how a platform writes them on the
//! wire (`slack::event`, `github::event`), nor what usher will do with them.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::core::attachment::AttachmentRef;
use crate::core::work_item::WorkItem;

/// Identity across retries, mention twins, redelivery, catch-up and crashes: `slack:TEAM/CHANNEL/TS`.
///
/// Slack's `ts` is unique per channel only, and `event_id` differs between the `message` and the `app_mention` of one
/// post (platform-facts A5), so neither alone would do.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MessageId(String);

impl MessageId {
    /// The identity of a Slack post.
    pub fn slack(team: &str, channel: &str, ts: &str) -> Self {
        Self(format!("slack:{team}/{channel}/{ts}"))
    }

    /// The identity of something said on GitHub.
    pub fn github(item: &WorkItem, spot: Spot) -> Self {
        match spot {
            Spot::Description => Self(format!("github:{item}")),
            Spot::Comment(id) => Self(format!("github:{item}/comment/{id}")),
            Spot::Review(id) => Self(format!("github:{item}/review/{id}")),
        }
    }

    /// The identity of something that follows a message: a late file, an edit.
    pub fn followed_by(&self, what: &str) -> Self {
        Self(format!("{}+{what}", self.0))
    }

    /// An identity as it was stored or typed.
    pub fn stored(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The identity as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Where a message was said, as far as an answer needs it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// A Slack conversation.
    Slack(SlackPlace),
    /// A GitHub issue or pull request.
    GitHub(GitHubPlace),
}

impl Place {
    /// The platform that it is on.
    pub const fn platform(&self) -> Platform {
        match self {
            Self::Slack(_) => Platform::Slack,
            Self::GitHub(_) => Platform::GitHub,
        }
    }
}

/// The platforms on which people speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Platform {
    /// Slack.
    Slack,
    /// GitHub.
    GitHub,
}

impl Platform {
    /// The name in configuration and store; every [`MessageId`] begins with it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Slack => "slack",
            Self::GitHub => "github",
        }
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Slack => "Slack",
            Self::GitHub => "GitHub",
        })
    }
}

/// A post in Slack. `ts` and `thread` stay texts: as floats they would lose digits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlackPlace {
    /// Workspace id, `T…`.
    pub team: String,
    /// Conversation id, `C…`, `G…` or `D…`.
    pub channel: String,
    /// The post's own time stamp.
    pub ts: String,
    /// The time stamp of its thread's first post; `None` at top level.
    pub thread: Option<String>,
    /// What kind of conversation it is.
    pub conversation: ConversationKind,
}

impl SlackPlace {
    /// The thread that an answer to this post belongs in: its own, or the one it would open.
    pub fn thread_or_self(&self) -> &str {
        self.thread.as_deref().unwrap_or(&self.ts)
    }
}

/// The kind of a Slack conversation, as far as the event tells (`app_mention` does not).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ConversationKind {
    /// A public channel.
    Channel,
    /// A private channel.
    Private,
    /// A direct message with the bot.
    Direct,
    /// A group direct message.
    GroupDirect,
    /// The event did not say.
    Unknown,
}

/// Something said on GitHub.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitHubPlace {
    /// The issue or pull request that it stands on.
    pub item: WorkItem,
    /// For a pull request, the issues that it closes: its words are theirs when it has no agent of its own.
    pub closes: Vec<WorkItem>,
    /// Where on it.
    pub spot: Spot,
}

impl GitHubPlace {
    /// GitHub has no reactions on a review.
    pub const fn takes_reactions(&self) -> bool {
        !matches!(self.spot, Spot::Review(_))
    }
}

/// The spot on an issue or pull request that holds somebody's words, by its id in the REST API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spot {
    /// The description of the item itself.
    Description,
    /// A comment in the conversation.
    Comment(u64),
    /// A review, its inline comments included.
    Review(u64),
}

/// Somebody, as a platform identifies them. Printed as `slack:U0456GHIJ`, `github:dana`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Person {
    /// A Slack member id, `U…` or `W…`.
    Slack(String),
    /// A GitHub login, lower-cased: GitHub compares logins without case.
    GitHub(String),
}

impl fmt::Display for Person {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Slack(id) => write!(f, "slack:{id}"),
            Self::GitHub(login) => write!(f, "github:{login}"),
        }
    }
}

/// Words of somebody else that the author forwarded or quoted. Never the author's own, never a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quote {
    /// Who said it, as the platform names them; empty when it does not say.
    pub author: String,
    /// Where, as the platform names it; empty when it does not say.
    pub place: String,
    /// A link for people.
    pub permalink: Option<String>,
    /// The words, decoded.
    pub text: String,
}

/// A message, whatever brought it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Its identity.
    pub id: MessageId,
    /// Where it was said.
    pub place: Place,
    /// Who said it.
    pub author: Person,
    /// Whether the text mentions usher.
    pub addressed: bool,
    /// The author's own words, decoded once; may be empty when files or quotes are all there is.
    pub text: String,
    /// Words of others inside it.
    pub quotes: Vec<Quote>,
    /// The attached files, forwarded ones included, in the order in which they were attached.
    pub attachments: Vec<AttachmentRef>,
    /// A link for people, once it is known.
    pub permalink: Option<String>,
    /// When it was said.
    pub sent_at: Timestamp,
    /// Whether usher learned of it long after it was said.
    #[serde(default)]
    pub late: bool,
    /// What GitHub said around the words, for the prompt.
    #[serde(default)]
    pub github: Option<GitHubFacts>,
    /// `None`: a message of its own. Otherwise what it adds to an earlier one.
    #[serde(default)]
    pub supplement: Option<Supplement>,
}

/// What a GitHub event says beside the words, as far as a prompt may read it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitHubFacts {
    /// The event's name, `issue_comment`.
    pub event: String,
    /// Its action, `created`.
    pub action: String,
    /// The allow-listed fields of its containers: `issue`, `pull_request`, `review`, `comment`, `actor`.
    pub fields: Map<String, Value>,
    /// The inline comments of a review, by id, in GitHub's order.
    pub inline: BTreeMap<u64, Map<String, Value>>,
}

/// What a message adds to an earlier one. A supplement is never a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Supplement {
    /// A file that was still downloading when its message was delivered.
    LateFile {
        /// The message it belongs to.
        of: MessageId,
    },
    /// The words were changed after they were said; this is how they read now.
    Edited {
        /// The message whose words they are.
        of: MessageId,
    },
    /// The message was taken back: a note for the ticket, nothing for the pane.
    Deleted {
        /// The message that is gone.
        of: MessageId,
    },
    /// The platform finished a transcript after its message was delivered.
    Transcript {
        /// The message with the clip.
        of: MessageId,
        /// What the person called the clip.
        name: String,
    },
}

impl Message {
    /// Whether there is nothing in it: no words, no quotes, no files. What a supplement tells is that it is one.
    pub fn is_empty(&self) -> bool {
        let has_facts = self.supplement.is_some() || self.github.is_some();
        !has_facts && self.text.trim().is_empty() && self.quotes.is_empty() && self.attachments.is_empty()
    }

    /// A review comes as one event, and as one more for each of its inline comments, in any order (platform-facts D).
    fn merge_facts(&mut self, twin: Option<GitHubFacts>) {
        let Some(theirs) = twin else { return };
        let Some(mine) = &mut self.github else {
            self.github = Some(theirs);
            return;
        };
        mine.inline.extend(theirs.inline);
        if theirs.fields.contains_key("review") && !mine.fields.contains_key("review") {
            (mine.event, mine.action, mine.fields) = (theirs.event, theirs.action, theirs.fields);
        }
    }

    fn merge_place(&mut self, twin: Place) {
        match (&mut self.place, twin) {
            (Place::Slack(mine), Place::Slack(theirs)) => {
                if mine.conversation == ConversationKind::Unknown {
                    mine.conversation = theirs.conversation;
                }
                mine.thread = mine.thread.take().or(theirs.thread);
            }
            (Place::GitHub(mine), Place::GitHub(theirs)) if mine.closes.is_empty() => mine.closes = theirs.closes,
            (Place::Slack(_) | Place::GitHub(_), _) => {}
        }
    }

    /// Takes over what a second copy of the same post knows and this one does not.
    ///
    /// A mention reaches usher twice, as `message` and as `app_mention`, in either order, and either copy may lack the
    /// files (platform-facts A5): the union is the message. Answers whether anything was added.
    pub fn merge(&mut self, twin: Self) -> bool {
        let before = self.clone();
        self.addressed |= twin.addressed;
        if self.text.is_empty() {
            self.text = twin.text;
        }
        if self.quotes.is_empty() {
            self.quotes = twin.quotes;
        }
        for file in twin.attachments {
            if !self.attachments.iter().any(|known| known.id == file.id) {
                self.attachments.push(file);
            }
        }
        self.merge_place(twin.place);
        self.permalink = self.permalink.take().or(twin.permalink);
        self.merge_facts(twin.github);
        *self != before
    }
}
