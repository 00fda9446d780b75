//! Attachments: the files that people attach, before and after usher tried to fetch them.
//!
//! Owns the vocabulary of kinds, places and the fixed reasons why a file was not fetched. It must not know how a file
//! is fetched, nor how the section of the pane or the lines of the record read (`delivery`, `record`).

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The platform that holds a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// Slack's file hosts.
    Slack,
    /// GitHub's asset routes.
    GitHub,
}

/// What a file is to a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A picture.
    Image,
    /// Sound.
    Audio,
    /// Moving pictures.
    Video,
    /// A PDF.
    Pdf,
    /// Anything else.
    File,
}

impl Kind {
    /// The kind that a media type declares, parameters ignored. SVG is a file: it is text that can carry instructions.
    pub fn of_media_type(media_type: &str) -> Self {
        let essence = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match essence.split_once('/') {
            Some(("application", "pdf")) => Self::Pdf,
            Some(("image", "svg+xml")) => Self::File,
            Some(("image", _)) => Self::Image,
            Some(("audio", _)) => Self::Audio,
            Some(("video", _)) => Self::Video,
            _ => Self::File,
        }
    }

    /// The word in the pane.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Audio => "audio",
            Self::Video => "video",
            Self::Pdf => "pdf",
            Self::File => "file",
        }
    }
}

/// A file as its platform announced it. Everything in it came from outside; sizes and types are claims.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttachmentRef {
    /// The platform's id (`F07ABC`), unique within the platform.
    pub id: String,
    /// Who holds it.
    pub source: Source,
    /// What the person called it; data, never a path. May be empty.
    pub name: String,
    /// What it claims to be.
    pub kind: Kind,
    /// The claimed media type.
    pub mimetype: Option<String>,
    /// The claimed size in bytes. Slack clips are transcoded: it may be another object's (platform-facts B4).
    pub size: Option<u64>,
    /// Whether `size` is a claim about the very bytes that the URL serves.
    pub size_is_exact: bool,
    /// A link for people, never the private URL.
    pub link: Option<String>,
    /// Where its bytes are.
    pub bytes: Whereabouts,
    /// What the platform says of a transcript.
    pub transcript: Transcript,
    /// Canvases, posts and e-mails are legitimately HTML; for anything else HTML is a sign-in page.
    pub is_html: bool,
}

/// Where the bytes of a file are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Whereabouts {
    /// At this URL, if the host table allows it.
    Url(String),
    /// The event did not say; the platform's API must be asked first (`files.info`).
    Ask,
    /// Nowhere that usher fetches from, and why.
    Nowhere(Reason),
}

/// What the platform says of a clip's transcript.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transcript {
    /// Not a clip, or the platform made none.
    None,
    /// The platform is still at it.
    Processing,
    /// It is there: a captions URL, a preview of the first words, or both.
    Ready {
        /// The URL of the WebVTT captions, a private URL.
        captions: Option<String>,
        /// The first words, in the event itself.
        preview: Option<String>,
    },
}

/// A file after usher dealt with it: saved, or named with a fixed reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// The platform's id.
    pub id: String,
    /// Who holds it.
    pub source: Source,
    /// What the person called it.
    pub name: String,
    /// What it is; by its bytes when saved, else as claimed.
    pub kind: Kind,
    /// Its media type; by its bytes when saved and known, else as claimed.
    pub mimetype: Option<String>,
    /// Bytes saved, else the claimed size.
    pub size: Option<u64>,
    /// A link for people.
    pub link: Option<String>,
    /// What became of it.
    pub outcome: Outcome,
    /// The platform's own transcript, verbatim, one line.
    pub transcript: Option<String>,
    /// Whether a transcript was expected and is still being made.
    pub transcript_pending: bool,
}

/// What became of a file. Never an error: the words are delivered either way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// On this machine.
    Saved(SavedFile),
    /// Not here, and why.
    NotFetched(Reason),
}

/// A file on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedFile {
    /// Absolute path.
    pub path: PathBuf,
    /// SHA-256 of the bytes as they came, hexadecimal.
    pub sha256: String,
    /// Width and height in pixels, when the header of an image says.
    pub pixels: Option<(u32, u32)>,
}

/// Why a file was not fetched, in words that are the same in the pane, the record and the feedback.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// usher holds no token for it.
    NoToken,
    /// Slack answered with its sign-in page.
    NoScope,
    /// The URL is on a host outside the table.
    OffHost {
        /// The refused host, so that an operator can act.
        host: String,
    },
    /// Declared or streamed size over the cap.
    OverCap {
        /// The cap in bytes.
        cap: u64,
    },
    /// Past the number of files a message.
    TooMany {
        /// The cap.
        cap: usize,
    },
    /// Truncated, empty, refused or timed out.
    TransferFailed,
    /// On somebody else's server.
    External,
    /// Deleted in Slack.
    Deleted,
    /// Past the history that the workspace's plan shows.
    HiddenByPlan,
    /// GitHub does not show it to this token.
    NotReachableWithThisToken,
    /// Still downloading when the message had to go.
    Pending,
    /// No room on this machine.
    DiskFull,
    /// The session does not take files.
    ReceiveOff,
}

impl Reason {
    /// The greppable code.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NoToken => "no-token",
            Self::NoScope => "no-scope",
            Self::OffHost { .. } => "off-host",
            Self::OverCap { .. } => "over-cap",
            Self::TooMany { .. } => "too-many",
            Self::TransferFailed => "transfer-failed",
            Self::External => "external",
            Self::Deleted => "deleted",
            Self::HiddenByPlan => "hidden-by-plan",
            Self::NotReachableWithThisToken => "not-reachable-with-this-token",
            Self::Pending => "pending",
            Self::DiskFull => "disk-full",
            Self::ReceiveOff => "receive-off",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoToken => f.write_str("usher holds no token for it"),
            Self::NoScope => f.write_str("the Slack app lacks files:read, or was not reinstalled after it was added"),
            Self::OffHost { host } => write!(f, "its URL is not on the file host ({host})"),
            Self::OverCap { cap } => write!(f, "over the {} cap", Size(*cap)),
            Self::TooMany { cap } => write!(f, "past the cap of {cap} files a message"),
            Self::TransferFailed => f.write_str("the transfer failed"),
            Self::External => f.write_str("stored outside Slack"),
            Self::Deleted => f.write_str("deleted in Slack"),
            Self::HiddenByPlan => f.write_str("hidden by the workspace's plan"),
            Self::NotReachableWithThisToken => f.write_str("GitHub does not show it to this token"),
            Self::Pending => f.write_str("still downloading, it follows"),
            Self::DiskFull => f.write_str("no room on this machine"),
            Self::ReceiveOff => f.write_str("receiving files is off for this session"),
        }
    }
}

/// A configured limit as people write it: whole MiB or KiB where it is one, bytes otherwise.
struct Size(u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const KIB: u64 = 1024;
        const MIB: u64 = 1024 * KIB;
        match self.0 {
            bytes if bytes >= MIB && bytes % MIB == 0 => write!(f, "{} MiB", bytes / MIB),
            bytes if bytes >= KIB && bytes % KIB == 0 => write!(f, "{} KiB", bytes / KIB),
            bytes => write!(f, "{bytes} B"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_its_fixed_words() {
        let reasons = [
            Reason::NoToken,
            Reason::NoScope,
            Reason::OffHost { host: "files.example".into() },
            Reason::OverCap { cap: 25 * 1024 * 1024 },
            Reason::TooMany { cap: 10 },
            Reason::TransferFailed,
            Reason::External,
            Reason::Deleted,
            Reason::HiddenByPlan,
            Reason::NotReachableWithThisToken,
            Reason::Pending,
            Reason::DiskFull,
            Reason::ReceiveOff,
        ];
        let lines: Vec<String> = reasons.iter().map(|reason| format!("{}: {reason}", reason.code())).collect();
        insta::assert_snapshot!(lines.join("\n"), @r"
        no-token: usher holds no token for it
        no-scope: the Slack app lacks files:read, or was not reinstalled after it was added
        off-host: its URL is not on the file host (files.example)
        over-cap: over the 25 MiB cap
        too-many: past the cap of 10 files a message
        transfer-failed: the transfer failed
        external: stored outside Slack
        deleted: deleted in Slack
        hidden-by-plan: hidden by the workspace's plan
        not-reachable-with-this-token: GitHub does not show it to this token
        pending: still downloading, it follows
        disk-full: no room on this machine
        receive-off: receiving files is off for this session
        ");
    }

    #[test]
    fn kinds_follow_the_media_type() {
        for (media_type, kind) in [
            ("image/png", Kind::Image),
            ("image/svg+xml", Kind::File),
            ("audio/mp4; codecs=x", Kind::Audio),
            ("VIDEO/mp4", Kind::Video),
            ("application/pdf", Kind::Pdf),
            ("text/html", Kind::File),
            ("", Kind::File),
        ] {
            assert_eq!(Kind::of_media_type(media_type), kind, "{media_type}");
        }
    }
}
