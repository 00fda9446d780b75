//! The files that GitHub holds for a text: which URLs in it are attachments, and the signed URL of a private one.
//!
//! Owns the shapes of asset URLs and finding them in Markdown. It must not fetch anything, nor know who may speak:
//! only texts of people who may are looked at.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use sha2::{Digest as _, Sha256};
use url::Url;

use crate::core::attachment::{AttachmentRef, Kind, Source, Transcript, Whereabouts};

/// The attachments of a text, in order of appearance, each once. `host`: the Enterprise host, if there is one.
pub fn attachments(text: &str, host: Option<&str>) -> Vec<AttachmentRef> {
    let mut found: Vec<Asset> = Vec::new();
    for candidate in candidates(text) {
        if let Some(asset) = Asset::read(&candidate, host)
            && !found.iter().any(|known| known.url == asset.url)
        {
            found.push(asset);
        }
    }
    found.into_iter().map(Asset::into_reference).collect()
}

/// The URL in rendered HTML that shows the asset without a credential, for some five minutes.
///
/// A fine-grained or installation token gets 404 for a private asset; the rendered body has `private-user-images` URLs
/// whose path ends in the asset's own uuid (platform-facts E3).
pub fn signed_url(asset_url: &str, rendered: &str) -> Option<String> {
    let asset = Url::parse(asset_url).ok()?;
    let uuid = asset.path_segments()?.next_back().filter(|uuid| is_uuid(uuid))?.to_owned();
    let links = rendered.split(['"', '\'', ' ', '>', '<']).filter(|link| link.starts_with("https://"));
    let signed = |link: &&str| {
        let Ok(url) = Url::parse(&link.replace("&amp;", "&")) else { return false };
        url.host_str() == Some("private-user-images.githubusercontent.com") && url.path().contains(&uuid)
    };
    links.into_iter().find(signed).map(|link| link.replace("&amp;", "&"))
}

/// An asset URL that matched a known shape as a whole.
struct Asset {
    url: Url,
    name: String,
}

impl Asset {
    fn read(candidate: &str, host: Option<&str>) -> Option<Self> {
        let url = Url::parse(candidate).ok()?;
        let plain =
            url.scheme() == "https" && url.username().is_empty() && url.password().is_none() && url.port().is_none();
        if !plain {
            return None;
        }
        let segments: Vec<&str> = url.path_segments()?.collect();
        let on_web = url.host_str() == Some("github.com") || (host.is_some() && url.host_str() == host);
        let is_asset = match url.host_str()? {
            _ if on_web => is_web_path(&segments),
            "user-images.githubusercontent.com" => segments.len() == 2,
            "private-user-images.githubusercontent.com" => segments.len() == 2,
            _ => false,
        };
        let name = segments.last().filter(|name| !name.is_empty())?.to_string();
        is_asset.then_some(Self { url, name })
    }

    /// Known by a hash of the whole URL: two assets may end in the same name (spec 11.3 item 25).
    fn into_reference(self) -> AttachmentRef {
        let mut link = self.url.clone();
        link.set_query(None);
        let id = hex::encode(Sha256::digest(self.url.as_str())).chars().take(16).collect();
        AttachmentRef {
            id,
            source: Source::GitHub,
            name: self.name,
            kind: Kind::File,
            mimetype: None,
            size: None,
            size_is_exact: false,
            link: Some(link.into()),
            bytes: Whereabouts::Url(self.url.into()),
            transcript: Transcript::None,
            is_html: false,
        }
    }
}

/// The four shapes of a path on github.com or an Enterprise host. Fully matched: a path that merely contains one would be
/// any GET with usher's token (spec 11.3 item 26); `url` has resolved every `..` already.
fn is_web_path(segments: &[&str]) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let name = |text: &str| !text.is_empty() && !text.contains('%');
    match segments {
        ["user-attachments", "assets", uuid] => is_uuid(uuid),
        ["user-attachments", "files", id, file] => number(id) && !file.is_empty(),
        [owner, repo, "assets", id, uuid] => name(owner) && name(repo) && number(id) && is_uuid(uuid),
        [owner, repo, "files", id, file] => name(owner) && name(repo) && number(id) && !file.is_empty(),
        _ => false,
    }
}

fn is_uuid(text: &str) -> bool {
    let groups: Vec<&str> = text.split('-').collect();
    let lengths = [8, 4, 4, 4, 12];
    let hexadecimal = |group: &&str| group.bytes().all(|byte| byte.is_ascii_hexdigit());
    groups.len() == 5
        && groups.iter().all(hexadecimal)
        && groups.iter().zip(lengths).all(|(group, length)| group.len() == length)
}

/// Every URL that Markdown shows outside code: targets of links and images, `src` of HTML tags, and bare ones.
fn candidates(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut in_code = false;
    for event in Parser::new_ext(text, Options::ENABLE_GFM) {
        match event {
            Event::Start(Tag::CodeBlock(_)) => in_code = true,
            Event::End(TagEnd::CodeBlock) => in_code = false,
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => found.push(dest_url.to_string()),
            Event::Html(html) | Event::InlineHtml(html) => found.extend(bare(&html)),
            Event::Text(words) if !in_code => found.extend(bare(&words)),
            _ => {}
        }
    }
    found
}

/// URLs in plain text or in a tag; what people write behind one (`.`, `)`, a quote) is not part of it.
fn bare(text: &str) -> Vec<String> {
    let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '<' | '>' | '`' | '|');
    let starts = text.match_indices("https://").map(|(at, _)| text.get(at..).unwrap_or_default());
    let urls = starts.map(|rest| rest.split(ends).next().unwrap_or_default());
    urls.map(|url| url.trim_end_matches(['.', ',', ';', ':', ')', ']', '!', '?', '*', '_']).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const UUID: &str = "0f8fad5b-d9cb-469f-a165-70867728950e";

    fn urls(text: &str, host: Option<&str>) -> Vec<String> {
        let url = |reference: AttachmentRef| match reference.bytes {
            Whereabouts::Url(url) => url,
            other => panic!("{other:?}"),
        };
        attachments(text, host).into_iter().map(url).collect()
    }

    #[test]
    fn every_shape_is_found_wherever_markdown_shows_it() {
        let asset = format!("https://github.com/user-attachments/assets/{UUID}");
        for text in [
            format!("![shot]({asset})"),
            format!("[shot]({asset} \"title\")"),
            format!("see {asset}."),
            format!("({asset})"),
            format!("<img width=\"600\" src=\"{asset}\" />"),
            format!("<video src='{asset}'></video>"),
            format!("- one\n- ![x]({asset})"),
        ] {
            assert_eq!(urls(&text, None), std::slice::from_ref(&asset), "{text}");
        }
        for url in [
            "https://github.com/user-attachments/files/123/log.zip".to_owned(),
            format!("https://github.com/o/r/assets/12/{UUID}"),
            "https://github.com/o/r/files/12/report.pdf".to_owned(),
            "https://user-images.githubusercontent.com/1/2-3.png".to_owned(),
            "https://private-user-images.githubusercontent.com/1/2-3.png?jwt=a.b.c".to_owned(),
        ] {
            assert_eq!(urls(&format!("x {url} y"), None), [url]);
        }
    }

    #[test]
    fn nothing_else_is_an_attachment() {
        let asset = format!("https://github.com/user-attachments/assets/{UUID}");
        for text in [
            format!("```\n{asset}\n```"),
            format!("    {asset}"),
            format!("`{asset}`"),
            format!("http://github.com/user-attachments/assets/{UUID}"),
            format!("https://github.com.evil.example/user-attachments/assets/{UUID}"),
            format!("https://github.com@evil.example/user-attachments/assets/{UUID}"),
            format!("https://github.com:8443/user-attachments/assets/{UUID}"),
            format!("https://github.com/user-attachments/assets/{UUID}/../../../settings/tokens"),
            "https://github.com/user-attachments/assets/not-a-uuid".to_owned(),
            "https://github.com/o/r/files/x/report.pdf".to_owned(),
            "https://camo.githubusercontent.com/aa/bb".to_owned(),
            format!("https://ghe.example/user-attachments/assets/{UUID}"),
        ] {
            assert_eq!(urls(&text, None), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn an_enterprise_host_has_the_same_shapes() {
        let asset = format!("https://ghe.example/user-attachments/assets/{UUID}");
        assert_eq!(urls(&asset, Some("ghe.example")), [asset]);
    }

    #[test]
    fn the_same_asset_counts_once_and_the_order_is_kept() {
        let (one, two) =
            (format!("https://github.com/user-attachments/assets/{UUID}"), "https://github.com/o/r/files/1/a.txt");
        assert_eq!(urls(&format!("{two} ![]({one}) {two}"), None), [two.to_owned(), one]);
    }

    #[test]
    fn the_signed_url_of_the_same_asset_is_taken() {
        let asset = format!("https://github.com/user-attachments/assets/{UUID}");
        let signed = format!("https://private-user-images.githubusercontent.com/7/12-{UUID}.png?jwt=a.b&amp;x=1");
        let other =
            "https://private-user-images.githubusercontent.com/7/12-00000000-0000-0000-0000-000000000000.png?jwt=z";
        let html = format!("<p><img src=\"{other}\"><a href=\"{asset}\"><img src=\"{signed}\"></a></p>");
        assert_eq!(signed_url(&asset, &html), Some(signed.replace("&amp;", "&")));
        assert_eq!(signed_url(&asset, "<p></p>"), None);
        assert_eq!(signed_url("https://github.com/o/r/files/1/a.txt", &html), None);
    }

    proptest! {
        #[test]
        fn no_text_leads_anywhere_but_to_githubs_own_hosts(text in "(?s).{0,200}") {
            for url in urls(&text, None) {
                let url = Url::parse(&url).unwrap();
                let host = url.host_str().unwrap();
                prop_assert!(host == "github.com" || host.ends_with(".githubusercontent.com"));
            }
        }
    }
}
