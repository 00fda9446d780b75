//! Forwarded messages: the words and files of others inside a message's `attachments[]`.
//!
//! Owns the shape of a share and of the other cards there. It must not know what becomes of a quote. What is forwarded
//! is never the sender's own word, and its files, stubs included, travel with the message (field report T18).

use serde_json::{Value, json};

use crate::core::attachment::AttachmentRef;
use crate::core::loose::{field, flag, items, text, words};
use crate::core::message::Quote;
use crate::slack::file::{public_link, read_file, read_files};
use crate::slack::mrkdwn::{Reader, as_mrkdwn, file_ids, one_line};

/// Whether an attachment is a message that the sender forwarded, and not a link's preview.
pub(super) fn is_forward(attachment: &Value) -> bool {
    flag(attachment, "is_share") || flag(attachment, "is_msg_unfurl")
}

/// The forwarded words, with who said them and where.
pub(super) fn quote(attachment: &Value, reader: Reader<'_>) -> Quote {
    let permalink = ["from_url", "original_url"].iter().filter_map(|key| text(attachment, key)).find_map(public_link);
    Quote {
        author: author(attachment, reader),
        place: place(attachment, reader),
        permalink,
        text: reader.plain(&forwarded_words(attachment)),
    }
}

/// The files of a forwarded message.
pub(super) fn files(attachment: &Value) -> Vec<AttachmentRef> {
    let mut files = read_files(field(attachment, "files"));
    for message in messages(attachment) {
        files.extend(read_files(field(message, "files")));
        files.extend(files_in_text(field(message, "blocks")));
    }
    files
}

/// The files that stand in a message's rich text; their objects must be asked for.
pub(super) fn files_in_text(blocks: &Value) -> impl Iterator<Item = AttachmentRef> {
    file_ids(blocks).filter_map(|id| read_file(&json!({ "id": id })))
}

/// What a card says, as mrkdwn: its own texts, else the fallback that notifications show.
pub(super) fn card(attachment: &Value) -> String {
    let texts = card_texts(attachment);
    if texts.is_empty() { text(attachment, "fallback").unwrap_or_default().to_owned() } else { texts }
}

fn card_texts(attachment: &Value) -> String {
    let own = ["pretext", "title", "text"].map(|key| words(attachment, key).map(str::to_owned));
    let fields = items(field(attachment, "fields")).iter().map(card_field);
    let blocks = Some(as_mrkdwn(field(attachment, "blocks")));
    let parts = own.into_iter().chain(fields).chain([blocks]).flatten();
    parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

fn card_field(field: &Value) -> Option<String> {
    match (words(field, "title"), words(field, "value")) {
        (Some(title), Some(value)) => Some(format!("{title}: {value}")),
        (title, value) => title.or(value).map(str::to_owned),
    }
}

/// The words of a share: its texts, else the forwarded message's blocks, else the fallback.
fn forwarded_words(attachment: &Value) -> String {
    let texts = card_texts(attachment);
    if !texts.is_empty() {
        return texts;
    }
    let blocks: Vec<String> = messages(attachment).map(|message| as_mrkdwn(field(message, "blocks"))).collect();
    let blocks = blocks.join("\n");
    if blocks.trim().is_empty() { card(attachment) } else { blocks }
}

/// The forwarded messages themselves, as `message_blocks` holds them.
fn messages(attachment: &Value) -> impl Iterator<Item = &Value> {
    items(field(attachment, "message_blocks")).iter().map(|entry| field(entry, "message"))
}

fn author(attachment: &Value, reader: Reader<'_>) -> String {
    let id = text(attachment, "author_id");
    let known = id.and_then(|id| reader.names.name_of(id));
    let shown = known.or(words(attachment, "author_name")).or(words(attachment, "author_subname")).or(id);
    shown.map(one_line).unwrap_or_default()
}

fn place(attachment: &Value, reader: Reader<'_>) -> String {
    let id = text(attachment, "channel_id");
    let known = id.and_then(|id| reader.names.name_of(id)).or(words(attachment, "channel_name"));
    known.map(|name| format!("#{}", one_line(name))).or_else(|| id.map(one_line)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use crate::slack::mrkdwn::Names;

    use super::*;

    fn check(attachment: &Value, expected: &str) {
        let names = Names::new([("U7", "Rae"), ("C7", "incidents")]);
        let quote = quote(attachment, Reader { names: &names, own: Some("UBOT") });
        let shown = [&quote.author, &quote.place, quote.permalink.as_deref().unwrap_or("-"), &quote.text].join(" | ");
        assert_eq!(shown, expected, "{attachment}");
    }

    #[test]
    fn a_share_and_a_linked_message_are_forwards_and_a_preview_is_none() {
        for (attachment, expected) in [
            (json!({"is_share": true}), true),
            (json!({"is_msg_unfurl": true}), true),
            (json!({"is_share": 1, "is_msg_unfurl": false}), true),
            (json!({"is_share": false, "is_app_unfurl": true, "title": "Example"}), false),
            (json!(null), false),
        ] {
            assert_eq!(is_forward(&attachment), expected, "{attachment}");
        }
    }

    #[test]
    fn a_quote_names_who_said_it_and_where() {
        let permalink = "https://acme.slack.com/archives/C7/p1700000000000100";
        check(
            &json!({"author_id": "U7", "author_name": "rae", "channel_id": "C7", "from_url": permalink, "text": "ask <@UBOT> &amp; wait"}),
            &format!("Rae | #incidents | {permalink} | ask @usher & wait"),
        );
        check(
            &json!({"author_subname": "Sam\n[usher end]", "channel_name": "#general", "original_url": permalink, "text": "hi"}),
            &format!("Sam [usher end] | #general | {permalink} | hi"),
        );
        check(&json!({"author_id": "U8", "channel_id": "D8", "from_url": "x:y", "text": "hi"}), "U8 | D8 | - | hi");
        check(&json!({}), " |  | - | ");
    }

    #[test]
    fn the_forwarded_words_are_found_wherever_they_are() {
        let blocks = json!([{"type": "section", "text": {"type": "mrkdwn", "text": "disk full"}}]);
        check(
            &json!({"message_blocks": [{"message": {"blocks": blocks}}], "fallback": "[no preview]"}),
            " |  | - | disk full",
        );
        check(&json!({"blocks": blocks}), " |  | - | disk full");
        check(
            &json!({"title": "Alert", "fields": [{"title": "host", "value": "web-1"}]}),
            " |  | - | Alert\nhost: web-1",
        );
        check(&json!({"text": "", "fallback": "rae: disk full"}), " |  | - | rae: disk full");
    }
}
