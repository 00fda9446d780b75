//! The envelope: the signed hidden line by which usher knows its own records again.
//!
//! Owns writing and reading `<!-- usher:record {json} MAC -->`. Only a line whose MAC was made with this installation's
//! key is believed, so that a typed or copied marker does nothing. It must not know where records are stored.

use hmac::{Hmac, KeyInit as _, Mac as _};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use crate::core::act::Act;
use crate::core::message::MessageId;

const OPEN: &str = "<!-- usher:record ";
const CLOSE: &str = " -->";

/// The key that signs records; 32 random bytes, kept below `local/`.
#[derive(Clone)]
pub struct EnvelopeKey([u8; 32]);

impl EnvelopeKey {
    /// A key as it was drawn or stored.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    fn mac(&self, json: &str) -> Option<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).ok()?;
        mac.update(b"usher:record ");
        mac.update(json.as_bytes());
        Some(mac)
    }
}

impl std::fmt::Debug for EnvelopeKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("EnvelopeKey(..)")
    }
}

/// What a record says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Envelope {
    /// The message that it records.
    pub id: MessageId,
    /// What the message was.
    pub act: Act,
    /// Who said it, `slack:U0456GHIJ`.
    pub actor: String,
    /// When it was said.
    pub time: Timestamp,
    /// Which part of a long record this is, from 1.
    pub part: usize,
    /// How many parts it has.
    pub parts: usize,
}

impl Envelope {
    /// The signed line. `>` is escaped, so nothing in it can end the HTML comment.
    pub fn seal(&self, key: &EnvelopeKey) -> String {
        let json = serde_json::to_string(self).unwrap_or_default().replace('>', "\\u003e");
        let mac = key.mac(&json).map(|mac| hex::encode(mac.finalize().into_bytes())).unwrap_or_default();
        format!("{OPEN}{json} {mac}{CLOSE}")
    }

    /// The envelope of a comment: its last line, and only when the MAC is ours.
    pub fn of_comment(body: &str, key: &EnvelopeKey) -> Option<Self> {
        let inside = body.trim_end().lines().next_back()?.strip_prefix(OPEN)?.strip_suffix(CLOSE)?;
        let (json, mac) = inside.rsplit_once(' ')?;
        key.mac(json)?.verify_slice(&hex::decode(mac).ok()?).ok()?;
        serde_json::from_str(json).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key() -> EnvelopeKey {
        EnvelopeKey::new([7; 32])
    }

    fn envelope(id: &str) -> Envelope {
        Envelope {
            id: MessageId::stored(id),
            act: Act::WorkItemReply,
            actor: "slack:U0DANA".into(),
            time: "2026-12-01T10:00:00Z".parse().unwrap(),
            part: 1,
            parts: 1,
        }
    }

    #[test]
    fn the_line_reads_as_one_hidden_comment() {
        insta::assert_snapshot!(envelope("slack:T1/C1/1.2").seal(&key()), @r#"<!-- usher:record {"id":"slack:T1/C1/1.2","act":"work-item.reply","actor":"slack:U0DANA","time":"2026-12-01T10:00:00Z","part":1,"parts":1} 74d7668b29f60c11dae901ed5235fc0f3d73a9d09f8960fc522e55b948719ba7 -->"#);
    }

    #[test]
    fn only_the_last_line_signed_by_this_key_is_believed() {
        let sealed = envelope("slack:T1/C1/1.2").seal(&key());
        let other = EnvelopeKey::new([8; 32]);
        let forged = sealed.replace("U0DANA", "U0EVIL");
        let believed = |body: &str| Envelope::of_comment(body, &key()).is_some();
        assert!(believed(&format!("words\r\n\r\n{sealed}\r\n")));
        assert!(!believed(&format!("{sealed}\nwords below")));
        assert!(!believed(&format!("> {sealed}")));
        assert!(!believed(&forged));
        assert!(Envelope::of_comment(&sealed, &other).is_none());
    }

    proptest! {
        #[test]
        fn what_is_sealed_is_read_back_and_cannot_end_the_comment_early(id in ".{0,60}") {
            let sealed = envelope(&id).seal(&key());
            prop_assert_eq!(sealed.matches("-->").count(), 1);
            prop_assert_eq!(Envelope::of_comment(&sealed, &key()), Some(envelope(&id)));
        }

        #[test]
        fn no_text_is_believed_by_chance(text in "(?s).{0,200}") {
            prop_assert!(Envelope::of_comment(&text, &key()).is_none());
        }

        #[test]
        fn any_flipped_character_is_refused(at in 0usize..200, c in "[a-z0-9]") {
            let sealed = envelope("slack:T1/C1/1.2").seal(&key());
            let at = at % sealed.len();
            if sealed.is_char_boundary(at) && sealed.is_char_boundary(at + 1) && sealed[at..=at] != c {
                let flipped = format!("{}{c}{}", &sealed[..at], &sealed[at + 1..]);
                prop_assert!(Envelope::of_comment(&flipped, &key()).is_none());
            }
        }
    }
}
