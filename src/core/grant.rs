//! Grants: who may do which act, and which acts a platform may publish. Both are needed.
//!
//! Owns the decision and is the only maker of [`Authorised`], without which nothing is fetched, recorded or delivered.
//! It must not know how a message was classified nor what its words say.

use std::collections::BTreeSet;

use crate::core::act::Act;
use crate::core::classify::Classification;
use crate::core::message::{Message, Person, Place};
use crate::core::work_item::WorkItem;

/// A person who may speak, as `[[people]]` names them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownPerson {
    /// The name that the agent and the ticket read.
    pub name: String,
    /// Who they are on each platform, at least one; logins lower-cased.
    pub ids: Vec<Person>,
}

/// Everybody who may do anything, and what each platform may publish. No people: nobody may do anything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grants {
    /// Who may speak.
    pub people: Vec<KnownPerson>,
    /// What a Slack message may become.
    pub slack_publish: BTreeSet<Act>,
    /// What a GitHub comment may become.
    pub github_publish: BTreeSet<Act>,
}

impl Grants {
    /// The name of somebody who may speak, `None` for a stranger.
    pub fn name_of(&self, person: &Person) -> Option<&str> {
        self.people.iter().find(|known| known.ids.iter().any(|id| is_same(id, person))).map(|known| known.name.as_str())
    }

    /// What may be kept of a message from the moment it arrives: of a stranger's no words and no files, only who, where and
    /// when, so that a second copy of it is known. What was once on the disk cannot be taken off it again.
    pub fn keepable(&self, message: Message) -> Message {
        match self.name_of(&message.author) {
            Some(_) => message,
            None => {
                Message { text: String::new(), quotes: Vec::new(), attachments: Vec::new(), github: None, ..message }
            }
        }
    }

    fn publishes(&self, place: &Place, act: Act) -> bool {
        match place {
            Place::Slack(_) => self.slack_publish.contains(&act),
            Place::GitHub(_) => self.github_publish.contains(&act),
        }
    }
}

/// GitHub compares logins without case; Slack ids are exact.
fn is_same(known: &Person, person: &Person) -> bool {
    match (known, person) {
        (Person::Slack(known), Person::Slack(id)) => known == id,
        (Person::GitHub(known), Person::GitHub(login)) => known.eq_ignore_ascii_case(login),
        (Person::Slack(_), Person::GitHub(_)) | (Person::GitHub(_), Person::Slack(_)) => false,
    }
}

/// The outcome of the decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It may be done.
    Allowed(Box<Authorised>),
    /// It may not.
    Refused(Refusal),
}

/// Why a message is not acted on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The author is nobody that usher knows: silence.
    Stranger,
    /// The conversation belongs to no work item.
    Unmapped,
    /// The conversation listens to mentions only: silence.
    NotAddressed,
    /// A mention with nothing in it.
    Empty,
    /// A note that something was taken back: silence.
    TakenBack,
    /// The platform may not publish this act. Never downgraded to prose.
    NotPublished(Act),
    /// More was said on the work item than people say (`core::breaker`).
    TooFast,
    /// It adds to a message that was never on its way to the agent: silence.
    UnknownOriginal,
    /// An edit that reads as usher knows the message already: silence.
    Unchanged,
}

impl Refusal {
    /// The greppable code.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Stranger => "stranger",
            Self::Unmapped => "unmapped",
            Self::NotAddressed => "not-addressed",
            Self::Empty => "empty",
            Self::TakenBack => "taken-back",
            Self::NotPublished(_) => "not-published",
            Self::TooFast => "too-fast",
            Self::UnknownOriginal => "unknown-original",
            Self::Unchanged => "unchanged",
        }
    }
}

/// A message whose author may do its act. Fetching, recording and delivering take nothing less.
///
/// ```compile_fail
/// # fn forge(message: usher::core::message::Message, work_item: usher::core::work_item::WorkItem) {
/// let forged = usher::core::grant::Authorised {
///     message,
///     work_item,
///     act: usher::core::act::Act::WorkItemReply,
///     speaker: "mallory".to_owned(),
/// };
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authorised {
    message: Message,
    work_item: WorkItem,
    act: Act,
    speaker: String,
}

impl Authorised {
    /// The message.
    pub fn message(&self) -> &Message {
        &self.message
    }

    /// The work item that it is about.
    pub fn work_item(&self) -> &WorkItem {
        &self.work_item
    }

    /// What may be done.
    pub fn act(&self) -> Act {
        self.act
    }

    /// The author's name, as the configuration gives it.
    pub fn speaker(&self) -> &str {
        &self.speaker
    }
}

/// Decides whether a classified message may be acted on. Strangers come first: nothing else of theirs is looked at.
pub fn authorise(grants: &Grants, message: Message, classification: Classification) -> Verdict {
    let Some(speaker) = grants.name_of(&message.author) else { return Verdict::Refused(Refusal::Stranger) };
    let (act, work_item) = match classification {
        Classification::Act(act, work_item) => (act, work_item),
        Classification::Unmapped => return Verdict::Refused(Refusal::Unmapped),
        Classification::NotAddressed => return Verdict::Refused(Refusal::NotAddressed),
        Classification::Empty => return Verdict::Refused(Refusal::Empty),
        Classification::TakenBack => return Verdict::Refused(Refusal::TakenBack),
    };
    if !grants.publishes(&message.place, act) {
        return Verdict::Refused(Refusal::NotPublished(act));
    }
    let speaker = speaker.to_owned();
    Verdict::Allowed(Box::new(Authorised { message, work_item, act, speaker }))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::core::attachment::{AttachmentRef, Kind, Source, Transcript, Whereabouts};
    use crate::core::classify::{Bound, classify};
    use crate::core::message::{ConversationKind, MessageId, SlackPlace};
    use crate::core::session::Listen;
    use proptest::prelude::*;

    pub(crate) fn dana() -> KnownPerson {
        KnownPerson { name: "Dana".into(), ids: vec![Person::GitHub("dana".into()), Person::Slack("U0DANA".into())] }
    }

    pub(crate) fn said(author: &str, text: &str) -> Message {
        Message {
            id: MessageId::slack("T1", "C1", "1700000000.000100"),
            place: Place::Slack(SlackPlace {
                team: "T1".into(),
                channel: "C1".into(),
                ts: "1700000000.000100".into(),
                thread: Some("1690000000.000100".into()),
                conversation: ConversationKind::Channel,
            }),
            author: Person::Slack(author.into()),
            addressed: false,
            text: text.into(),
            quotes: Vec::new(),
            attachments: Vec::new(),
            permalink: Some("https://acme.slack.com/archives/C1/p1700000000000100".into()),
            sent_at: "2023-11-14T22:13:20Z".parse().unwrap(),
            late: false,
            github: None,
            supplement: None,
        }
    }

    /// A message of files alone.
    pub(crate) fn sent(author: &str) -> Message {
        let file = AttachmentRef {
            id: "F07ABC".into(),
            source: Source::Slack,
            name: "shot.png".into(),
            kind: Kind::Image,
            mimetype: None,
            size: None,
            size_is_exact: false,
            link: None,
            bytes: Whereabouts::Ask,
            transcript: Transcript::None,
            is_html: false,
        };
        Message { attachments: vec![file], ..said(author, "") }
    }

    pub(crate) fn bound(listen: Listen) -> Bound {
        Bound { work_item: "owner/repo#12".parse().unwrap(), listen }
    }

    pub(crate) fn authorised(message: Message) -> Authorised {
        let grants = Grants { people: vec![dana()], slack_publish: [Act::WorkItemReply].into(), ..Grants::default() };
        let classification = classify(&message, Some(&bound(Listen::All)));
        match authorise(&grants, message, classification) {
            Verdict::Allowed(authorised) => *authorised,
            Verdict::Refused(refusal) => panic!("refused: {refusal:?}"),
        }
    }

    fn outcome(grants: &Grants, message: Message, bound: Option<&Bound>) -> Result<Act, Refusal> {
        let classification = classify(&message, bound);
        match authorise(grants, message, classification) {
            Verdict::Allowed(authorised) => Ok(authorised.act()),
            Verdict::Refused(refusal) => Err(refusal),
        }
    }

    #[test]
    fn a_message_needs_a_person_a_binding_and_the_publish_grant() {
        let all = Grants { people: vec![dana()], slack_publish: [Act::WorkItemReply].into(), ..Grants::default() };
        let unpublished = Grants { slack_publish: BTreeSet::new(), ..all.clone() };
        let listening = bound(Listen::All);
        let mentions = bound(Listen::Mentions);
        let mention = Message { addressed: true, ..said("U0DANA", "hi") };
        let empty_mention = Message { addressed: true, ..said("U0DANA", "  ") };
        for (grants, message, binding, expected) in [
            (&all, said("U0DANA", "hi"), Some(&listening), Ok(Act::WorkItemReply)),
            (&all, said("U0EVE", "hi"), Some(&listening), Err(Refusal::Stranger)),
            (&all, said("U0EVE", "hi"), None, Err(Refusal::Stranger)),
            (&all, said("U0DANA", "hi"), None, Err(Refusal::Unmapped)),
            (&all, said("U0DANA", "hi"), Some(&mentions), Err(Refusal::NotAddressed)),
            (&all, mention, Some(&mentions), Ok(Act::WorkItemReply)),
            (&all, empty_mention, Some(&mentions), Err(Refusal::Empty)),
            (&unpublished, said("U0DANA", "hi"), Some(&listening), Err(Refusal::NotPublished(Act::WorkItemReply))),
        ] {
            assert_eq!(outcome(grants, message, binding), expected);
        }
    }

    #[test]
    fn an_empty_list_of_people_denies_everybody() {
        let nobody = Grants { slack_publish: [Act::WorkItemReply].into(), ..Grants::default() };
        assert_eq!(outcome(&nobody, said("U0DANA", "hi"), Some(&bound(Listen::All))), Err(Refusal::Stranger));
    }

    #[test]
    fn of_a_stranger_neither_words_nor_files_are_kept() {
        let grants = Grants { people: vec![dana()], ..Grants::default() };
        let message = |author: &str| Message { text: "hi".into(), ..sent(author) };
        assert_eq!(grants.keepable(message("U0DANA")), message("U0DANA"));
        assert_eq!(grants.keepable(message("U0EVE")), said("U0EVE", ""));
    }

    #[test]
    fn a_github_login_is_compared_without_case() {
        let grants = Grants { people: vec![dana()], ..Grants::default() };
        assert_eq!(grants.name_of(&Person::GitHub("DaNa".into())), Some("Dana"));
        assert_eq!(grants.name_of(&Person::GitHub("dana2".into())), None);
    }

    proptest! {
        #[test]
        fn adding_a_person_or_an_act_never_takes_a_permission_away(
            author in "U[A-C]", people in proptest::collection::vec("U[A-C]", 0..4), publishes: bool, added in "U[A-C]",
        ) {
            let person = |id: &String| KnownPerson { name: id.clone(), ids: vec![Person::Slack(id.clone())] };
            let publish: BTreeSet<Act> = publishes.then_some(Act::WorkItemReply).into_iter().collect();
            let less = Grants { people: people.iter().map(person).collect(), slack_publish: publish, ..Grants::default() };
            let mut more = less.clone();
            more.people.push(person(&added));
            more.slack_publish.insert(Act::WorkItemReply);
            let binding = bound(Listen::All);
            let before = outcome(&less, said(&author, "hi"), Some(&binding)).is_ok();
            let after = outcome(&more, said(&author, "hi"), Some(&binding)).is_ok();
            prop_assert!(!before || after);
        }
    }
}
