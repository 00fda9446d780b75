//! Reading Slack's JSON without ever failing: every field may be missing, null, or of another type.
//!
//! Owns the accessors. They stand in for typed deserialisers because one wrong type anywhere would cost the whole
//! message: real payloads have `lines: "120"`, `{}` or null for a list, `[]` for an object, null names (platform-facts
//! B3). It must not know any shape.

use serde_json::Value;

/// A field of an object; null when it is missing or `object` is none.
pub fn field<'v>(object: &'v Value, key: &str) -> &'v Value {
    object.get(key).unwrap_or(&Value::Null)
}

/// A text that is there: the empty string counts as missing, because Slack writes it for "none".
pub fn text<'v>(object: &'v Value, key: &str) -> Option<&'v str> {
    field(object, key).as_str().filter(|text| !text.is_empty())
}

/// A text with more in it than white space.
pub fn words<'v>(object: &'v Value, key: &str) -> Option<&'v str> {
    text(object, key).filter(|text| !text.trim().is_empty())
}

/// An id of a person, a conversation or a workspace. They become part of identities and of the pane's first line, so
/// anything but a short plain word counts as missing.
pub fn id<'v>(object: &'v Value, key: &str) -> Option<&'v str> {
    text(object, key).filter(|id| is_id(id))
}

/// Whether a text has the form of an id.
pub fn is_id(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
}

/// A count, also when it is written as a text.
pub fn count(object: &Value, key: &str) -> Option<u64> {
    let value = field(object, key);
    value.as_u64().or_else(|| value.as_str()?.trim().parse().ok())
}

/// A switch, also when it is written as a number or a text; off when it is missing.
pub fn flag(object: &Value, key: &str) -> bool {
    match field(object, key) {
        Value::Bool(on) => *on,
        Value::Number(number) => number.as_u64() == Some(1),
        Value::String(text) => text == "true" || text == "1",
        _ => false,
    }
}

/// The items of a list; none for `{}`, null or anything else.
pub fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn wrong_types_read_as_missing_and_texts_as_numbers() {
        let object =
            json!({"name": null, "title": "", "size": "20480", "lines": 7, "on": "true", "one": 1, "list": {}});
        assert_eq!(text(&object, "name"), None);
        assert_eq!(text(&object, "title"), None);
        assert_eq!(count(&object, "size"), Some(20480));
        assert_eq!(count(&object, "lines"), Some(7));
        assert_eq!(count(&object, "name"), None);
        assert!(flag(&object, "on") && flag(&object, "one") && !flag(&object, "name"));
        assert!(items(field(&object, "list")).is_empty());
        assert_eq!(field(&json!([]), "name"), &Value::Null);
    }

    #[test]
    fn an_id_is_a_short_plain_word() {
        for (text, expected) in [("U0456GHIJ", true), ("W_1-a", true), ("", false), ("U1\n", false), ("U 1", false)] {
            assert_eq!(is_id(text), expected, "{text:?}");
        }
        assert!(!is_id(&"U".repeat(65)));
    }
}
