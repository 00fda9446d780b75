//! The excerpt: what a prompt may read of a GitHub event.
//!
//! Owns its size: a text field has 3,500 characters at most, the whole 4,000, and it is valid JSON whatever the event
//! said. Which fields there are is decided where the event is read (`github::event`).

use serde_json::{Map, Value};

/// The longest text field, in characters.
const FIELD: usize = 3_500;

/// The longest excerpt, in characters.
const WHOLE: usize = 4_000;

/// Stands where a text was cut, inside its string.
const CUT: &str = " … (cut by usher)";

/// The facts as JSON for people's eyes, cut to size. Texts are shortened until the whole fits; at last they are dropped.
pub fn excerpt(facts: &Map<String, Value>) -> String {
    let mut field = FIELD;
    loop {
        let text = rendered(facts, field);
        if text.chars().count() <= WHOLE {
            return text;
        }
        if field == 0 {
            return outline(facts);
        }
        field /= 2;
    }
}

fn rendered(facts: &Map<String, Value>, field: usize) -> String {
    let short: Map<String, Value> = facts.iter().map(|(name, value)| (name.clone(), shortened(value, field))).collect();
    serde_json::to_string_pretty(&short).unwrap_or_default()
}

fn shortened(value: &Value, field: usize) -> Value {
    match value {
        Value::String(text) if text.chars().count() > field => {
            let kept: String = text.chars().take(field).collect();
            Value::String(format!("{kept}{CUT}"))
        }
        Value::Array(items) => items.iter().map(|item| shortened(item, field)).collect(),
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), shortened(value, field))).collect(),
        other => other.clone(),
    }
}

/// What is left of an event with more fields than an excerpt holds: how many there were of each.
fn outline(facts: &Map<String, Value>) -> String {
    let counted = |value: &Value| match value {
        Value::Array(items) => Value::from(items.len()),
        Value::Object(fields) => Value::from(fields.len()),
        _ => Value::from(1),
    };
    let counts: Map<String, Value> =
        facts.iter().take(20).map(|(name, value)| (name.chars().take(40).collect(), counted(value))).collect();
    serde_json::to_string_pretty(&counts).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn facts(value: &Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn a_short_event_stands_whole() {
        insta::assert_snapshot!(excerpt(&facts(&json!({"comment": {"body": "Fix it", "author": "dana"}}))), @r#"
        {
          "comment": {
            "author": "dana",
            "body": "Fix it"
          }
        }
        "#);
    }

    #[test]
    fn a_long_text_is_cut_inside_its_string() {
        let text = excerpt(&facts(&json!({"comment": {"body": "é".repeat(3_600)}})));
        let read: Value = serde_json::from_str(&text).unwrap();
        let body = read["comment"]["body"].as_str().unwrap();
        assert_eq!(body.chars().count(), 3_500 + CUT.chars().count());
        assert!(body.ends_with(CUT));
    }

    proptest! {
        #[test]
        fn every_excerpt_is_valid_json_of_at_most_4000_characters(
            texts in proptest::collection::vec("(?s).{0,3000}", 0..12), names in proptest::collection::vec("[a-z]{1,60}", 12),
        ) {
            let comments: Vec<Value> = texts.iter().map(|text| json!({"body": text, "path": text})).collect();
            let mut all = facts(&json!({"comments": comments}));
            all.extend(names.into_iter().zip(texts.into_iter().map(Value::from)));
            let text = excerpt(&all);
            prop_assert!(text.chars().count() <= WHOLE);
            prop_assert!(serde_json::from_str::<Value>(&text).is_ok());
        }
    }
}
