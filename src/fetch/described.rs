//! What a file is told to be, and whether it is the file at all.
//!
//! Owns the weighing of three witnesses: the bytes, the server's headers and the platform's claim. It must not know how
//! the bytes came or where they go.

use super::request::Announced;
use super::writer::Keep;
use super::{Policy, Wanted};
use crate::core::attachment::Kind;
use crate::core::safe_name::SafeName;
use crate::core::sniff::Sniffed;

/// Whether the platform answered with its sign-in page in place of the file (field reports F1, A9). A text may begin
/// like a page and be one that a person sent; then the server does not call it one.
pub(super) fn is_sign_in_page(sniffed: Sniffed, announced: &Announced, wanted: &Wanted<'_>) -> bool {
    let declared_text = wanted.declared_media_type.is_some_and(|declared| declared.starts_with("text/"));
    match sniffed {
        _ if wanted.may_be_html => false,
        Sniffed::Known(_) => false,
        Sniffed::Html => announced.is_html() || !declared_text,
        Sniffed::Unknown => announced.is_html(),
    }
}

/// What a file is told to be: by its bytes where they are known, else as claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Described {
    extension: Option<&'static str>,
    pub(super) media_type: Option<String>,
    pub(super) kind: Kind,
}

impl Described {
    pub(super) fn new(sniffed: Sniffed, announced: &Announced, wanted: &Wanted<'_>) -> Self {
        let format = sniffed.overruling(wanted.shown_name);
        let sounds = wanted.kind == Kind::Audio && format.is_some_and(|format| format.kind == Kind::Video);
        match format.map(|format| if sounds { format.as_sound() } else { format }) {
            Some(format) => Self {
                extension: Some(format.extension),
                media_type: Some(format.media_type.to_owned()),
                kind: format.kind,
            },
            None => Self {
                extension: None,
                media_type: wanted.declared_media_type.map(str::to_owned).or_else(|| announced.media_type.clone()),
                kind: if wanted.kind == Kind::Image { Kind::File } else { wanted.kind },
            },
        }
    }

    /// How the file is kept: its name, its permissions, and whether it is measured.
    pub(super) fn keep(&self, wanted: &Wanted<'_>, policy: &Policy) -> Keep {
        let name = SafeName::new(wanted.source_id, wanted.shown_name, self.extension);
        Keep { name, mode: policy.mode, is_picture: self.kind == Kind::Image }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::hop::{self, HostTable};
    use crate::core::sniff::sniff;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01";
    const MP4: &[u8] = b"\0\0\0\x10ftypmp42\0\0\0\0\0\0\0\x08moov";
    const PAGE: &[u8] = b"<!DOCTYPE html><title>Sign in</title>";

    /// What a file named so, announced as `declared` and answered as `answered`, is told to be: `sign-in`, or
    /// `kind media-type name`.
    fn verdict(bytes: &[u8], name: &str, declared: &str, answered: &str, may_be_html: bool) -> String {
        let url = hop::first(&HostTable::slack(), "https://files.slack.com/a").unwrap();
        let wanted = Wanted {
            url: &url,
            source_id: "F1",
            shown_name: name,
            declared_size: None,
            declared_media_type: Some(declared),
            may_be_html,
            kind: Kind::of_media_type(declared),
        };
        let announced = Announced { length: None, media_type: Some(answered.into()) };
        if is_sign_in_page(sniff(bytes), &announced, &wanted) {
            return "sign-in".into();
        }
        let described = Described::new(sniff(bytes), &announced, &wanted);
        let name = SafeName::new("F1", name, described.extension);
        format!("{} {} {name}", described.kind.word(), described.media_type.unwrap_or_default())
    }

    #[test]
    fn three_witnesses_say_what_a_file_is() {
        for (bytes, name, declared, answered, expected) in [
            (PNG, "shot.png", "image/png", "image/png", "image image/png F1-shot.png"),
            (PNG, "shot.jpg", "image/jpeg", "image/jpeg", "image image/png F1-shot.png"),
            (PNG, "shot.png", "image/png", "text/html", "image image/png F1-shot.png"),
            (MP4, "audio_message.webm", "audio/webm", "video/mp4", "audio audio/mp4 F1-audio_message.m4a"),
            (MP4, "clip.mp4", "video/mp4", "video/mp4", "video video/mp4 F1-clip.mp4"),
            (PAGE, "shot.png", "image/png", "text/html", "sign-in"),
            (PAGE, "shot.png", "image/png", "image/png", "sign-in"),
            (PAGE, "notes.txt", "text/plain", "text/html", "sign-in"),
            (PAGE, "snippet.html", "text/plain", "text/plain", "file text/plain F1-snippet.html"),
            (b"words", "notes.pdf", "application/pdf", "text/html", "sign-in"),
            (b"words", "notes.txt", "text/plain", "text/plain", "file text/plain F1-notes.txt"),
            (b"words", "shot.png", "image/png", "image/png", "file application/octet-stream F1-shot.bin"),
            (b"<svg/>", "drawing.svg", "image/svg+xml", "image/svg+xml", "file image/svg+xml F1-drawing.svg"),
        ] {
            assert_eq!(verdict(bytes, name, declared, answered, false), expected, "{name} {declared} {answered}");
        }
    }

    #[test]
    fn what_is_a_page_by_rights_is_a_file() {
        let canvas = verdict(PAGE, "Plan", "application/vnd.slack-docs", "text/html", true);
        assert_eq!(canvas, "file application/vnd.slack-docs F1-Plan");
    }
}
