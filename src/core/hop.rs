//! Hops: which URLs may be asked at all, and how far a credential travels.
//!
//! Owns the host tables of Slack's and GitHub's files, the rules of a redirect and [`AllowedUrl`], the only form in
//! which a URL reaches the network for a file. It must not know HTTP, tokens or where the URL came from.

use std::borrow::Cow;
use std::fmt;

use url::Url;

use crate::core::attachment::{Reason, Source};

/// How many redirects one file may take; the-loop's figure, kept.
const MAX_REDIRECTS: usize = 5;

/// The longest refused host that a reason repeats, in characters.
const MAX_SHOWN_HOST: usize = 120;

/// The exact hosts of one platform's files. A host that no rule names is never asked for anything.
#[derive(Debug, Clone)]
pub struct HostTable {
    platform: Source,
    rules: Vec<Rule>,
}

#[derive(Debug, Clone)]
struct Rule {
    host: HostPattern,
    bearer: Bearer,
}

#[derive(Debug, Clone)]
enum HostPattern {
    /// This host and no other.
    Exact(Cow<'static, str>),
    /// An S3 bucket whose name ends in a hexadecimal suffix that GitHub may change (platform-facts E2).
    Bucket { prefix: &'static str },
}

/// How far the credential travels with a rule's host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bearer {
    /// On every hop: Slack redirects between its own file hosts and wants the token on each (field report F2).
    EveryHop,
    /// Only when the platform itself named the URL, never after a redirect.
    FirstHop,
    /// Never: signed storage answers 400 to a second way of signing in (field report A6).
    Never,
}

impl HostTable {
    /// Slack's own file hosts (platform-facts C1): the common one, Enterprise Grid's origin, and GovSlack's. Not
    /// `*.slack.com`: a redirect to a workspace's page is the sign-in page, and any workspace can be named there.
    pub fn slack() -> Self {
        let hosts = ["files.slack.com", "files-origin.slack.com", "files.slack-gov.com"];
        Self { platform: Source::Slack, rules: hosts.map(|host| Rule::exact(host, Bearer::EveryHop)).into() }
    }

    /// GitHub's attachment routes and the storage behind them (platform-facts E1, E2). With an Enterprise host the token
    /// belongs to that host, and github.com's public files are asked for without it.
    pub fn github(enterprise_host: Option<&str>) -> Self {
        let github = if enterprise_host.is_some() { Bearer::Never } else { Bearer::FirstHop };
        let enterprise = enterprise_host.map(|host| Rule::exact(canonical(host), Bearer::FirstHop));
        let storage = [
            "objects.githubusercontent.com",
            "private-user-images.githubusercontent.com",
            "user-images.githubusercontent.com",
        ];
        let buckets = ["github-production-user-asset-", "github-production-repository-file-"];
        let rules = [Rule::exact("github.com", github)]
            .into_iter()
            .chain(enterprise)
            .chain(storage.map(|host| Rule::exact(host, Bearer::Never)))
            .chain(buckets.map(|prefix| Rule { host: HostPattern::Bucket { prefix }, bearer: Bearer::Never }));
        Self { platform: Source::GitHub, rules: rules.collect() }
    }

    fn rule_of(&self, host: &str) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.host.matches(host))
    }

    /// What a redirect to this URL means when it is the platform's way of saying "sign in first".
    fn sign_in(&self, url: &Url) -> Option<Reason> {
        let host = canonical(url.host_str()?);
        match self.platform {
            Source::Slack => is_slack_sign_in(&host, url).then_some(Reason::NoScope),
            Source::GitHub => {
                (self.rule_of(&host).is_some() && url.path() == "/login").then_some(Reason::NotReachableWithThisToken)
            }
        }
    }
}

impl Rule {
    fn exact(host: impl Into<Cow<'static, str>>, bearer: Bearer) -> Self {
        Self { host: HostPattern::Exact(host.into()), bearer }
    }
}

impl HostPattern {
    fn matches(&self, host: &str) -> bool {
        match self {
            Self::Exact(exact) => host == exact,
            Self::Bucket { prefix } => host
                .strip_prefix(prefix)
                .and_then(|rest| rest.strip_suffix(".s3.amazonaws.com"))
                .is_some_and(|suffix| !suffix.is_empty() && suffix.bytes().all(|byte| byte.is_ascii_hexdigit())),
        }
    }
}

/// A URL that a [`HostTable`] allows, and whether the credential goes along. Only this module makes one:
///
/// ```compile_fail,E0451
/// use usher::core::hop::AllowedUrl;
/// let url = url::Url::parse("https://files.example/").unwrap();
/// let forged = AllowedUrl { url, takes_bearer: true, redirects: 0 };
/// ```
///
/// ```
/// use usher::core::hop::{HostTable, first};
/// let allowed = first(&HostTable::slack(), "https://files.slack.com/files-pri/T1-F1/shot.png").unwrap();
/// assert!(allowed.takes_bearer());
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct AllowedUrl {
    url: Url,
    takes_bearer: bool,
    redirects: usize,
}

impl AllowedUrl {
    /// The URL to ask: https, port 443, no user name, a host of the table. It may be signed: never log it.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Whether the credential goes along on this hop.
    pub fn takes_bearer(&self) -> bool {
        self.takes_bearer
    }
}

/// The host only: paths hold file names, and queries hold signatures.
impl fmt::Debug for AllowedUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AllowedUrl")
            .field("host", &self.url.host_str().unwrap_or_default())
            .field("takes_bearer", &self.takes_bearer)
            .field("redirects", &self.redirects)
            .finish()
    }
}

/// Admits the URL that a platform named for a file.
///
/// # Errors
/// [`Reason::OffHost`] for anything but https on port 443 of a host in the table.
pub fn first(table: &HostTable, url: &str) -> Result<AllowedUrl, Reason> {
    let url = Url::parse(url).map_err(|_| Reason::OffHost { host: "unreadable".into() })?;
    admit(table, url, 0)
}

/// Admits the `Location` of a redirect, which may be relative to the URL that answered with it.
///
/// # Errors
/// [`Reason::TransferFailed`] past five redirects or for an unreadable location; the platform's own reason for its
/// sign-in page; [`Reason::OffHost`] as in [`first`].
pub fn next(table: &HostTable, from: &AllowedUrl, location: &str) -> Result<AllowedUrl, Reason> {
    if from.redirects >= MAX_REDIRECTS {
        return Err(Reason::TransferFailed);
    }
    let url = from.url.join(location).map_err(|_| Reason::TransferFailed)?;
    match table.sign_in(&url) {
        Some(reason) => Err(reason),
        None => admit(table, url, from.redirects + 1),
    }
}

fn admit(table: &HostTable, mut url: Url, redirects: usize) -> Result<AllowedUrl, Reason> {
    let refused = Reason::OffHost { host: shown_host(&url) };
    let host = canonical(url.host_str().unwrap_or_default());
    let Some(rule) = table.rule_of(&host).filter(|_| is_plain_https(&url)) else { return Err(refused) };
    let takes_bearer = match rule.bearer {
        Bearer::EveryHop => true,
        Bearer::FirstHop => redirects == 0,
        Bearer::Never => false,
    };
    url.set_host(Some(&host)).map_err(|_| refused)?;
    url.set_fragment(None);
    Ok(AllowedUrl { url, takes_bearer, redirects })
}

/// https, port 443, and no user name or password, which `reqwest` would turn into a credential of its own.
fn is_plain_https(url: &Url) -> bool {
    url.scheme() == "https" && url.port().is_none() && url.username().is_empty() && url.password().is_none()
}

/// Lower case, and without the dot that makes a name absolute: `FILES.slack.com.` is `files.slack.com`.
fn canonical(host: &str) -> String {
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

/// A token without `files:read` is sent to `https://<ws>.slack.com/?redir=…`, a page that answers 200 (platform-facts C2).
fn is_slack_sign_in(host: &str, url: &Url) -> bool {
    let at_slack = ["slack.com", "slack-gov.com"]
        .iter()
        .any(|domain| host.strip_suffix(domain).is_some_and(|before| before.is_empty() || before.ends_with('.')));
    let asks_to_sign_in = url.path() == "/"
        || url.path().split('/').any(|part| part == "signin" || part == "workspace-signin")
        || url.query_pairs().any(|(key, _)| key == "redir");
    at_slack && asks_to_sign_in
}

/// The refused host as an operator needs it: what is unusual about the URL beside its host is shown as well.
fn shown_host(url: &Url) -> String {
    let mut shown = String::new();
    if url.scheme() != "https" {
        shown.push_str(url.scheme());
        shown.push_str("://");
    }
    if !url.username().is_empty() || url.password().is_some() {
        shown.push_str("***@");
    }
    shown.push_str(url.host_str().unwrap_or("no host"));
    if let Some(port) = url.port() {
        shown.push_str(&format!(":{port}"));
    }
    shown.chars().take(MAX_SHOWN_HOST).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// How an admitted or refused URL reads in the tables: `bearer URL`, `plain URL`, or the reason's code and host.
    fn verdict(outcome: &Result<AllowedUrl, Reason>) -> String {
        match outcome {
            Ok(url) => format!("{} {}", if url.takes_bearer() { "bearer" } else { "plain" }, url.url()),
            Err(Reason::OffHost { host }) => format!("off-host {host}"),
            Err(reason) => reason.code().to_owned(),
        }
    }

    fn check_first(table: &HostTable, cases: &[(&str, &str)]) {
        for (url, expected) in cases {
            assert_eq!(verdict(&first(table, url)), *expected, "{url}");
        }
    }

    #[test]
    fn slack_files_are_asked_for_on_slacks_file_hosts_only() {
        check_first(
            &HostTable::slack(),
            &[
                (
                    "https://files.slack.com/files-pri/T1-F1/a.png",
                    "bearer https://files.slack.com/files-pri/T1-F1/a.png",
                ),
                ("https://files-origin.slack.com/a", "bearer https://files-origin.slack.com/a"),
                ("https://files.slack-gov.com/a", "bearer https://files.slack-gov.com/a"),
                ("HTTPS://FILES.Slack.COM.:443/a#part", "bearer https://files.slack.com/a"),
                ("https://ﬁles.slack.com/a", "bearer https://files.slack.com/a"),
                ("http://files.slack.com/a", "off-host http://files.slack.com"),
                ("https://files.slack.com:8443/a", "off-host files.slack.com:8443"),
                ("https://files.slack.com@evil.example/a", "off-host ***@evil.example"),
                ("https://user:secret@files.slack.com/a", "off-host ***@files.slack.com"),
                ("https://files.slack.com.evil.example/a", "off-host files.slack.com.evil.example"),
                ("https://evilfiles.slack.com/a", "off-host evilfiles.slack.com"),
                ("https://xfiles.slack.com/a", "off-host xfiles.slack.com"),
                ("https://files.slack.com../a", "off-host files.slack.com.."),
                ("https://ws.slack.com/files/U1/F1/a.png", "off-host ws.slack.com"),
                ("https://slack-files.com/T1-F1", "off-host slack-files.com"),
                ("https://filеs.slack.com/a", "off-host xn--fils-x4d.slack.com"),
                ("https://127.0.0.1/a", "off-host 127.0.0.1"),
                ("https://[::1]/a", "off-host [::1]"),
                (r"https://evil.example\@files.slack.com/a", "off-host evil.example"),
                ("file:///etc/passwd", "off-host file://no host"),
                ("data:text/plain,x", "off-host data://no host"),
                ("//files.slack.com/a", "off-host unreadable"),
                ("", "off-host unreadable"),
            ],
        );
    }

    #[test]
    fn github_files_take_the_bearer_to_github_only() {
        let bucket = "https://github-production-user-asset-6210df.s3.amazonaws.com/1/2.png?X-Amz-Signature=s";
        check_first(
            &HostTable::github(None),
            &[
                ("https://github.com/user-attachments/assets/u", "bearer https://github.com/user-attachments/assets/u"),
                (bucket, &format!("plain {bucket}")),
                (
                    "https://github-production-repository-file-5c1aeb.s3.amazonaws.com/",
                    "plain https://github-production-repository-file-5c1aeb.s3.amazonaws.com/",
                ),
                (
                    "https://github-production-user-asset-.s3.amazonaws.com/",
                    "off-host github-production-user-asset-.s3.amazonaws.com",
                ),
                (
                    "https://github-production-user-asset-xyz.s3.amazonaws.com/",
                    "off-host github-production-user-asset-xyz.s3.amazonaws.com",
                ),
                (
                    "https://github-production-user-asset-6210df.s3.amazonaws.com.evil.example/",
                    "off-host github-production-user-asset-6210df.s3.amazonaws.com.evil.example",
                ),
                ("https://evil.s3.amazonaws.com/", "off-host evil.s3.amazonaws.com"),
                ("https://raw.githubusercontent.com/o/r/main/x", "off-host raw.githubusercontent.com"),
                ("https://ghe.example/user-attachments/assets/u", "off-host ghe.example"),
            ],
        );
        check_first(
            &HostTable::github(Some("GHE.example.")),
            &[
                (
                    "https://ghe.example/user-attachments/assets/u",
                    "bearer https://ghe.example/user-attachments/assets/u",
                ),
                ("https://github.com/user-attachments/assets/u", "plain https://github.com/user-attachments/assets/u"),
            ],
        );
    }

    fn check_next(table: &HostTable, from: &str, cases: &[(&str, &str)]) {
        let from = first(table, from).unwrap();
        for (location, expected) in cases {
            assert_eq!(verdict(&next(table, &from, location)), *expected, "{location}");
        }
    }

    #[test]
    fn slack_redirects_keep_the_bearer_on_slacks_file_hosts_and_stop_at_the_sign_in_page() {
        check_next(
            &HostTable::slack(),
            "https://files.slack.com/files-pri/T1-F1/a.png",
            &[
                (
                    "https://files-origin.slack.com/files-pri/T1-F1/a.png",
                    "bearer https://files-origin.slack.com/files-pri/T1-F1/a.png",
                ),
                ("b.png", "bearer https://files.slack.com/files-pri/T1-F1/b.png"),
                ("//files-origin.slack.com/x", "bearer https://files-origin.slack.com/x"),
                ("https://ws.slack.com/?redir=%2Ffiles-pri%2FT1-F1%2Fa.png", "no-scope"),
                ("http://ws.slack.com/?redir=x", "no-scope"),
                ("https://org.enterprise.slack.com/", "no-scope"),
                ("https://slack.com/workspace-signin", "no-scope"),
                ("https://ws.slack.com/signin", "no-scope"),
                ("/?redir=%2Ffiles-pri", "no-scope"),
                ("https://ws.slack.com/files-pri/T1-F1/a.png", "off-host ws.slack.com"),
                ("https://evilslack.com/?redir=x", "off-host evilslack.com"),
                ("http://files.slack.com/a", "off-host http://files.slack.com"),
                ("https://evil.example/", "off-host evil.example"),
                ("https://", "transfer-failed"),
            ],
        );
    }

    #[test]
    fn github_redirects_drop_the_bearer_for_good() {
        let table = HostTable::github(None);
        check_next(
            &table,
            "https://github.com/user-attachments/assets/u",
            &[
                (
                    "https://objects.githubusercontent.com/f?X-Amz-Expires=300",
                    "plain https://objects.githubusercontent.com/f?X-Amz-Expires=300",
                ),
                ("https://github.com/user-attachments/assets/v", "plain https://github.com/user-attachments/assets/v"),
                ("/login?return_to=x", "not-reachable-with-this-token"),
                ("https://evil.example/login", "off-host evil.example"),
            ],
        );
    }

    #[test]
    fn the_sixth_redirect_is_one_too_many() {
        let table = HostTable::slack();
        let mut url = first(&table, "https://files.slack.com/0").unwrap();
        for hop in 1..=5 {
            url = next(&table, &url, &format!("/{hop}")).unwrap();
        }
        assert_eq!(verdict(&next(&table, &url, "/6")), "transfer-failed");
    }

    #[test]
    fn a_signed_url_never_shows_in_debug_output() {
        let url = first(&HostTable::slack(), "https://files.slack.com/secret-name?t=xoxe-1").unwrap();
        insta::assert_snapshot!(
            format!("{url:?}"),
            @r#"AllowedUrl { host: "files.slack.com", takes_bearer: true, redirects: 0 }"#
        );
    }

    /// URLs near the edge: each part is right or one of the ways that fooled other programs (field report X1).
    fn near_miss() -> impl Strategy<Value = String> {
        let scheme = prop::sample::select(vec!["https://", "HTTPS://", "http://", "//", "ftp://", "https:\\\\"]);
        let user = prop::sample::select(vec!["", "", "", "u@", "files.slack.com@", "github.com:x@", "%00@"]);
        let host = prop_oneof![
            prop::sample::select(vec![
                "files.slack.com",
                "files-origin.slack.com",
                "ws.slack.com",
                "github.com",
                "gist.github.com",
                "objects.githubusercontent.com",
                "github-production-user-asset-6210df.s3.amazonaws.com",
                "files.slack.com.evil.example",
                "evil.example",
            ])
            .prop_map(str::to_owned),
            "[a-z.]{0,8}files\\.slack\\.com[a-z.]{0,3}",
            "[a-z.-]{0,8}github\\.com[a-z.]{0,3}",
        ];
        let port = prop::sample::select(vec!["", "", "", ".", ":443", ":8443", ":0", ":x"]);
        let path =
            prop::sample::select(vec!["", "/", "/a/../b", "/@files.slack.com", "?redir=x", "#@github.com", "\\x"]);
        (scheme, user, host, port, path)
            .prop_map(|(scheme, user, host, port, path)| [scheme, user, &host, port, path].concat())
    }

    fn check_credential(url: &AllowedUrl, is_first: bool, hosts: &[&str], on_later_hops: bool) {
        let host = url.url().host_str().unwrap();
        assert_eq!(url.url().scheme(), "https");
        assert_eq!(url.url().port_or_known_default(), Some(443));
        assert!(url.url().username().is_empty() && url.url().password().is_none());
        assert!(!url.takes_bearer() || (hosts.contains(&host) && (is_first || on_later_hops)), "{host}");
    }

    proptest! {
        #[test]
        fn a_credential_reaches_no_host_outside_its_list_and_chains_end(
            start in near_miss(), locations in prop::collection::vec(near_miss(), 0..12)
        ) {
            let slack: &[&str] = &["files.slack.com", "files-origin.slack.com", "files.slack-gov.com"];
            for (table, hosts, on_later_hops) in
                [(HostTable::slack(), slack, true), (HostTable::github(None), &["github.com"], false)]
            {
                let Ok(mut url) = first(&table, &start) else { continue };
                check_credential(&url, true, hosts, on_later_hops);
                let mut redirects = 0;
                for location in &locations {
                    let Ok(followed) = next(&table, &url, location) else { continue };
                    check_credential(&followed, false, hosts, on_later_hops);
                    url = followed;
                    redirects += 1;
                }
                prop_assert!(redirects <= 5);
            }
        }

        #[test]
        fn no_text_panics(start in ".{0,80}", location in ".{0,80}") {
            let table = HostTable::slack();
            let from = first(&table, "https://files.slack.com/a").unwrap();
            let reached = [first(&table, &start), next(&table, &from, &location)];
            for url in reached.into_iter().flatten() {
                prop_assert!(table.rule_of(url.url().host_str().unwrap()).is_some());
            }
        }
    }
}
