//! Slack's file objects: in events, in history, and as `files.info` answers.
//!
//! Owns what their fields mean: where the bytes are, whether the size is theirs, what a transcript's state says. It must
//! not know how a file is fetched, nor which hosts are Slack's for a token (`core::hop`). Every field is optional; the
//! facts are in platform-facts B3 and B4.

use serde_json::Value;
use url::Url;

use crate::core::attachment::{AttachmentRef, Kind, Reason, Source, Transcript, Whereabouts};
use crate::core::loose::{count, field, flag, items, text, words};

/// Modes of objects whose body is HTML, or text that Slack renders: none of them serves the bytes that `size` counts.
const RENDERED_MODES: [&str; 6] = ["quip", "canvas", "docs", "post", "space", "email"];

/// The media type of a canvas.
const CANVAS: &str = "application/vnd.slack-docs";

/// Reads one file object. `None` only when it has no id: then there is nothing to name or to ask for.
///
/// After `files.info` a second [`Whereabouts::Ask`] means that Slack keeps the file from this token, or that an upload
/// is still being processed (field report F3).
pub fn read_file(file: &Value) -> Option<AttachmentRef> {
    let bytes = whereabouts(file);
    let size = count(file, "size").filter(|size| *size > 0);
    Some(AttachmentRef {
        id: text(file, "id")?.to_owned(),
        source: Source::Slack,
        name: words(file, "name").or_else(|| words(file, "title")).unwrap_or_default().to_owned(),
        kind: kind(file),
        mimetype: text(file, "mimetype").map(str::to_owned),
        size,
        size_is_exact: size.is_some() && size_is_of(file, &bytes),
        link: link(file, &bytes),
        transcript: transcript(file),
        is_html: is_html(file),
        bytes,
    })
}

/// Reads the files of a message. `{}`, null or anything else that is no list holds none, and a bad file costs no other.
pub fn read_files(files: &Value) -> Vec<AttachmentRef> {
    items(files).iter().filter_map(read_file).collect()
}

/// A web address that may be shown to people, or `None`: never one of Slack's private file URLs, nor one with a name or
/// password in it, and without the token that export URLs carry in `t=xox…` (platform-facts C2).
pub(super) fn public_link(address: &str) -> Option<String> {
    let mut url = Url::parse(address).ok()?;
    let is_web = matches!(url.scheme(), "http" | "https") && url.username().is_empty() && url.password().is_none();
    if !is_web || is_private(&url) {
        return None;
    }
    if url.query_pairs().any(|(key, value)| key == "t" && value.starts_with("xox")) {
        url.set_query(None);
    }
    Some(url.into())
}

/// Whether a URL serves bytes to a token, wherever Slack hosts it (platform-facts C1).
fn is_private(url: &Url) -> bool {
    let private = |part: &str| part.starts_with("files-pri") || part.starts_with("files-tmb");
    let host = url.host_str().unwrap_or_default();
    let is_slack = [".slack.com", ".slack-gov.com", ".slack-edge.com"].iter().any(|domain| host.ends_with(domain));
    is_slack && (host.starts_with("files") || url.path_segments().is_some_and(|mut parts| parts.any(private)))
}

fn is_external(file: &Value) -> bool {
    text(file, "mode") == Some("external") || flag(file, "is_external")
}

/// Where the bytes are. An external file's URL was chosen by whoever registered it: it is never fetched (field report
/// F5). Stubs of shared channels and objects without a URL are asked for by id (field report F4).
fn whereabouts(file: &Value) -> Whereabouts {
    match text(file, "mode") {
        Some("tombstone") => return Whereabouts::Nowhere(Reason::Deleted),
        Some("hidden_by_limit") => return Whereabouts::Nowhere(Reason::HiddenByPlan),
        _ if is_external(file) => return Whereabouts::Nowhere(Reason::External),
        _ => {}
    }
    match text(file, "file_access") {
        Some("file_not_found") => Whereabouts::Nowhere(Reason::Deleted),
        Some("check_file_info" | "access_denied") => Whereabouts::Ask,
        _ => private_url(file).map_or(Whereabouts::Ask, |url| Whereabouts::Url(url.to_owned())),
    }
}

fn private_url(file: &Value) -> Option<&str> {
    words(file, "url_private_download").or_else(|| words(file, "url_private"))
}

fn link(file: &Value, bytes: &Whereabouts) -> Option<String> {
    let permalink = || text(file, "permalink").and_then(public_link);
    if *bytes != Whereabouts::Nowhere(Reason::External) {
        return permalink();
    }
    let mut elsewhere = ["external_url", "url_private"].iter().filter_map(|key| text(file, key));
    elsewhere.find_map(public_link).or_else(permalink)
}

/// Whether `size` counts the bytes that the URL serves. Clips are transcoded: a webm's URL serves an mp4 from
/// `files-tmb` while `size` stays the webm's; snippets and posts are rendered (platform-facts B3, B4).
fn size_is_of(file: &Value, bytes: &Whereabouts) -> bool {
    let Whereabouts::Url(url) = bytes else { return false };
    let is_clip = matches!(text(file, "subtype"), Some("slack_audio" | "slack_video"));
    text(file, "mode") == Some("hosted") && !is_clip && !url.contains("/files-tmb/") && !is_html(file)
}

/// What it is: as Slack plays it, because clips are labelled `video/mp4` without pictures (platform-facts B4), else by
/// its media type.
fn kind(file: &Value) -> Kind {
    match (text(file, "subtype"), text(file, "media_display_type")) {
        (Some("slack_audio"), _) => Kind::Audio,
        (Some("slack_video"), _) => Kind::Video,
        (_, Some("audio")) => Kind::Audio,
        (_, Some("video")) => Kind::Video,
        _ => Kind::of_media_type(text(file, "mimetype").unwrap_or_default()),
    }
}

/// Whether HTML is what this file holds: canvases, posts, e-mails (field report F12), HTML itself, and an HTML snippet,
/// whose media type is `text/plain` like that of every snippet.
fn is_html(file: &Value) -> bool {
    let essence = text(file, "mimetype").unwrap_or_default().split(';').next().unwrap_or_default().trim();
    let is_html_type = essence.eq_ignore_ascii_case("text/html") || essence.eq_ignore_ascii_case(CANVAS);
    let is_rendered = text(file, "mode").is_some_and(|mode| RENDERED_MODES.contains(&mode));
    let file_type = text(file, "filetype").unwrap_or_default();
    is_html_type || is_rendered || file_type == "html" || RENDERED_MODES.contains(&file_type)
}

/// The state of Slack's transcript. `complete` without captions and without a preview exists, and is none.
fn transcript(file: &Value) -> Transcript {
    let transcription = field(file, "transcription");
    let captions = words(file, "vtt").map(str::to_owned);
    let preview = words(field(transcription, "preview"), "content").map(str::to_owned);
    match text(transcription, "status") {
        Some("processing") => Transcript::Processing,
        Some("complete") if captions.is_some() || preview.is_some() => Transcript::Ready { captions, preview },
        _ => Transcript::None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PRIVATE: &str = "https://files.slack.com/files-pri/T1-F1/a.png";

    /// A hosted picture, with the given fields over it; null takes a field away.
    fn file(over: &Value) -> AttachmentRef {
        let mut file = json!({
            "id": "F1", "name": "a.png", "title": "A", "mimetype": "image/png", "filetype": "png", "mode": "hosted",
            "size": 1024, "url_private": PRIVATE, "permalink": "https://acme.slack.com/files/U1/F1/a.png"
        });
        for (key, value) in over.as_object().unwrap() {
            file[key] = value.clone();
        }
        read_file(&file).unwrap()
    }

    #[test]
    fn a_hosted_file_is_read_whole() {
        let download = "https://files.slack.com/files-pri/T1-F1/download/a.png";
        let expected = AttachmentRef {
            id: "F1".into(),
            source: Source::Slack,
            name: "a.png".into(),
            kind: Kind::Image,
            mimetype: Some("image/png".into()),
            size: Some(1024),
            size_is_exact: true,
            link: Some("https://acme.slack.com/files/U1/F1/a.png".into()),
            bytes: Whereabouts::Url(download.into()),
            transcript: Transcript::None,
            is_html: false,
        };
        assert_eq!(file(&json!({"url_private_download": download})), expected);
    }

    #[test]
    fn a_bad_file_costs_no_other() {
        let files = read_files(&json!([null, 7, {}, {"id": null}, {"id": "F1"}, [], {"id": "F2", "name": 7}]));
        assert_eq!(files.iter().map(|file| file.id.as_str()).collect::<Vec<_>>(), ["F1", "F2"]);
        for files in [json!(null), json!({}), json!("F1"), json!(1)] {
            assert_eq!(read_files(&files), [], "{files}");
        }
    }

    #[test]
    fn wrong_types_cost_a_field_and_not_the_file() {
        let file = file(&json!({
            "name": null, "size": "20480", "mimetype": 7, "lines": "120", "channels": {}, "preview": null,
            "transcription": [], "thumb_360_w": "360", "permalink": {}
        }));
        assert_eq!((file.name.as_str(), file.size, file.mimetype, file.link), ("A", Some(20480), None, None));
    }

    #[test]
    fn f3_a_fresh_upload_has_no_type_and_perhaps_no_url() {
        let fresh = file(&json!({"mimetype": "", "filetype": "", "size": 0}));
        assert_eq!((fresh.kind, fresh.mimetype, fresh.size, fresh.size_is_exact), (Kind::File, None, None, false));
        assert_eq!(file(&json!({"url_private": ""})).bytes, Whereabouts::Ask);
    }

    #[test]
    fn f4_a_stub_of_a_shared_channel_is_asked_for() {
        let stub = json!({"id": "F1", "created": 0, "timestamp": 0, "mode": "file_access", "file_access": "check_file_info", "user": ""});
        assert_eq!(read_file(&stub).unwrap().bytes, Whereabouts::Ask);
        assert_eq!(file(&json!({"file_access": "check_file_info"})).bytes, Whereabouts::Ask);
        assert_eq!(file(&json!({"file_access": "access_denied"})).bytes, Whereabouts::Ask);
        assert_eq!(file(&json!({"file_access": "visible"})).bytes, Whereabouts::Url(PRIVATE.into()));
    }

    #[test]
    fn f5_an_external_file_is_named_with_its_link_and_never_fetched() {
        let elsewhere = "https://docs.example.com/d/1?usp=share";
        for over in [
            json!({"mode": "external", "url_private": elsewhere}),
            json!({"is_external": true, "url_private": elsewhere}),
            json!({"is_external": 1, "external_url": elsewhere}),
        ] {
            let file = file(&over);
            assert_eq!(file.bytes, Whereabouts::Nowhere(Reason::External), "{over}");
            assert_eq!((file.link.as_deref(), file.size_is_exact), (Some(elsewhere), false), "{over}");
        }
        let odd = file(&json!({"mode": "external", "external_url": "file:///etc/passwd"}));
        assert_eq!(odd.link.as_deref(), Some("https://acme.slack.com/files/U1/F1/a.png"));
    }

    #[test]
    fn f6_deleted_and_hidden_files_are_named_with_their_reason() {
        for (stub, bytes) in [
            (json!({"id": "F1", "mode": "tombstone"}), Whereabouts::Nowhere(Reason::Deleted)),
            (json!({"id": "F1", "mode": "hidden_by_limit"}), Whereabouts::Nowhere(Reason::HiddenByPlan)),
            (json!({"id": "F1", "file_access": "file_not_found"}), Whereabouts::Nowhere(Reason::Deleted)),
            (json!({"id": "F1"}), Whereabouts::Ask),
        ] {
            let file = read_file(&stub).unwrap();
            assert_eq!((file.bytes, file.name.as_str(), file.link), (bytes, "", None), "{stub}");
        }
    }

    #[test]
    fn f12_canvases_posts_and_mails_are_html() {
        for (over, expected) in [
            (json!({"mimetype": "application/vnd.slack-docs", "mode": "quip", "filetype": "quip"}), true),
            (json!({"mimetype": "", "mode": "canvas"}), true),
            (json!({"mimetype": "text/plain", "mode": "space", "filetype": "space"}), true),
            (json!({"mimetype": "text/plain", "mode": "post"}), true),
            (json!({"mimetype": "text/html", "mode": "email", "filetype": "email"}), true),
            (json!({"mimetype": "Text/HTML; charset=utf-8"}), true),
            (json!({"mimetype": "text/plain", "mode": "snippet", "filetype": "html"}), true),
            (json!({"mimetype": "text/plain", "mode": "snippet", "filetype": "text"}), false),
            (json!({}), false),
        ] {
            assert_eq!(file(&over).is_html, expected, "{over}");
        }
    }

    #[test]
    fn a_size_is_exact_only_where_the_url_serves_the_original() {
        let transcoded = "https://files.slack.com/files-tmb/T1-F1-abc/a_audio.mp4";
        for (over, exact) in [
            (json!({}), true),
            (json!({"mimetype": "video/mp4", "media_display_type": "video"}), true),
            (json!({"subtype": "slack_audio"}), false),
            (json!({"subtype": "slack_video"}), false),
            (json!({"url_private": transcoded}), false),
            (json!({"mode": "snippet"}), false),
            (json!({"mode": "email"}), false),
            (json!({"mode": null}), false),
            (json!({"size": null}), false),
        ] {
            assert_eq!(file(&over).size_is_exact, exact, "{over}");
        }
    }

    #[test]
    fn a_clip_is_what_slack_plays_it_as() {
        for (over, kind) in [
            (json!({"subtype": "slack_audio", "mimetype": "video/mp4", "media_display_type": "audio"}), Kind::Audio),
            (json!({"subtype": "slack_video", "mimetype": "video/mp4"}), Kind::Video),
            (json!({"media_display_type": "audio", "mimetype": "video/webm"}), Kind::Audio),
            (json!({"media_display_type": "unknown", "mimetype": "audio/mp4"}), Kind::Audio),
            (json!({"media_display_type": "unknown", "mimetype": "application/pdf"}), Kind::Pdf),
        ] {
            assert_eq!(file(&over).kind, kind, "{over}");
        }
    }

    #[test]
    fn a_transcript_is_what_slack_says_of_it() {
        let vtt = "https://files.slack.com/files-tmb/T1-F1-abc/file.vtt?_xcb=1";
        let ready = |captions: Option<&str>, preview: Option<&str>| Transcript::Ready {
            captions: captions.map(str::to_owned),
            preview: preview.map(str::to_owned),
        };
        let preview = json!({"content": "hello there", "has_more": false});
        for (over, transcript) in [
            (json!({"transcription": {"status": "processing"}}), Transcript::Processing),
            (
                json!({"transcription": {"status": "complete", "preview": preview}, "vtt": vtt}),
                ready(Some(vtt), Some("hello there")),
            ),
            (json!({"transcription": {"status": "complete", "preview": preview}}), ready(None, Some("hello there"))),
            (json!({"transcription": {"status": "complete", "preview": null}, "vtt": vtt}), ready(Some(vtt), None)),
            (json!({"transcription": {"status": "complete"}}), Transcript::None),
            (json!({"transcription": {"status": "failed"}}), Transcript::None),
            (json!({"transcription": {"status": "none"}}), Transcript::None),
            (json!({"transcription": []}), Transcript::None),
        ] {
            assert_eq!(file(&over).transcript, transcript, "{over}");
        }
    }

    #[test]
    fn a_link_is_for_people() {
        for (address, link) in [
            ("https://acme.slack.com/files/U1/F1/a.png", Some("https://acme.slack.com/files/U1/F1/a.png")),
            ("https://acme.slack.com/files/U1/F1/a.png?t=xoxe-1-2", Some("https://acme.slack.com/files/U1/F1/a.png")),
            ("https://acme.slack.com/docs/T1/F1?focus=1&t=1", Some("https://acme.slack.com/docs/T1/F1?focus=1&t=1")),
            ("https://slack-files.com/T1-F1-abc", Some("https://slack-files.com/T1-F1-abc")),
            (PRIVATE, None),
            ("https://files-origin.slack.com/files-pri/T1-F1/a.png", None),
            ("https://acme.slack.com/files-tmb/T1-F1-abc/a.png", None),
            ("https://dana:secret@example.com/", None),
            ("ftp://example.com/a.png", None),
            ("javascript:alert(1)", None),
            ("/files/U1/F1", None),
        ] {
            assert_eq!(public_link(address).as_deref(), link, "{address}");
        }
    }
}
