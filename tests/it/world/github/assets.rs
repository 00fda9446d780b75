//! GitHub's files: the routes on github.com, the storage behind them, and the signed URLs of rendered bodies
//! (platform-facts E).

use std::collections::BTreeSet;

use bytes::Bytes;
use serde_json::{Value, json};

use super::super::http::{self, BrokenOff, Call, Reply};
use super::super::shared::random_uuid;
use super::FakeGitHub;

/// Where images and videos are stored.
pub(super) const BUCKET: &str = "github-production-user-asset-6210df.s3.amazonaws.com";
const OBJECTS: &str = "objects.githubusercontent.com";
const SIGNED: &str = "private-user-images.githubusercontent.com";

/// The files of this GitHub.
#[derive(Default)]
pub struct Assets {
    all: Vec<Asset>,
    /// The token is of a kind to which GitHub hides the files of private repositories: fine-grained, or an app's.
    hidden: bool,
    /// Every signature that still works.
    signatures: BTreeSet<String>,
    requests: Vec<AssetRequest>,
}

#[derive(Clone)]
struct Asset {
    path: String,
    repository: String,
    /// The host and path of its bytes.
    stored: (&'static str, String),
    mimetype: String,
    bytes: Bytes,
}

/// A request to github.com or to one of the storage hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssetRequest {
    pub host: String,
    pub path: String,
    /// Whether it had an `Authorization` header, whatever was in it.
    pub with_authorization: bool,
}

impl FakeGitHub {
    /// An image as the composer uploads it today: `/user-attachments/assets/UUID`, with no name and no extension.
    pub fn add_image(&self, repository: &str, bytes: Vec<u8>) -> String {
        let uuid = random_uuid();
        let path = format!("/user-attachments/assets/{uuid}");
        self.add_asset(repository, path, (BUCKET, format!("/4242/9001-{uuid}.png")), "image/png", bytes)
    }

    /// An image of 2023: `/owner/repo/assets/NUMBER/UUID`.
    pub fn add_old_image(&self, repository: &str, bytes: Vec<u8>) -> String {
        let uuid = random_uuid();
        let path = format!("/{repository}/assets/4242/{uuid}");
        self.add_asset(repository, path, (BUCKET, format!("/4242/9002-{uuid}.png")), "image/png", bytes)
    }

    /// A file as the composer uploads it today: `/user-attachments/files/NUMBER/NAME`.
    pub fn add_file(&self, repository: &str, name: &str, mimetype: &str, bytes: Vec<u8>) -> String {
        let number = self.state.with(super::State::next_id);
        let stored = format!("/github-production-repository-file-5c1aeb/1/{number}");
        let path = format!("/user-attachments/files/{number}/{name}");
        self.add_asset(repository, path, (OBJECTS, stored), mimetype, bytes)
    }

    /// An older file: `/owner/repo/files/NUMBER/NAME`.
    pub fn add_old_file(&self, repository: &str, name: &str, mimetype: &str, bytes: Vec<u8>) -> String {
        let number = self.state.with(super::State::next_id);
        let stored = format!("/github-production-repository-file-5c1aeb/2/{number}");
        let path = format!("/{repository}/files/{number}/{name}");
        self.add_asset(repository, path, (OBJECTS, stored), mimetype, bytes)
    }

    fn add_asset(
        &self,
        repository: &str,
        path: String,
        stored: (&'static str, String),
        mimetype: &str,
        bytes: Vec<u8>,
    ) -> String {
        let url = format!("https://github.com{path}");
        let (repository, mimetype) = (repository.to_owned(), mimetype.to_owned());
        let asset = Asset { path, repository, stored, mimetype, bytes: bytes.into() };
        self.state.with(|state| state.assets.all.push(asset));
        url
    }

    /// From now on the token gets 404 for the files of private repositories, as fine-grained and app tokens do.
    pub fn hide_files_from_the_token(&self) {
        self.state.with(|state| state.assets.hidden = true);
    }

    /// Every signed URL handed out so far stops working: their five minutes are over.
    pub fn expire_signed_urls(&self) {
        self.state.with(|state| state.assets.signatures.clear());
    }

    /// What was asked for on github.com and the storage hosts, in order.
    pub fn asset_requests(&self) -> Vec<AssetRequest> {
        self.state.with(|state| state.assets.requests.clone())
    }

    /// Whether a host is github.com or one of the storage hosts behind it.
    pub fn serves(host: &str) -> bool {
        ["github.com", BUCKET, OBJECTS, SIGNED].contains(&host)
    }

    /// Answers for github.com and the storage hosts.
    pub async fn file(&self, call: Call) -> Result<Reply, BrokenOff> {
        let with_authorization = call.authorization().is_some();
        let request = AssetRequest { host: call.host.clone(), path: call.path.clone(), with_authorization };
        self.state.with(|state| state.assets.requests.push(request));
        Ok(match call.host.as_str() {
            "github.com" => self.lead_to_storage(&call),
            BUCKET if with_authorization => http::whole(400, "application/xml", "<Code>InvalidArgument</Code>"),
            SIGNED => self.stored(&call, "jwt"),
            _ => self.stored(&call, "X-Amz-Signature"),
        })
    }

    /// A redirect to a URL signed for five minutes; 404 for what the caller may not see, as for what is not there.
    fn lead_to_storage(&self, call: &Call) -> Reply {
        let found = self.state.with(|state| {
            let asset = state.assets.all.iter().find(|asset| asset.path == call.path)?.clone();
            let private = state.repositories.get(&asset.repository)?.private;
            (!private || (call.bears(&state.token) && !state.assets.hidden)).then_some(asset)
        });
        let Some(asset) = found else { return http::whole(404, "text/html; charset=utf-8", "<html>Not Found</html>") };
        let (host, path) = asset.stored;
        let query = format!("X-Amz-Expires=300&X-Amz-Signature={}", self.sign());
        http::redirect(&format!("https://{host}{path}?{query}"))
    }

    fn stored(&self, call: &Call, signature: &str) -> Reply {
        let signed = self.state.with(|state| state.assets.signatures.contains(call.parameter(signature)));
        let asset = self.state.with(|state| {
            let stored = state.assets.all.iter().find(|asset| asset.stored.1 == call.path);
            stored.cloned()
        });
        match asset {
            Some(asset) if signed => http::whole(200, &asset.mimetype, asset.bytes),
            _ => http::whole(403, "application/xml", "<Code>AccessDenied</Code>"),
        }
    }

    /// Adds the rendered bodies when the caller accepts `full+json`; each with freshly signed URLs of its images.
    pub(super) fn as_accepted(&self, call: &Call, mut found: Value) -> Value {
        let accept = call.headers.get("accept").and_then(|accept| accept.to_str().ok()).unwrap_or_default();
        if accept.contains("full+json") {
            match &mut found {
                Value::Array(all) => all.iter_mut().for_each(|it| it["body_html"] = self.render(&it["body"])),
                one => one["body_html"] = self.render(&one["body"]),
            }
        }
        found
    }

    fn render(&self, body: &Value) -> Value {
        let body = body.as_str().unwrap_or_default();
        let shown = self.state.with(|state| {
            let images = state.assets.all.iter().filter(|asset| asset.stored.0 == BUCKET && body.contains(&asset.path));
            images.cloned().collect::<Vec<_>>()
        });
        let image = |asset: &Asset| {
            let signed = format!("https://{SIGNED}{}?jwt={}", asset.stored.1, self.sign());
            format!("<a href=\"{signed}\"><img src=\"{signed}\" alt=\"image\"></a>")
        };
        json!(format!("<p>{}</p>", shown.iter().map(image).collect::<String>()))
    }

    fn sign(&self) -> String {
        let signature = self.secrets.issue("signature of a file's URL", "");
        self.state.with(|state| state.assets.signatures.insert(signature.clone()));
        signature
    }
}
