//! The parts of URLs that open a door by themselves: signatures, tickets, tokens in a query.

const MARK: &str = "[redacted:signed-query]";

/// Replaces the parameters that sign a URL, neighbours by one mark, and the secret path of a Slack webhook. The rest
/// of the URL stays as it is.
pub(super) fn redact(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("://") {
        out.push_str(before);
        out.push_str("://");
        let end = after.find(ends_url).unwrap_or(after.len());
        let (url, behind) = after.split_at_checked(end).unwrap_or((after, ""));
        redact_url(url, before.ends_with("wss"), &mut out);
        rest = behind;
    }
    out.push_str(rest);
    out
}

fn ends_url(c: char) -> bool {
    c.is_whitespace() || matches!(c, '<' | '>' | '"' | '`' | '|')
}

fn separates(c: char) -> bool {
    matches!(c, '?' | '&' | '#')
}

fn redact_url(url: &str, is_socket: bool, out: &mut String) {
    let (path, query) = url.find(separates).and_then(|at| url.split_at_checked(at)).unwrap_or((url, ""));
    redact_path(path, out);
    let signing = Signing { is_socket, has_company: query.split(separates).any(accompanies_a_signature) };
    let mut behind_mark = false;
    let mut rest = query;
    while let Some((separator, after)) = rest.split_at_checked(1) {
        let (parameter, next) =
            after.split_at_checked(after.find(separates).unwrap_or(after.len())).unwrap_or((after, ""));
        let kept = signing.without_secret(parameter);
        if !(behind_mark && separator == "&" && kept.is_some()) {
            out.push_str(separator);
            out.push_str(if kept.is_some() { MARK } else { "" });
        }
        out.push_str(kept.unwrap_or(parameter));
        behind_mark = kept.is_some_and(str::is_empty);
        rest = next;
    }
}

/// An incoming webhook of Slack is its own credential.
fn redact_path(path: &str, out: &mut String) {
    const WEBHOOK: &str = "hooks.slack.com/services/";
    let is_secret = |c: char| c.is_ascii_alphanumeric() || c == '/';
    match path.strip_prefix(WEBHOOK).filter(|secret| secret.starts_with(is_secret)) {
        Some(secret) => {
            out.push_str(WEBHOOK);
            out.push_str("[redacted:slack-webhook]");
            out.push_str(secret.trim_start_matches(is_secret));
        }
        None => out.push_str(path),
    }
}

/// What the rest of a URL says of its parameters.
struct Signing {
    /// The ticket of Slack's socket opens it; a `ticket=` elsewhere is somebody's ticket.
    is_socket: bool,
    /// An expiry or a key stands beside the signature, as in every signed URL; a lone `sig=` may be anything.
    has_company: bool,
}

impl Signing {
    /// What stays of a parameter that carries a secret: what stands behind its value, a bracket or a full stop.
    /// `None` when it carries none.
    fn without_secret<'a>(&self, parameter: &'a str) -> Option<&'a str> {
        let (name, value) = parameter.split_once('=')?;
        let behind = value.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || "-._~%+/=:@*!$,".contains(c));
        let value = value.strip_suffix(behind)?;
        let secret = value.trim_end_matches(['.', ',', ':', '!']);
        let is_secret = !secret.is_empty() && self.names_a_secret(&plain_name(name), secret);
        is_secret.then(|| parameter.get(name.len() + 1 + secret.len()..)).flatten()
    }

    fn names_a_secret(&self, name: &str, value: &str) -> bool {
        match name {
            "jwt" | "token" | "access_token" => true,
            "t" => value.starts_with("xox"),
            "ticket" => self.is_socket,
            "sig" | "signature" => self.has_company,
            name => name.starts_with("x-amz-") || name.starts_with("x-goog-"),
        }
    }
}

fn accompanies_a_signature(parameter: &str) -> bool {
    const COMPANY: [&str; 7] = ["se", "sv", "expires", "key-pair-id", "policy", "awsaccesskeyid", "googleaccessid"];
    parameter.split_once('=').is_some_and(|(name, _)| COMPANY.contains(&plain_name(name).as_str()))
}

/// A name without case and without what is left of an `&amp;`.
fn plain_name(name: &str) -> String {
    name.strip_prefix("amp;").unwrap_or(name).to_ascii_lowercase()
}
