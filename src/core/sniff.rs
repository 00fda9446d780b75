//! Sniffing: what a file is by its first bytes, and how large a picture is by its header.
//!
//! Owns the reading of magic numbers, the recognition of HTML and the rule by which bytes overrule a name. It must not
//! know where the bytes came from, nor look further into them than that: files are carried, never interpreted.

use std::io::{BufRead, Seek};

use infer::MatcherType;

use crate::core::attachment::Kind;
use crate::core::safe_name::shown_extension;

/// How many bytes are enough for [`sniff`]. Office documents name themselves in their third archive entry.
pub const HEAD: usize = 4096;

/// What the first bytes say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sniffed {
    /// A format with a magic number.
    Known(Format),
    /// A page: for anything that is not one by rights, a sign-in page (field report F1).
    Html,
    /// Text, SVG, or nothing known.
    Unknown,
}

/// A recognised format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Format {
    /// Its media type.
    pub media_type: &'static str,
    /// Its extension, without the dot.
    pub extension: &'static str,
    /// What it is to a reader.
    pub kind: Kind,
}

impl Format {
    const fn new(media_type: &'static str, extension: &'static str, kind: Kind) -> Self {
        Self { media_type, extension, kind }
    }

    /// The same container when its announcer says that it holds only sound: Slack serves voice clips as MP4 and WebM
    /// that look like video (platform-facts B4).
    pub fn as_sound(self) -> Self {
        match self.media_type {
            "video/mp4" => MP4_SOUND,
            "video/webm" => Self::new("audio/webm", "webm", Kind::Audio),
            _ => Self { kind: Kind::Audio, ..self },
        }
    }
}

const MP4: Format = Format::new("video/mp4", "mp4", Kind::Video);
const MP4_SOUND: Format = Format::new("audio/mp4", "m4a", Kind::Audio);
const QUICKTIME: Format = Format::new("video/quicktime", "mov", Kind::Video);
const MOBILE_VIDEO: Format = Format::new("video/3gpp", "3gp", Kind::Video);
const HEIC: Format = Format::new("image/heic", "heic", Kind::Image);
const HEIF: Format = Format::new("image/heif", "heif", Kind::Image);
const AVIF: Format = Format::new("image/avif", "avif", Kind::Image);

/// What a file is called whose name claims a picture and whose bytes are none.
const NOT_THAT_PICTURE: Format = Format::new("application/octet-stream", "bin", Kind::File);

impl Sniffed {
    /// The format by which the file is named and described, where the bytes overrule what its name says.
    ///
    /// Pictures, sound, video and PDF always do. A container (a ZIP that is a `.jar`, a gzip that is a `.tgz`) says
    /// little about what is inside: a name stands unless it claims one of those. And a name that claims a picture over
    /// bytes that are none is taken away: an agent that opens it as one loses its turn (field reports A8, G4).
    pub fn overruling(self, shown_name: &str) -> Option<Format> {
        let claimed = shown_extension(shown_name).map(str::to_ascii_lowercase);
        let claims_any = |extensions: &[&str]| claimed.as_deref().is_some_and(|claimed| extensions.contains(&claimed));
        match self {
            Self::Known(format) if format.kind != Kind::File => Some(format),
            Self::Known(format) => (claimed.is_none() || claims_any(PICTURES) || claims_any(MEDIA)).then_some(format),
            Self::Html | Self::Unknown => claims_any(PICTURES).then_some(NOT_THAT_PICTURE),
        }
    }
}

/// Extensions of pictures that agents open, each with a magic number that [`sniff`] cannot miss.
const PICTURES: &[&str] = &["png", "jpg", "jpeg", "gif", "webp"];

/// Extensions of other media with a magic number.
const MEDIA: &[&str] = &[
    "aac", "amr", "avi", "avif", "bmp", "flac", "flv", "heic", "heif", "ico", "m4a", "m4v", "mkv", "mov", "mp3", "mp4",
    "mpeg", "mpg", "ogg", "opus", "pdf", "tif", "tiff", "wav", "webm", "wmv",
];

/// What the first bytes of a file say. [`HEAD`] bytes are enough; fewer may leave it unknown.
pub fn sniff(first_bytes: &[u8]) -> Sniffed {
    let head = first_bytes.get(..HEAD).unwrap_or(first_bytes);
    if is_html(head) {
        Sniffed::Html
    } else if let Some(format) = iso_media(head) {
        Sniffed::Known(format)
    } else if is_text(head) && !head.starts_with(b"%PDF-") {
        // Many magic numbers are letters: a text that begins with `BM`, `GIF` or `MZ` is still a text.
        Sniffed::Unknown
    } else {
        infer::get(head).and_then(format_of).map_or(Sniffed::Unknown, Sniffed::Known)
    }
}

fn format_of(found: infer::Type) -> Option<Format> {
    let kind = match found.matcher_type() {
        MatcherType::Image => Kind::Image,
        MatcherType::Audio => Kind::Audio,
        MatcherType::Video => Kind::Video,
        MatcherType::Text => return None,
        _ if found.mime_type() == "application/pdf" => Kind::Pdf,
        _ => Kind::File,
    };
    Some(Format { media_type: found.mime_type(), extension: found.extension(), kind })
}

/// The ISO base media family, by the major brand of its `ftyp` box; `infer` knows fewer brands.
fn iso_media(head: &[u8]) -> Option<Format> {
    let (brand, compatible) = head.get(8..)?.split_first_chunk::<4>()?;
    if head.get(4..8)? != b"ftyp" {
        return None;
    }
    Some(match brand {
        b"M4A " | b"M4B " | b"M4P " => MP4_SOUND,
        b"heic" | b"heix" | b"heim" | b"heis" => HEIC,
        b"avif" | b"avis" => AVIF,
        b"mif1" | b"msf1" if lists_brand(head, compatible, b"avif") => AVIF,
        b"mif1" | b"msf1" if lists_brand(head, compatible, b"heic") => HEIC,
        b"mif1" | b"msf1" => HEIF,
        b"qt  " => QUICKTIME,
        [b'3', b'g', _, _] => MOBILE_VIDEO,
        _ => MP4,
    })
}

/// Whether the `ftyp` box, whose length the first four bytes hold, lists a compatible brand.
fn lists_brand(head: &[u8], compatible: &[u8], brand: &[u8; 4]) -> bool {
    let box_length = head.first_chunk().map_or(0, |length| u32::from_be_bytes(*length) as usize);
    compatible.chunks_exact(4).take(box_length.saturating_sub(12) / 4).any(|listed| listed == brand)
}

/// UTF-8 without control characters that texts do not hold; a last character that the cut left incomplete is fine.
fn is_text(head: &[u8]) -> bool {
    let valid = match str::from_utf8(head) {
        Ok(text) => text,
        Err(error) if error.error_len().is_some() => return false,
        Err(error) => head.get(..error.valid_up_to()).and_then(|valid| str::from_utf8(valid).ok()).unwrap_or_default(),
    };
    !valid
        .chars()
        .any(|c| c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\u{c}' | '\u{1b}' | '\u{80}'..='\u{9f}'))
}

/// Whether a browser would take the bytes for a page: after a byte order mark, white space and comments comes a tag that
/// only a page begins with. A comment alone is no page: Markdown files begin with one.
fn is_html(head: &[u8]) -> bool {
    const OPENINGS: &[&[u8]] = &[b"<!doctype html", b"<html", b"<head", b"<body", b"<script", b"<title", b"<meta"];
    let start = after_preamble(head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head));
    OPENINGS.iter().any(|opening| {
        start.split_at_checked(opening.len()).is_some_and(|(tag, rest)| {
            tag.eq_ignore_ascii_case(opening) && rest.first().is_none_or(|byte| !byte.is_ascii_alphanumeric())
        })
    })
}

/// What follows white space and comments; nothing when a comment does not end.
fn after_preamble(mut bytes: &[u8]) -> &[u8] {
    loop {
        bytes = bytes.trim_ascii_start();
        let Some(comment) = bytes.strip_prefix(b"<!--") else { return bytes };
        let end = comment.windows(3).position(|window| window == b"-->").map(|at| at + 3);
        bytes = end.and_then(|end| comment.get(end..)).unwrap_or_default();
    }
}

/// Width and height of a picture in pixels, by its header.
pub fn pixels(picture: impl BufRead + Seek) -> Option<(u32, u32)> {
    let size = imagesize::reader_size(picture).ok()?;
    Some((size.width.try_into().ok()?, size.height.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::*;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x05\0\0\0\x02\xd0\x08\x06\0\0\0";
    const JPEG: &[u8] =
        b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0\xff\xc0\0\x11\x08\0\x40\0\x80\x03\x01\x22\0";
    const ZIP: &[u8] = b"PK\x03\x04\x14\0\0\0\x08\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x05\0\0\0a.txt";

    fn ftyp(brand: &[u8; 4], compatible: &[u8]) -> Vec<u8> {
        let length = u32::try_from(16 + compatible.len()).unwrap();
        [&length.to_be_bytes(), b"ftyp".as_slice(), brand, b"\0\0\0\0", compatible, b"\0\0\0\x08moov"].concat()
    }

    fn webm() -> Vec<u8> {
        let mut bytes = b"\x1a\x45\xdf\xa3\x9f\x42\x86\x81\x01\x42\x82\x84webm\x42\x87\x81\x04".to_vec();
        bytes.resize(300, 0);
        bytes
    }

    fn check_format(bytes: &[u8], media_type: &str, extension: &str, kind: Kind) {
        let Sniffed::Known(format) = sniff(bytes) else { panic!("{media_type} was not recognised") };
        assert_eq!((format.media_type, format.extension, format.kind), (media_type, extension, kind));
    }

    #[test]
    fn formats_are_recognised_by_their_bytes() {
        check_format(PNG, "image/png", "png", Kind::Image);
        check_format(JPEG, "image/jpeg", "jpg", Kind::Image);
        check_format(b"GIF89a\x01\0\x01\0\0\0\0", "image/gif", "gif", Kind::Image);
        check_format(b"RIFF\x24\0\0\0WEBPVP8 ", "image/webp", "webp", Kind::Image);
        check_format(&ftyp(b"heic", b"mif1heic"), "image/heic", "heic", Kind::Image);
        check_format(&ftyp(b"mif1", b"mif1heic"), "image/heic", "heic", Kind::Image);
        check_format(&ftyp(b"mif1", b"miafavif"), "image/avif", "avif", Kind::Image);
        check_format(&ftyp(b"M4A ", b"isomM4A "), "audio/mp4", "m4a", Kind::Audio);
        check_format(&ftyp(b"isom", b"iso2mp41"), "video/mp4", "mp4", Kind::Video);
        check_format(&ftyp(b"iso9", b""), "video/mp4", "mp4", Kind::Video);
        check_format(&ftyp(b"qt  ", b"qt  "), "video/quicktime", "mov", Kind::Video);
        check_format(&webm(), "video/webm", "webm", Kind::Video);
        check_format(b"OggS\0\x02\0\0\0\0\0\0", "audio/ogg", "ogg", Kind::Audio);
        check_format(b"ID3\x04\0\0\0\0\0\0", "audio/mpeg", "mp3", Kind::Audio);
        check_format(b"%PDF-1.7\n", "application/pdf", "pdf", Kind::Pdf);
        check_format(ZIP, "application/zip", "zip", Kind::File);
    }

    #[test]
    fn a_clip_announced_as_sound_stays_sound() {
        let Sniffed::Known(clip) = sniff(&ftyp(b"mp42", b"mp42isom")) else { panic!("MP4 was not recognised") };
        assert_eq!(clip.as_sound(), MP4_SOUND);
        let Sniffed::Known(clip) = sniff(&webm()) else { panic!("WebM was not recognised") };
        assert_eq!(clip.as_sound().media_type, "audio/webm");
    }

    fn check_all(expected: Sniffed, cases: &[&str]) {
        for bytes in cases {
            assert_eq!(sniff(bytes.as_bytes()), expected, "{bytes:?}");
        }
    }

    #[test]
    fn pages_are_recognised_however_they_begin() {
        check_all(
            Sniffed::Html,
            &[
                "<!DOCTYPE html><html lang=\"en\">",
                "\u{feff}\n <!doctype HTML>",
                "<!-- a --><!-- b -->\n<HTML>",
                "<html",
                "<head><meta charset=utf-8>",
                "<Body class=x>",
                "<script>location='/signin'</script>",
            ],
        );
    }

    #[test]
    fn texts_are_no_pages_and_no_magic_numbers() {
        check_all(
            Sniffed::Unknown,
            &[
                "",
                "<!-- a comment -->\n# A heading",
                "<!-- a comment without an end",
                "<header>of a fragment</header>",
                "<?xml version=\"1.0\"?><svg xmlns=\"http://www.w3.org/2000/svg\"/>",
                "<svg onload=alert(1)>",
                "#!/bin/sh\n",
                "BMW and BMP",
                "GIF is a format",
                "MZ, then words",
                "MAC address list",
                "\u{1b}[31mred\u{1b}[0m",
                "naïve — 日本語",
            ],
        );
        let cut_in_a_character = "é".as_bytes().get(..1).unwrap();
        assert_eq!(sniff(&[b"BM caf".as_slice(), cut_in_a_character].concat()), Sniffed::Unknown);
    }

    #[test]
    fn bytes_overrule_a_name_where_the_name_would_mislead() {
        let extension = |bytes: &[u8], name| sniff(bytes).overruling(name).map(|format| format.extension);
        for (bytes, name, expected) in [
            (JPEG, "shot.png", Some("jpg")),
            (JPEG, "shot", Some("jpg")),
            (JPEG, "notes.txt", Some("jpg")),
            (ZIP, "app.jar", None),
            (ZIP, "report.docx", None),
            (ZIP, "shot.PNG", Some("zip")),
            (ZIP, "clip.mp4", Some("zip")),
            (ZIP, "archive", Some("zip")),
            (b"words", "shot.png", Some("bin")),
            (b"words", "notes.txt", None),
            (b"words", "notes", None),
            (b"<html>", "page.html", None),
            (b"<html>", "page.png", Some("bin")),
        ] {
            assert_eq!(extension(bytes, name), expected, "{name}");
        }
    }

    #[test]
    fn pixels_come_from_the_header() {
        assert_eq!(pixels(Cursor::new(PNG)), Some((1280, 720)));
        assert_eq!(pixels(Cursor::new(JPEG)), Some((128, 64)));
        assert_eq!(pixels(Cursor::new(b"words")), None);
    }

    proptest! {
        #[test]
        fn no_bytes_panic(magic in prop::sample::select(vec![PNG, JPEG, ZIP, b"", b"\0\0\0\x20ftyp", b"RIFF", b"II*\0", b"GIF89a",
            b"8BPS", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", b"<!--", b"\0\0\0\x0cJXL \r\n\x87\n", b"\xff\x0a"]),
            rest in prop::collection::vec(any::<u8>(), 0..600))
        {
            let bytes = [magic, &rest].concat();
            let _known_or_not = sniff(&bytes).overruling("a.png");
            let _measured_or_not = pixels(Cursor::new(bytes));
        }

        #[test]
        fn a_page_is_recognised_behind_any_preamble(preamble in "[ \t\r\n]{0,20}(<!--[a-z \n]{0,40}-->[ \n]{0,3}){0,3}") {
            prop_assert_eq!(sniff(format!("{preamble}<!DOCTYPE html>").as_bytes()), Sniffed::Html);
        }
    }
}
