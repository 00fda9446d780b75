//! Blocks to mrkdwn: what a message says when its `text` is empty.
//!
//! Owns the shapes of rich text and of the layout blocks. Their texts become one mrkdwn text, tokens included, so that
//! there is one reader of tokens and one decode. It must not know names.
//!
//! The client always sends a `rich_text` block next to `text`; `text` alone is empty when an app or a forward brings
//! layout blocks only (platform-facts B2, field report T19).

use serde_json::Value;

use crate::core::loose::{count, field, items, text};

/// The deepest list that is indented; Slack's client goes no deeper than this.
const MAX_INDENT: u64 = 8;

/// The text of blocks, as mrkdwn.
pub(in crate::slack) fn as_mrkdwn(blocks: &Value) -> String {
    lines(items(blocks).iter().map(block))
}

/// The files that stand in the rich text itself: an `app_mention` may name them nowhere else (platform-facts A5).
pub(in crate::slack) fn file_ids(blocks: &Value) -> impl Iterator<Item = &str> {
    let containers = items(blocks).iter().flat_map(elements);
    let leaves = containers
        .flat_map(|container| elements(container).iter().chain(elements(container).iter().flat_map(elements)));
    leaves.filter(|leaf| text(leaf, "type") == Some("file")).filter_map(|leaf| text(leaf, "file_id"))
}

fn block(block: &Value) -> String {
    match text(block, "type") {
        Some("rich_text") => lines(elements(block).iter().map(container)),
        Some("context") => lines(elements(block).iter().map(context)),
        Some("image" | "video") => lines([text_object(field(block, "title")), escaped(block, "alt_text")]),
        _ => {
            let fields = items(field(block, "fields")).iter().map(text_object);
            lines([text_object(field(block, "text"))].into_iter().chain(fields))
        }
    }
}

/// A text object, or the bare text of a markdown block. Tokens count in `mrkdwn` only.
fn text_object(object: &Value) -> String {
    match text(object, "type") {
        Some("plain_text") => text(object, "text").unwrap_or_default().replace('<', "&lt;").replace('>', "&gt;"),
        _ => object.as_str().or_else(|| text(object, "text")).unwrap_or_default().to_owned(),
    }
}

fn context(element: &Value) -> String {
    if text(element, "type") == Some("image") { escaped(element, "alt_text") } else { text_object(element) }
}

/// A container of rich text, marked the way the client marks it in `text`.
fn container(container: &Value) -> String {
    match text(container, "type") {
        Some("rich_text_list") => list(container),
        Some("rich_text_preformatted") => format!("```\n{}\n```", inline(container)),
        Some("rich_text_quote") => {
            inline(container).lines().map(|line| format!("&gt; {line}")).collect::<Vec<_>>().join("\n")
        }
        _ => inline(container),
    }
}

fn list(list: &Value) -> String {
    let indent = "    ".repeat(usize::try_from(count(list, "indent").unwrap_or(0).min(MAX_INDENT)).unwrap_or(0));
    let first = count(list, "offset").unwrap_or(0).saturating_add(1);
    let ordered = text(list, "style") == Some("ordered");
    let items = elements(list).iter().zip(first..).map(|(item, number)| {
        let mark = if ordered { format!("{number}.") } else { "•".to_owned() };
        format!("{indent}{mark} {}", inline(item))
    });
    items.collect::<Vec<_>>().join("\n")
}

fn inline(container: &Value) -> String {
    elements(container).iter().map(leaf).collect()
}

/// One element inside a line. What is not known says its text, if it has one.
fn leaf(element: &Value) -> String {
    let token =
        |sigil: &str, key: &str| text(element, key).map(|id| format!("<{sigil}{}>", escape(id))).unwrap_or_default();
    match text(element, "type") {
        Some("user") => token("@", "user_id"),
        Some("usergroup") => token("!subteam^", "usergroup_id"),
        Some("channel") => token("#", "channel_id"),
        Some("broadcast") => token("!", "range"),
        Some("link") => link(element),
        Some("emoji") => text(element, "name").map(|name| format!(":{}:", escape(name))).unwrap_or_default(),
        Some("color") => escaped(element, "value"),
        Some("date") => escaped(element, "fallback"),
        _ => escaped(element, "text"),
    }
}

fn link(element: &Value) -> String {
    let label = escaped(element, "text");
    match text(element, "url") {
        // A bar would end the address inside a token.
        Some(url) => format!("<{}|{label}>", escape(url).replace('|', "%7C")),
        None => label,
    }
}

fn elements(value: &Value) -> &[Value] {
    items(field(value, "elements"))
}

fn escaped(object: &Value, key: &str) -> String {
    escape(text(object, key).unwrap_or_default())
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The parts that say something, a line each.
fn lines(parts: impl IntoIterator<Item = String>) -> String {
    parts.into_iter().filter(|part| !part.trim().is_empty()).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::slack::mrkdwn::{Names, from_blocks};

    use super::*;

    #[test]
    fn rich_text_reads_as_the_client_would_write_it() {
        let blocks = json!([{"type": "rich_text", "elements": [
            {"type": "rich_text_section", "elements": [
                {"type": "user", "user_id": "U1"}, {"type": "text", "text": " if a < b & "},
                {"type": "text", "text": "<@U2>", "style": {"code": true}}, {"type": "text", "text": " "},
                {"type": "link", "url": "https://example.com/a|b", "text": "the plan"}, {"type": "emoji", "name": "wave"},
                {"type": "broadcast", "range": "here"}, {"type": "channel", "channel_id": "C1"},
                {"type": "usergroup", "usergroup_id": "S1"}, {"type": "color", "value": "#ff0000"},
                {"type": "date", "timestamp": 1, "format": "{date}", "fallback": " today"},
                {"type": "never_seen", "text": " and more"}, {"type": "file", "file_id": "F1"}
            ]},
            {"type": "rich_text_list", "style": "bullet", "indent": 1, "elements": [
                {"type": "rich_text_section", "elements": [{"type": "text", "text": "one"}]},
                {"type": "rich_text_section", "elements": [{"type": "text", "text": "two"}, {"type": "file", "file_id": "F2"}]}
            ]},
            {"type": "rich_text_list", "style": "ordered", "offset": "2", "elements": [
                {"type": "rich_text_section", "elements": [{"type": "link", "url": "https://example.com/"}]}
            ]},
            {"type": "rich_text_preformatted", "elements": [{"type": "text", "text": "let a = &b;"}]},
            {"type": "rich_text_quote", "elements": [{"type": "text", "text": "said\ntwice"}]}
        ]}]);
        let names = Names::new([("U1", "Dana"), ("C1", "builds")]);
        insta::assert_snapshot!(from_blocks(&blocks, &names), @r"
        @Dana if a < b & <@U2> the plan (https://example.com/a%7Cb):wave:@here#builds@S1#ff0000 today and more
            • one
            • two
        3. https://example.com/
        ```
        let a = &b;
        ```
        > said
        > twice
        ");
        assert_eq!(file_ids(&blocks).collect::<Vec<_>>(), ["F1", "F2"]);
    }

    #[test]
    fn layout_blocks_say_their_texts() {
        let blocks = json!([
            {"type": "header", "text": {"type": "plain_text", "text": "Disk &amp; memory <!here>"}},
            {"type": "section", "text": {"type": "mrkdwn", "text": "on <https://example.com|web-1>"}, "fields": [
                {"type": "mrkdwn", "text": "*used* 91%"}, {"type": "plain_text", "text": ""}
            ]},
            {"type": "divider"},
            {"type": "context", "elements": [
                {"type": "image", "image_url": "https://example.com/i.png", "alt_text": "a graph"},
                {"type": "mrkdwn", "text": "just now"}
            ]},
            {"type": "image", "title": {"type": "plain_text", "text": "Load"}, "alt_text": "load over time"},
            {"type": "markdown", "text": "# Next"},
            {"type": "actions", "elements": [{"type": "button", "text": {"type": "plain_text", "text": "Silence"}}]}
        ]);
        insta::assert_snapshot!(from_blocks(&blocks, &Names::default()), @r"
        Disk & memory <!here>
        on web-1 (https://example.com)
        *used* 91%
        a graph
        just now
        Load
        load over time
        # Next
        ");
    }

    #[test]
    fn anything_else_says_nothing() {
        for blocks in [
            json!(null),
            json!({}),
            json!("text"),
            json!([null, 1, [], {"type": 7}, {"type": "rich_text", "elements": {}}]),
        ] {
            assert_eq!(as_mrkdwn(&blocks), "", "{blocks}");
            assert_eq!(file_ids(&blocks).count(), 0);
        }
    }
}
