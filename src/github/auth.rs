//! Who usher is towards GitHub's API: a token, or an app.
//!
//! Owns the credential of every call: where it comes from, how long it holds, and what to try once when GitHub no longer
//! takes it. It must not know what a call is for. No value of it is in any error or log.
//!
//! An installation token holds for an hour (field report L3: "works for an hour, then 401"); a static token may be renewed
//! in its file while usher runs.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;

use anyhow::Context as _;
use jiff::{SignedDuration, Timestamp};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use reqwest::Method;
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;

use super::api::{ApiError, User};
use super::wire::{JSON, Wire, read};

/// An installation token is renewed so long before it ends, so that no call begins with one that ends under way.
const EARLY: SignedDuration = SignedDuration::from_mins(5);

/// GitHub takes an app's own token for ten minutes at most, counted on its clock (platform-facts G).
const APP_TOKEN_LIFE: i64 = 9 * 60;

/// So far back is it dated, for clocks that run apart.
const APP_TOKEN_BACKDATED: i64 = 60;

/// A credential of the API.
#[derive(Debug)]
pub enum Auth {
    /// A token that somebody made.
    Token(Token),
    /// A GitHub App, with a token for each account that installed it.
    App(App),
}

/// A token, and the file that it may be renewed in.
#[derive(Debug)]
pub struct Token {
    current: Mutex<SecretString>,
    file: Option<PathBuf>,
}

/// A GitHub App.
pub struct App {
    id: u64,
    key: EncodingKey,
    /// By the lower-cased account that installed it.
    installations: Mutex<HashMap<String, Installation>>,
}

struct Installation {
    token: SecretString,
    until: Timestamp,
}

/// What a token is, by how it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// `ghp_`
    Classic,
    /// `github_pat_`
    FineGrained,
    /// `gho_`, from a login such as `gh auth login`.
    OAuth,
    /// `ghu_`, a user through an app.
    UserToServer,
    /// `ghs_`, an app's.
    Installation,
    /// Another beginning, such as old tokens of Enterprise hosts.
    Other,
}

impl TokenKind {
    fn of(token: &SecretString) -> Self {
        let kinds = [
            ("ghp_", Self::Classic),
            ("github_pat_", Self::FineGrained),
            ("gho_", Self::OAuth),
            ("ghu_", Self::UserToServer),
            ("ghs_", Self::Installation),
        ];
        let is_it = |(prefix, _): &&(&str, Self)| token.expose_secret().starts_with(prefix);
        kinds.iter().find(is_it).map_or(Self::Other, |(_, kind)| *kind)
    }

    /// Whether GitHub hands out attachments of private repositories to it. Fine-grained and installation tokens get 404
    /// (platform-facts E3).
    pub const fn reads_private_attachments(self) -> Option<bool> {
        match self {
            Self::Classic | Self::OAuth => Some(true),
            Self::FineGrained | Self::Installation => Some(false),
            Self::UserToServer | Self::Other => None,
        }
    }
}

impl fmt::Display for TokenKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Classic => "classic",
            Self::FineGrained => "fine-grained",
            Self::OAuth => "oauth",
            Self::UserToServer => "user-to-server",
            Self::Installation => "installation",
            Self::Other => "unknown",
        })
    }
}

impl Auth {
    /// A static token; `file`: where it is read again when GitHub no longer takes it.
    pub fn token(token: SecretString, file: Option<PathBuf>) -> Self {
        Self::Token(Token { current: Mutex::new(token), file })
    }

    /// An app with its private key, as GitHub hands it out: RSA in PEM.
    pub fn app(id: u64, key: &SecretString) -> anyhow::Result<Self> {
        // The library's errors say nothing of the key, but nothing of use to a person either.
        let key = EncodingKey::from_rsa_pem(key.expose_secret().as_bytes()).ok().context(
            "USHER_GITHUB_APP_KEY is no RSA private key in PEM form: take the file that the app's settings page generated, as it is",
        )?;
        Ok(Self::App(App { id, key, installations: Mutex::default() }))
    }

    /// What the token is.
    pub async fn kind(&self) -> TokenKind {
        match self {
            Self::Token(token) => TokenKind::of(&*token.current.lock().await),
            Self::App(_) => TokenKind::Installation,
        }
    }

    /// Who it is.
    pub(super) async fn user(&self, wire: &Wire) -> Result<Option<User>, ApiError> {
        #[derive(Deserialize)]
        struct Described {
            slug: String,
        }
        let Self::App(app) = self else { return Ok(None) };
        let request = wire.request(Method::GET, "/app", JSON).bearer_auth(app.own_token()?.expose_secret());
        let described: Described = read(wire.send(request, "app").await?).await?;
        Ok(Some(User { login: format!("{}[bot]", described.slug), app_id: Some(app.id) }))
    }

    /// The token for calls about this repository.
    pub(super) async fn bearer(&self, wire: &Wire, repository: Option<&str>) -> Result<SecretString, ApiError> {
        match self {
            Self::Token(token) => Ok(token.current.lock().await.clone()),
            Self::App(app) => app.bearer(wire, repository).await,
        }
    }

    /// Another token than the one that GitHub no longer takes, if there is one.
    pub(super) async fn renewed(
        &self,
        wire: &Wire,
        repository: Option<&str>,
        rejected: &SecretString,
    ) -> Result<Option<SecretString>, ApiError> {
        match self {
            Self::Token(token) => Ok(token.read_again(rejected).await),
            Self::App(app) => {
                app.forget(rejected).await;
                app.bearer(wire, repository).await.map(Some)
            }
        }
    }
}

impl Token {
    /// Another call may have read the new one already.
    async fn read_again(&self, rejected: &SecretString) -> Option<SecretString> {
        let mut current = self.current.lock().await;
        if current.expose_secret() == rejected.expose_secret() {
            let text = tokio::fs::read_to_string(self.file.as_ref()?).await.ok()?;
            let text = text.trim();
            if text.is_empty() || text == rejected.expose_secret() || !text.bytes().all(|byte| byte.is_ascii_graphic())
            {
                return None;
            }
            *current = text.into();
        }
        Some(current.clone())
    }
}

impl App {
    async fn bearer(&self, wire: &Wire, repository: Option<&str>) -> Result<SecretString, ApiError> {
        let Some(repository) = repository else {
            return Err(ApiError::NotFound("what belongs to no repository".to_owned()));
        };
        let owner = repository.split('/').next().unwrap_or_default().to_ascii_lowercase();
        // Held while it is asked for, so that a burst of calls asks once.
        let mut installations = self.installations.lock().await;
        let now = Timestamp::now();
        if let Some(known) = installations.get(&owner)
            && known.until.duration_since(now) > EARLY
        {
            return Ok(known.token.clone());
        }
        let installation = self.install(wire, repository).await?;
        let token = installation.token.clone();
        installations.insert(owner, installation);
        Ok(token)
    }

    async fn install(&self, wire: &Wire, repository: &str) -> Result<Installation, ApiError> {
        #[derive(Deserialize)]
        struct Found {
            id: u64,
        }
        #[derive(Deserialize)]
        struct Issued {
            token: String,
            expires_at: Timestamp,
        }
        let own = self.own_token()?;
        let what = format!("installation of the app for {repository}");
        let path = format!("/repos/{repository}/installation");
        let request = wire.request(Method::GET, &path, JSON).bearer_auth(own.expose_secret());
        let found: Found = read(wire.send(request, &what).await?).await?;
        let path = format!("/app/installations/{}/access_tokens", found.id);
        let request = wire.request(Method::POST, &path, JSON).bearer_auth(own.expose_secret());
        let issued: Issued = read(wire.send(request, &what).await?).await?;
        Ok(Installation { token: issued.token.into(), until: issued.expires_at })
    }

    async fn forget(&self, rejected: &SecretString) {
        let mut installations = self.installations.lock().await;
        installations.retain(|_, known| known.token.expose_secret() != rejected.expose_secret());
    }

    /// The app's own token, which opens nothing but the app itself.
    fn own_token(&self) -> Result<SecretString, ApiError> {
        #[derive(Serialize)]
        struct Claims {
            iat: i64,
            exp: i64,
            iss: String,
        }
        let now = Timestamp::now().as_second();
        let claims = Claims { iat: now - APP_TOKEN_BACKDATED, exp: now + APP_TOKEN_LIFE, iss: self.id.to_string() };
        let signed = jsonwebtoken::encode(&Header::new(Algorithm::RS256), &claims, &self.key);
        signed.map(Into::into).map_err(|_| ApiError::Transport(anyhow::anyhow!("the app's key signs nothing")))
    }
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App").field("id", &self.id).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_tells_its_kind_by_how_it_begins() {
        for (token, kind) in [
            ("ghp_abc", TokenKind::Classic),
            ("github_pat_11A_b", TokenKind::FineGrained),
            ("gho_abc", TokenKind::OAuth),
            ("ghu_abc", TokenKind::UserToServer),
            ("ghs_123_e.y.z", TokenKind::Installation),
            ("0123456789abcdef", TokenKind::Other),
        ] {
            assert_eq!(TokenKind::of(&token.into()), kind, "{token}");
        }
    }

    #[test]
    fn a_key_that_is_none_is_refused_without_a_word_of_it() {
        let error = Auth::app(7, &"-----BEGIN hunter2-----".into()).unwrap_err();
        insta::assert_snapshot!(error, @"USHER_GITHUB_APP_KEY is no RSA private key in PEM form: take the file that the app's settings page generated, as it is");
    }

    #[tokio::test]
    async fn a_renewed_token_is_read_from_its_file_once_it_is_another() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "ghp_old\n").unwrap();
        let old: SecretString = "ghp_old".into();
        let token = Token { current: Mutex::new(old.clone()), file: Some(file.path().to_owned()) };
        assert!(token.read_again(&old).await.is_none());
        std::fs::write(file.path(), "ghp_new\n").unwrap();
        for _ in 0..2 {
            assert_eq!(token.read_again(&old).await.unwrap().expose_secret(), "ghp_new");
        }
    }
}
