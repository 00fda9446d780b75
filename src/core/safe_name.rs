//! Safe names: what a file is called on this machine, whatever a person called it.
//!
//! Owns the one rule by which a shown name becomes a name on disk. It must not know directories or whether a name is
//! taken; what the person called the file is shown elsewhere, as data.

use std::fmt;

/// The longest name, in bytes; every file system takes it, with room for a numbered suffix elsewhere.
const MAX_BYTES: usize = 120;

/// The longest source id that is kept: a SHA-256 in hexadecimal.
const MAX_SOURCE_ID: usize = 64;

/// The longest extension, in characters.
const MAX_EXTENSION: usize = 8;

/// A name on disk: `<source id>-<safe name>`, ASCII, one path component, at most 120 bytes, no leading dot or dash.
///
/// The first dash ends the source id, so names of two sources never meet. Only this module makes one:
///
/// ```compile_fail,E0451
/// let forged = usher::core::safe_name::SafeName { full: "../../CLAUDE.md".into(), stem_end: 0 };
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SafeName {
    full: String,
    /// Where the extension begins, its dot included; the length of `full` without one.
    stem_end: usize,
}

impl SafeName {
    /// Names a file by the platform's id, what the person called it, and the extension that its bytes ask for. The bytes
    /// win over the shown extension: an agent that opens a JPEG as `.png` loses its turn (field reports A8, G4).
    pub fn new(source_id: &str, shown_name: &str, extension_by_bytes: Option<&str>) -> Self {
        let (shown_stem, shown_extension) = split_extension(shown_name);
        let extension = extension_by_bytes.filter(|extension| is_extension(extension)).or(shown_extension);
        let extension = extension.map(|extension| format!(".{}", extension.to_ascii_lowercase())).unwrap_or_default();
        let id = safe_id(source_id);
        let room = MAX_BYTES - extension.len() - id.len() - 1;
        let mut full = format!("{id}-{}", safe_stem(shown_stem, room));
        let stem_end = full.len();
        full.push_str(&extension);
        Self { full, stem_end }
    }

    /// The same name for the `number`th file that wants it: `F1-shot.png`, `F1-shot-2.png`, and so on.
    pub fn numbered(&self, number: u32) -> Self {
        if number < 2 {
            return self.clone();
        }
        let (stem, extension) = self.full.split_at_checked(self.stem_end).unwrap_or((&self.full, ""));
        let suffix = format!("-{number}");
        let room = MAX_BYTES - extension.len() - suffix.len();
        let mut full: String = stem.chars().take(room).collect();
        full.push_str(&suffix);
        let stem_end = full.len();
        full.push_str(extension);
        Self { full, stem_end }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.full
    }
}

impl fmt::Display for SafeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.full)
    }
}

/// The plain extension of a shown name: 1 to 8 ASCII letters and digits after the last dot, at least one a letter, so
/// that `v1.2` and `10.41.22 PM` have none.
pub fn shown_extension(shown_name: &str) -> Option<&str> {
    split_extension(shown_name).1
}

fn split_extension(shown_name: &str) -> (&str, Option<&str>) {
    match shown_name.rsplit_once('.') {
        Some((stem, extension)) if is_extension(extension) => (stem, Some(extension)),
        _ => (shown_name, None),
    }
}

fn is_extension(text: &str) -> bool {
    (1..=MAX_EXTENSION).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && text.bytes().any(|byte| byte.is_ascii_alphabetic())
}

fn safe_id(source_id: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let id: String = source_id.chars().take(MAX_SOURCE_ID).map(plain).collect();
    if id.is_empty() { "file".to_owned() } else { id }
}

/// Letters, digits and single separators; everything else, every slash and space among it, becomes one `_`.
fn safe_stem(shown_stem: &str, room: usize) -> String {
    let mut stem = String::new();
    for c in shown_stem.chars() {
        let c = if c.is_ascii_alphanumeric() || matches!(c, '.' | '-') { c } else { '_' };
        let follows_separator = stem.chars().next_back().is_none_or(is_separator);
        if stem.len() < room && !(is_separator(c) && follows_separator) {
            stem.push(c);
        }
    }
    let stem = stem.trim_end_matches(is_separator);
    if stem.is_empty() { "file".to_owned() } else { stem.to_owned() }
}

fn is_separator(c: char) -> bool {
    matches!(c, '.' | '-' | '_')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn shown_names_become_one_plain_component() {
        for (id, shown, by_bytes, expected) in [
            ("F1", "shot.png", Some("png"), "F1-shot.png"),
            ("F1", "shot.PNG", None, "F1-shot.png"),
            ("F1", "photo.jpeg", Some("jpg"), "F1-photo.jpg"),
            ("F1", "shot.png", Some("jpg"), "F1-shot.jpg"),
            ("F1", "", None, "F1-file"),
            ("F1", "", Some("m4a"), "F1-file.m4a"),
            ("", "a", None, "file-a"),
            ("F1", "../../CLAUDE.md", None, "F1-CLAUDE.md"),
            ("../F1", r"C:\x\..\y.txt", None, "___F1-C_x_y.txt"),
            ("F1", ".bashrc", None, "F1-file.bashrc"),
            ("F1", "  .x.png", None, "F1-x.png"),
            ("F1", "-rf", None, "F1-rf"),
            ("F1", "v1.2", Some("png"), "F1-v1.2.png"),
            ("F1", "archive.tar.gz", None, "F1-archive.tar.gz"),
            (
                "F1",
                "Screenshot 2026-11-30 at 10.41.22\u{202f}PM.png",
                None,
                "F1-Screenshot_2026-11-30_at_10.41.22_PM.png",
            ),
            ("F1", "gpj.\u{202e}exe", None, "F1-gpj.exe"),
            ("F1", "日本語.pdf", None, "F1-file.pdf"),
            ("F1", "a\0b\n`$(id)`<!-- x -->", None, "F1-a_b_id_x"),
            ("F1", "name.averylongextension", None, "F1-name.averylongextension"),
            ("F1", "a.png", Some("../x"), "F1-a.png"),
        ] {
            assert_eq!(SafeName::new(id, shown, by_bytes).as_str(), expected, "{shown:?}");
        }
    }

    #[test]
    fn namesakes_are_numbered_before_the_extension() {
        let name = SafeName::new("F1", "shot.png", None);
        assert_eq!(name.numbered(1), name);
        assert_eq!(name.numbered(2).as_str(), "F1-shot-2.png");
        assert_eq!(SafeName::new("F1", "shot", None).numbered(12).as_str(), "F1-shot-12");
    }

    fn check_is_safe(name: &str) {
        assert!(name.len() <= MAX_BYTES, "{name}");
        assert!(name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_')), "{name}");
        assert!(!name.starts_with(['.', '-']) && !name.contains("..") && !name.ends_with('.'), "{name}");
    }

    proptest! {
        #[test]
        fn every_name_is_safe(
            id in ".{0,200}", shown in ".{0,300}", by_bytes in prop::option::of(".{0,12}"), number in any::<u32>()
        ) {
            let name = SafeName::new(&id, &shown, by_bytes.as_deref());
            check_is_safe(name.as_str());
            check_is_safe(name.numbered(number).as_str());
        }

        #[test]
        fn a_name_keeps_its_source_apart(id in "[A-Z0-9]{1,20}", shown in ".{0,300}") {
            let name = SafeName::new(&id, &shown, None);
            prop_assert_eq!(name.as_str().split_once('-').map(|(id, _)| id), Some(id.as_str()));
        }

        #[test]
        fn numbers_tell_namesakes_apart(shown in ".{0,300}", one in 2_u32..500, other in 2_u32..500) {
            prop_assume!(one != other);
            let name = SafeName::new("F1", &shown, None);
            prop_assert_ne!(name.numbered(one), name.numbered(other));
        }
    }
}
