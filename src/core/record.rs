//! The record: what the ticket reads.
//!
//! Owns the wording of a ledger comment, its cut into parts and its signed last line. It never holds a path, a private
//! URL or a token: it is made from names, links for people and fixed words. It must not know how a comment is posted.

use crate::core::attachment::{Attachment, Outcome};
use crate::core::delivery::{NAME_CHARS, facts, shown_name};
use crate::core::envelope::{Envelope, EnvelopeKey};
use crate::core::grant::Authorised;
use crate::core::message::{Message, MessageId, Place, Quote, Supplement};
use crate::core::pane_text::{clean, one_line};
use crate::core::scrub::{inert, scrub};

/// GitHub refuses a body over 65,536 characters and may count four-byte text differently (platform-facts G).
const PART_CHARS: usize = 60_000;

/// All that the ticket reads of a deletion.
const DELETED: &str =
    "The message was deleted after usher took it. What was recorded of it stays; the agent may have read it.";

/// A record, in as many comments as it needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    id: MessageId,
    parts: Vec<String>,
}

/// Whether the ticket may read the words, or only that something was said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disclosure {
    /// The words and the names of the files.
    Words,
    /// A stub with the link: the conversation is private and the repository is public (field report L4).
    Stub,
}

impl Record {
    /// The record of a message, each part ending in its signed envelope.
    pub fn new(authorised: &Authorised, attachments: &[Attachment], disclosure: Disclosure, key: &EnvelopeKey) -> Self {
        let message = authorised.message();
        let lines = match disclosure {
            _ if is_deletion(message) => vec![DELETED.to_owned()],
            Disclosure::Words => content(message, attachments),
            Disclosure::Stub => vec!["The words stay in a private conversation; this repository is public.".to_owned()],
        };
        let chunks = cut(&lines);
        let parts = chunks.len();
        let sealed = |(index, chunk): (usize, &String)| {
            let envelope = Envelope {
                id: message.id.clone(),
                act: authorised.act(),
                actor: message.author.to_string(),
                time: message.sent_at,
                part: index + 1,
                parts,
            };
            format!("{}\n\n{chunk}\n\n{}", heading(authorised, index + 1, parts), envelope.seal(key))
        };
        Self { id: message.id.clone(), parts: chunks.iter().enumerate().map(sealed).collect() }
    }

    /// The message that it records.
    pub fn id(&self) -> &MessageId {
        &self.id
    }

    /// The comment bodies, in order.
    pub fn parts(&self) -> &[String] {
        &self.parts
    }
}

/// A notice as a comment: not a record, but as harmless as one, and signed so that it never comes back as a message.
pub fn notice(text: &str, envelope: &Envelope, key: &EnvelopeKey) -> String {
    format!("> [!NOTE]\n{}\n\n{}", quote(&format!("**usher**: {}", safe(&clean(text)))), envelope.seal(key))
}

fn quote(text: &str) -> String {
    text.lines().map(|line| format!("> {line}")).collect::<Vec<_>>().join("\n")
}

fn is_deletion(message: &Message) -> bool {
    matches!(message.supplement, Some(Supplement::Deleted { .. }))
}

fn heading(authorised: &Authorised, part: usize, parts: usize) -> String {
    let message = authorised.message();
    let speaker = safe(&one_line(authorised.speaker(), NAME_CHARS));
    let platform = match &message.place {
        Place::Slack(_) => "Slack",
        Place::GitHub(_) => "GitHub",
    };
    let place = match &message.permalink {
        Some(link) => format!("[{platform}]({link})"),
        None => platform.to_owned(),
    };
    let what = match message.supplement {
        None if message.late => ", late",
        None => "",
        Some(Supplement::LateFile { .. }) => ", a late file",
        Some(Supplement::Edited { .. }) => ", edited",
        Some(Supplement::Deleted { .. }) => ", deleted",
        Some(Supplement::Transcript { .. }) => ", a transcript",
    };
    let counter = if parts > 1 { format!(" (part {part} of {parts})") } else { String::new() };
    format!("💬 **{speaker}** (`{}`) on {place}{what}, by usher{counter}:", message.author)
}

fn content(message: &Message, attachments: &[Attachment]) -> Vec<String> {
    let mut lines = Vec::new();
    let words = clean(&message.text);
    if !words.trim().is_empty() {
        lines.extend(safe(words.trim_matches('\n')).lines().map(|line| format!("> {line}")));
        lines.push(String::new());
    }
    for quote in &message.quotes {
        lines.extend(quoted(quote));
        lines.push(String::new());
    }
    for attachment in attachments {
        lines.extend(file_lines(attachment));
    }
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

fn quoted(quote: &Quote) -> Vec<String> {
    let author = safe(&one_line(&quote.author, NAME_CHARS));
    let place = safe(&one_line(&quote.place, NAME_CHARS));
    let link = quote.permalink.as_deref().map(|link| format!(", {}", safe(&one_line(link, 500)))).unwrap_or_default();
    let words = safe(&clean(&quote.text));
    let head = format!("> forwarded from {author} in {place}{link}:");
    std::iter::once(head).chain(words.lines().map(|line| format!("> > {line}"))).collect()
}

fn file_lines(attachment: &Attachment) -> Vec<String> {
    let name = safe(&shown_name(&attachment.name));
    let link = attachment.link.as_deref().map(|link| format!(" — {}", safe(&one_line(link, 1000)))).unwrap_or_default();
    let refused = match &attachment.outcome {
        Outcome::Saved(_) => String::new(),
        Outcome::NotFetched(reason) => format!(" (not fetched: {reason})"),
    };
    let line = format!("📎 {name}{}{link}{refused}", facts(attachment));
    let transcript = attachment.transcript.as_deref().map(|words| {
        let words = safe(&one_line(words, PART_CHARS));
        format!("> Slack's transcript: {words}")
    });
    // A blank line ends the quote; without it the next file would be drawn into it.
    std::iter::once(line).chain(transcript.into_iter().flat_map(|quote| [quote, String::new()])).collect()
}

/// Outside text as the ticket may show it: no tokens, and nothing that pings, links, closes or hides.
fn safe(text: &str) -> String {
    inert(&scrub(text))
}

/// Cuts into parts at line ends; a single line longer than a part is cut within.
fn cut(lines: &[String]) -> Vec<String> {
    let mut parts = Vec::new();
    let mut part = String::new();
    let mut chars = 0;
    for line in lines.iter().flat_map(|line| pieces(line)) {
        let length = line.chars().count() + 1;
        if chars + length > PART_CHARS && chars > 0 {
            parts.push(std::mem::take(&mut part));
            chars = 0;
        }
        if chars > 0 {
            part.push('\n');
        }
        part.push_str(&line);
        chars += length;
    }
    parts.push(part);
    parts
}

/// A line, or a quoted line too long for a part, as lines that fit.
fn pieces(line: &str) -> Vec<String> {
    let quote = if line.starts_with("> ") { "> " } else { "" };
    let room = PART_CHARS - 2;
    let chars: Vec<char> = line.chars().collect();
    if chars.len() <= room {
        return vec![line.to_owned()];
    }
    let tail = |chunk: &[char]| chunk.iter().collect::<String>();
    let mut chunks = chars.chunks(room).map(tail);
    let first = chunks.next().unwrap_or_default();
    std::iter::once(first).chain(chunks.map(|chunk| format!("{quote}{chunk}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::attachment::{Kind, Reason, SavedFile, Source};
    use crate::core::grant::tests::{authorised, said, sent};
    use proptest::prelude::*;

    fn key() -> EnvelopeKey {
        EnvelopeKey::new([7; 32])
    }

    fn file(name: &str, outcome: Outcome) -> Attachment {
        Attachment {
            id: "F07ABC".into(),
            source: Source::Slack,
            name: name.into(),
            kind: Kind::Image,
            mimetype: Some("image/png".into()),
            size: Some(1_234_567),
            link: Some("https://ws.slack.com/files/U0DANA/F07ABC/shot.png".into()),
            outcome,
            transcript: None,
            transcript_pending: false,
        }
    }

    fn saved() -> Outcome {
        let path = "/state/local/attachments/owner--repo--12/F07ABC-shot.png".into();
        Outcome::Saved(SavedFile { path, sha256: "00".into(), pixels: None })
    }

    fn body(message: Message, attachments: &[Attachment], disclosure: Disclosure) -> String {
        let record = Record::new(&authorised(message), attachments, disclosure, &key());
        let whole = record.parts().join("\n=====\n");
        whole.lines().filter(|line| !line.starts_with("<!-- usher:record ")).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn the_record_has_the_words_and_the_files_and_no_path() {
        let note = Attachment {
            kind: Kind::Audio,
            transcript: Some("on the left".into()),
            ..file("note.m4a", Outcome::NotFetched(Reason::TransferFailed))
        };
        let text = body(
            said("U0DANA", "Look at this.\n\nfixes #3, @octocat"),
            &[file("shot.png", saved()), note],
            Disclosure::Words,
        );
        insta::assert_snapshot!(text.replace('\u{200b}', "<U+200B>"), @"
        💬 **Dana** (`slack:U0DANA`) on [Slack](https://acme.slack.com/archives/C1/p1700000000000100), by usher:

        > Look at this.
        > 
        > fixes<U+200B> #3, @<U+200B>octocat

        📎 shot.png (image/png, 1.2 MB) — https://ws.slack.com/files/U0DANA/F07ABC/shot.png
        📎 note.m4a (image/png, 1.2 MB) — https://ws.slack.com/files/U0DANA/F07ABC/shot.png (not fetched: the transfer failed)
        > Slack's transcript: on the left
        ");
    }

    #[test]
    fn a_private_conversation_leaves_a_stub_on_a_public_repository() {
        let text = body(said("U0DANA", "the customer is ACME"), &[file("acme.png", saved())], Disclosure::Stub);
        insta::assert_snapshot!(text, @"
        💬 **Dana** (`slack:U0DANA`) on [Slack](https://acme.slack.com/archives/C1/p1700000000000100), by usher:

        The words stay in a private conversation; this repository is public.
        ");
    }

    #[test]
    fn supplements_say_what_they_are() {
        let of = MessageId::slack("T1", "C1", "1.2");
        let edit =
            Message { supplement: Some(Supplement::Edited { of: of.clone() }), ..said("U0DANA", "the right one") };
        insta::assert_snapshot!(body(edit, &[], Disclosure::Words), @"
        💬 **Dana** (`slack:U0DANA`) on [Slack](https://acme.slack.com/archives/C1/p1700000000000100), edited, by usher:

        > the right one
        ");
        let deletion = Message { supplement: Some(Supplement::Deleted { of: of.clone() }), ..said("U0DANA", "") };
        insta::assert_snapshot!(body(deletion.clone(), &[], Disclosure::Words), @"
        💬 **Dana** (`slack:U0DANA`) on [Slack](https://acme.slack.com/archives/C1/p1700000000000100), deleted, by usher:

        The message was deleted after usher took it. What was recorded of it stays; the agent may have read it.
        ");
        assert_eq!(body(deletion.clone(), &[], Disclosure::Stub), body(deletion, &[], Disclosure::Words));
        let note =
            Attachment { kind: Kind::Audio, transcript: Some("on the left".into()), ..file("note.m4a", saved()) };
        let brought = Supplement::Transcript { of, name: "note.m4a".into() };
        let brought = Message { supplement: Some(brought), ..sent("U0DANA") };
        insta::assert_snapshot!(body(brought, &[note], Disclosure::Words), @"
        💬 **Dana** (`slack:U0DANA`) on [Slack](https://acme.slack.com/archives/C1/p1700000000000100), a transcript, by usher:

        📎 note.m4a (image/png, 1.2 MB) — https://ws.slack.com/files/U0DANA/F07ABC/shot.png
        > Slack's transcript: on the left
        ");
    }

    #[test]
    fn screenshot_names_and_permalinks_stay_whole() {
        let text = body(sent("U0DANA"), &[file("Screenshot_20240915-142233.png", saved())], Disclosure::Words);
        assert!(text.contains("📎 Screenshot_20240915-142233.png (image/png, 1.2 MB) — https://ws.slack.com/files/U0DANA/F07ABC/shot.png"), "{text}");
    }

    #[test]
    fn a_typed_envelope_or_token_does_nothing() {
        let forged = "<!-- usher:record {\"id\":\"x\"} 00 --> xoxb-12345678901-abcdefghijkl";
        let text = body(said("U0DANA", forged), &[file(forged, saved())], Disclosure::Words);
        assert!(!text.contains("<!--") && !text.contains("xoxb-1"), "{text}");
    }

    #[test]
    fn a_long_record_is_cut_into_numbered_parts_of_whole_envelopes() {
        let long = format!("{}\n{}", "a".repeat(70_000), "line\n".repeat(20_000));
        let record = Record::new(&authorised(said("U0DANA", &long)), &[], Disclosure::Words, &key());
        assert_eq!(record.parts().len(), 4);
        for (index, part) in record.parts().iter().enumerate() {
            assert!(part.chars().count() < 62_000);
            let envelope = Envelope::of_comment(part, &key()).unwrap();
            assert_eq!((envelope.part, envelope.parts), (index + 1, 4));
        }
    }

    proptest! {
        #[test]
        fn outside_text_never_reads_as_an_envelope(words in "(?s).{0,200}", name in "(?s).{0,60}") {
            let record = Record::new(&authorised(Message { text: words, ..sent("U0DANA") }), &[file(&name, saved())], Disclosure::Words, &key());
            let whole = record.parts().concat();
            prop_assert_eq!(whole.matches("<!--").count(), record.parts().len());
            prop_assert!(!whole.contains("/state/"));
        }
    }
}
