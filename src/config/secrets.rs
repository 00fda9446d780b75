//! Secrets: where usher looks for them, and what looks like one in a place where none belongs.
//!
//! Owns the three places, tried in this order: `$CREDENTIALS_DIRECTORY/NAME` (systemd's `LoadCredential`), the file
//! that `NAME_FILE` names, the variable `NAME`. It must not know what a token is good for. No value is in any
//! sentence.

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use secrecy::SecretString;

use super::environment::Environment;
use super::report::Report;

/// The sentence for a secret in the configuration.
pub(super) const NOT_HERE: &str = "looks like a secret, and secrets are never in the configuration: revoke it if others \
    could read it, and give it as $CREDENTIALS_DIRECTORY/NAME, as a file that NAME_FILE names, or as the variable NAME \
    (USHER_SLACK_APP_TOKEN, USHER_SLACK_BOT_TOKEN, GH_TOKEN)";

/// How tokens of Slack and GitHub begin.
const SHAPES: [&str; 16] = [
    "xoxa-",
    "xoxb-",
    "xoxc-",
    "xoxd-",
    "xoxe-",
    "xoxe.",
    "xoxp-",
    "xoxr-",
    "xoxs-",
    "xapp-",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
];

/// The longest file that is still taken for a secret, in bytes.
const LONGEST: u64 = 64 * 1024;

/// The secrets that were found.
#[derive(Debug, Default)]
pub struct Secrets {
    /// Slack's app-level token, `xapp-`: opens the socket.
    pub slack_app: Option<SecretString>,
    /// Slack's bot token, `xoxb-`: reads files, sets reactions.
    pub slack_bot: Option<SecretString>,
    /// The GitHub token: reads and writes the ledger.
    pub github: Option<SecretString>,
    /// The file that the GitHub token came from, to be read again when it was renewed.
    pub github_file: Option<PathBuf>,
    /// The private key of the GitHub App, PEM.
    pub github_app_key: Option<SecretString>,
    /// What GitHub signs its webhook deliveries with: the current secret, and during a rotation the one before it.
    pub webhook: Vec<SecretString>,
    lines: Vec<String>,
}

/// A secret, what it is called and where it was.
struct Found {
    name: &'static str,
    value: String,
    origin: Origin,
}

enum Origin {
    Credential(PathBuf),
    NamedFile(PathBuf),
    Variable,
}

impl Origin {
    fn file(&self) -> Option<PathBuf> {
        match self {
            Self::Credential(path) | Self::NamedFile(path) => Some(path.clone()),
            Self::Variable => None,
        }
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name;
        match self.origin {
            Origin::Credential(_) => write!(f, "{name}: set, from $CREDENTIALS_DIRECTORY/{name}"),
            Origin::NamedFile(_) => write!(f, "{name}: set, from the file that {name}_FILE names"),
            Origin::Variable => write!(f, "{name}: set, from the environment"),
        }
    }
}

/// A token of Slack, and what must be said when another text stands in its place.
struct SlackToken {
    name: &'static str,
    prefix: &'static str,
    kind: &'static str,
    other_prefix: &'static str,
    remedy: &'static str,
}

const APP: SlackToken = SlackToken {
    name: "USHER_SLACK_APP_TOKEN",
    prefix: "xapp-",
    kind: "an app-level token",
    other_prefix: "xoxb-",
    remedy: "make one with connections:write under Basic Information, App-Level Tokens",
};

const BOT: SlackToken = SlackToken {
    name: "USHER_SLACK_BOT_TOKEN",
    prefix: "xoxb-",
    kind: "a bot token",
    other_prefix: "xapp-",
    remedy: "copy the Bot User OAuth Token from OAuth & Permissions",
};

/// The names of the GitHub token; the first that is set counts, as with GitHub's own command line.
const GITHUB: [&str; 2] = ["GH_TOKEN", "GITHUB_TOKEN"];

/// The name of the private key of a GitHub App.
const APP_KEY: &str = "USHER_GITHUB_APP_KEY";

/// The names of the webhook's secret and of the one before it.
const WEBHOOK: [&str; 2] = ["USHER_GITHUB_WEBHOOK_SECRET", "USHER_GITHUB_WEBHOOK_SECRET_PREVIOUS"];

impl Secrets {
    /// Looks for every secret; what is wrong with one goes into the report.
    pub(super) fn find(environment: &Environment, report: &mut Report) -> Self {
        let mut secrets = Self::default();
        secrets.slack_app = secrets.keep(slack_token(&APP, environment, report), APP.name);
        secrets.slack_bot = secrets.keep(slack_token(&BOT, environment, report), BOT.name);
        let github = GITHUB.into_iter().find_map(|name| find(name, environment, report));
        secrets.github_file = github.as_ref().and_then(|found| found.origin.file());
        secrets.github = secrets.keep(github, "GH_TOKEN or GITHUB_TOKEN");
        secrets.github_app_key = secrets.keep(find_key(APP_KEY, environment, report), APP_KEY);
        for name in WEBHOOK {
            let found = find(name, environment, report);
            let kept = secrets.keep(found, name);
            secrets.webhook.extend(kept);
        }
        secrets
    }

    /// One line a secret: set or unset, and where from.
    pub(super) fn lines(&self) -> &[String] {
        &self.lines
    }

    fn keep(&mut self, found: Option<Found>, name: &str) -> Option<SecretString> {
        self.lines.push(found.as_ref().map_or_else(|| format!("{name}: unset"), Found::to_string));
        found.map(|found| found.value.into())
    }
}

fn slack_token(token: &SlackToken, environment: &Environment, report: &mut Report) -> Option<Found> {
    let found = find(token.name, environment, report)?;
    if found.value.starts_with(token.prefix) {
        return Some(found);
    }
    let SlackToken { name, prefix, kind, .. } = token;
    let swapped = found.value.starts_with(token.other_prefix);
    let remedy = if swapped { "perhaps the two Slack tokens are swapped" } else { token.remedy };
    report.other(format_args!("{name} does not look like {kind} ({prefix}): {remedy}"));
    None
}

/// The secret of this name, from the first place that has it.
fn find(name: &'static str, environment: &Environment, report: &mut Report) -> Option<Found> {
    let found = find_text(name, environment, report)?;
    if found.value.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Some(found);
    }
    report.other(format_args!("{name} holds more than a token: it must be one line, without spaces"));
    None
}

/// A key in PEM form, which has many lines; a variable may write their ends as `\n`.
fn find_key(name: &'static str, environment: &Environment, report: &mut Report) -> Option<Found> {
    let found = find_text(name, environment, report)?;
    let value = found.value.replace("\\n", "\n");
    if value.starts_with("-----BEGIN ") {
        return Some(Found { value, ..found });
    }
    report.other(format_args!("{name} is no key in PEM form: it begins with -----BEGIN"));
    None
}

/// Whatever stands under this name, without the white space around it.
fn find_text(name: &'static str, environment: &Environment, report: &mut Report) -> Option<Found> {
    let (value, origin) = match look(name, environment) {
        Ok(found) => found?,
        Err((place, error)) => {
            report.other(format_args!("{place} cannot be read ({}): name a file that usher may read", error.kind()));
            return None;
        }
    };
    let value = value.trim().to_owned();
    if value.is_empty() {
        report.other(format_args!("{name} is empty: put the token there, or remove the empty file or variable"));
        return None;
    }
    Some(Found { name, value, origin })
}

/// The raw text and its place; an error names the place, never the path: a token may have been put where a path
/// belongs.
fn look(name: &str, environment: &Environment) -> Result<Option<(String, Origin)>, (String, io::Error)> {
    if let Some(directory) = environment.get("CREDENTIALS_DIRECTORY") {
        let path = environment.directory().join(directory).join(name);
        match read(&path) {
            Ok(text) => return Ok(Some((text, Origin::Credential(path)))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err((format!("$CREDENTIALS_DIRECTORY/{name}"), error)),
        }
    }
    let variable = format!("{name}_FILE");
    if let Some(path) = environment.get(&variable) {
        let path = environment.directory().join(path);
        return read(&path)
            .map(|text| Some((text, Origin::NamedFile(path))))
            .map_err(|error| (format!("the file that {variable} names"), error));
    }
    Ok(environment.get(name).map(|text| (text.to_owned(), Origin::Variable)))
}

fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(LONGEST).read_to_string(&mut text)?;
    Ok(text)
}

/// Whether a text holds something shaped like a token or a private key.
pub(super) fn looks_like_one(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let starts_word = |at: usize| !text.get(..at).unwrap_or_default().ends_with(|c: char| c.is_ascii_alphanumeric());
    let is_token =
        |(at, shape): (usize, &str)| starts_word(at) && goes_on(text.get(at + shape.len()..).unwrap_or_default());
    text.contains("-----begin") || SHAPES.iter().any(|shape| text.match_indices(shape).any(is_token))
}

/// Whether what follows a token's beginning is a token's: long, and not only words. `xapp-data` is a directory.
fn goes_on(rest: &str) -> bool {
    let token = rest.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    let (length, digits) =
        token.fold((0, 0), |(length, digits), byte| (length + 1, digits + u32::from(byte.is_ascii_digit())));
    length >= 10 && digits > 0
}

/// Whether a key is named as secrets are.
pub(super) fn names_one(key: &str) -> bool {
    key.split(['.', '_', '-'])
        .any(|word| matches!(word, "token" | "tokens" | "secret" | "secrets" | "password" | "key"))
}

/// A name from outside, fit for a sentence: short, one line, and not a token that was pasted where a name belongs.
pub(super) fn shown_name(name: &str) -> String {
    if looks_like_one(name) {
        return "(a key that is not shown)".to_owned();
    }
    name.chars().take(80).flat_map(char::escape_debug).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use secrecy::ExposeSecret as _;

    const APP_TOKEN: &str = "xapp-1-A0-fake";
    const BOT_TOKEN: &str = "xoxb-1-fake";

    fn find_in(variables: &[(&str, &str)]) -> (Secrets, Result<(), crate::config::ConfigError>) {
        let mut report = Report::default();
        let secrets = Secrets::find(&Environment::new(variables.iter().copied(), "/"), &mut report);
        (secrets, report.finish(()))
    }

    /// The sentences for these variables; whatever they say, it is none of the values.
    fn problems(variables: &[(&str, &str)]) -> String {
        let text = find_in(variables).1.unwrap_err().to_string();
        assert!(variables.iter().all(|(_, value)| value.is_empty() || !text.contains(value.trim())), "{text}");
        text
    }

    fn exposed(secret: Option<&SecretString>) -> Option<&str> {
        secret.map(|secret| secret.expose_secret())
    }

    #[test]
    fn a_credential_wins_over_a_file_and_a_file_over_a_variable() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("bot-token");
        std::fs::write(&file, "  xoxb-from-file\n").unwrap();
        let credentials = directory.path().join("credentials");
        std::fs::create_dir(&credentials).unwrap();
        let variables = [
            ("USHER_SLACK_BOT_TOKEN", "xoxb-from-variable"),
            ("USHER_SLACK_BOT_TOKEN_FILE", file.to_str().unwrap()),
            ("CREDENTIALS_DIRECTORY", credentials.to_str().unwrap()),
        ];
        let found = |count: usize| exposed(find_in(&variables[..count]).0.slack_bot.as_ref()).map(str::to_owned);
        assert_eq!(found(1).as_deref(), Some("xoxb-from-variable"));
        assert_eq!(found(3).as_deref(), Some("xoxb-from-file"));
        std::fs::write(credentials.join("USHER_SLACK_BOT_TOKEN"), "xoxb-from-credential\n").unwrap();
        assert_eq!(found(3).as_deref(), Some("xoxb-from-credential"));
    }

    #[test]
    fn the_first_github_name_wins_and_an_empty_variable_is_unset() {
        let (secrets, outcome) =
            find_in(&[("GITHUB_TOKEN", "ghs_second"), ("GH_TOKEN", "ghp_first"), ("USHER_SLACK_APP_TOKEN", "")]);
        assert_eq!(exposed(secrets.github.as_ref()), Some("ghp_first"));
        assert!(secrets.slack_app.is_none() && outcome.is_ok());
        assert_eq!(exposed(find_in(&[("GH_TOKEN", ""), ("GITHUB_TOKEN", "ghs_b")]).0.github.as_ref()), Some("ghs_b"));
    }

    #[test]
    fn where_each_came_from_is_told_without_its_value() {
        let (secrets, _) = find_in(&[("USHER_SLACK_APP_TOKEN", APP_TOKEN), ("GITHUB_TOKEN", "ghs_fake")]);
        insta::assert_snapshot!(secrets.lines().join("\n"), @"
        USHER_SLACK_APP_TOKEN: set, from the environment
        USHER_SLACK_BOT_TOKEN: unset
        GITHUB_TOKEN: set, from the environment
        USHER_GITHUB_APP_KEY: unset
        USHER_GITHUB_WEBHOOK_SECRET: unset
        USHER_GITHUB_WEBHOOK_SECRET_PREVIOUS: unset
        ");
        assert!(!format!("{secrets:?}").contains("fake"));
    }

    #[test]
    fn swapped_tokens_are_recognised() {
        insta::assert_snapshot!(
            problems(&[("USHER_SLACK_APP_TOKEN", BOT_TOKEN), ("USHER_SLACK_BOT_TOKEN", APP_TOKEN)]), @r"
        USHER_SLACK_APP_TOKEN does not look like an app-level token (xapp-): perhaps the two Slack tokens are swapped
        USHER_SLACK_BOT_TOKEN does not look like a bot token (xoxb-): perhaps the two Slack tokens are swapped
        ");
    }

    #[test]
    fn what_is_no_token_is_refused_with_the_way_to_one() {
        insta::assert_snapshot!(problems(&[("USHER_SLACK_APP_TOKEN", "hunter22")]), @"USHER_SLACK_APP_TOKEN does not look like an app-level token (xapp-): make one with connections:write under Basic Information, App-Level Tokens");
        insta::assert_snapshot!(problems(&[("USHER_SLACK_BOT_TOKEN", "xoxp-a-user")]), @"USHER_SLACK_BOT_TOKEN does not look like a bot token (xoxb-): copy the Bot User OAuth Token from OAuth & Permissions");
        insta::assert_snapshot!(problems(&[("GH_TOKEN", "ghp_a ghp_b")]), @"GH_TOKEN holds more than a token: it must be one line, without spaces");
    }

    #[test]
    fn a_file_that_cannot_be_read_is_an_error_that_does_not_name_it() {
        insta::assert_snapshot!(problems(&[("GH_TOKEN_FILE", "ghp_pasted_instead_of_a_path")]), @"the file that GH_TOKEN_FILE names cannot be read (entity not found): name a file that usher may read");
        let empty = tempfile::NamedTempFile::new().unwrap();
        insta::assert_snapshot!(problems(&[("GH_TOKEN_FILE", empty.path().to_str().unwrap())]), @"GH_TOKEN is empty: put the token there, or remove the empty file or variable");
    }

    #[test]
    fn the_shapes_of_secrets() {
        for secret in [
            "xoxb-1234567890-abc",
            "XAPP-1-A0123456789",
            "Bearer ghp_abcdefghij1",
            "https://x:github_pat_abcdefghij1@host",
            "token=xoxe.xoxp-1-abcdefghij",
            "-----BEGIN RSA PRIVATE KEY-----",
        ] {
            assert!(looks_like_one(secret), "{secret}");
        }
        for plain in
            ["", "eyes", "boxoxb-1234567890", "acme/ghp_tools", "/srv/xapp-agent-server", "/srv/xapp-2", "U0456GHIJ"]
        {
            assert!(!looks_like_one(plain), "{plain}");
        }
        assert!(names_one("slack.bot_token") && names_one("github.app_key") && !names_one("control.keyword"));
    }
}
