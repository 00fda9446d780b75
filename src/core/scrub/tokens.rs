//! Tokens and keys of known shape.

/// The shape of a token: a fixed beginning, then letters and digits as a random generator draws them.
struct Shape {
    kind: &'static str,
    prefix: &'static str,
    /// What may follow besides ASCII letters and digits.
    also: &'static [u8],
    /// The fewest bytes that follow.
    least: usize,
    /// The fewest letters and digits in one run with a digit in it: what tells a drawn token from a name.
    drawn: usize,
}

const fn shape(kind: &'static str, prefix: &'static str, also: &'static [u8], least: usize, drawn: usize) -> Shape {
    Shape { kind, prefix, also, least, drawn }
}

/// Longer prefixes before those that they begin with. No shape has a fixed length: since April 2026 an installation
/// token of GitHub is `ghs_<app>_<JWT>` (platform-facts G).
const SHAPES: [Shape; 19] = [
    shape("slack-token", "xoxa-", b"-", 10, 6),
    shape("slack-token", "xoxb-", b"-", 10, 6),
    shape("slack-token", "xoxc-", b"-", 10, 6),
    shape("slack-token", "xoxe-", b"-", 10, 6),
    shape("slack-token", "xoxp-", b"-", 10, 6),
    shape("slack-token", "xoxr-", b"-", 10, 6),
    shape("slack-token", "xoxs-", b"-", 10, 6),
    shape("slack-token", "xapp-", b"-", 10, 6),
    shape("slack-token", "xwfp-", b"-", 10, 6),
    shape("github-token", "ghp_", b"_", 20, 16),
    shape("github-token", "gho_", b"_", 20, 16),
    shape("github-token", "ghu_", b"_", 20, 16),
    shape("github-token", "ghs_", b"_.-", 20, 16),
    shape("github-token", "ghr_", b"_", 20, 16),
    shape("github-token", "github_pat_", b"_", 20, 16),
    shape("anthropic-key", "sk-ant-", b"-_", 16, 16),
    shape("api-key", "sk-", b"-_", 32, 20),
    shape("npm-token", "npm_", b"", 36, 36),
    shape("gitlab-token", "glpat-", b"-_", 20, 4),
];

/// How far behind a prefix a token must show that it is one. It bounds the work of a failed attempt, so that scanning
/// is linear whatever the text.
const LOOK_AHEAD: usize = 96;

/// A credential at the head of a text: its kind and its length in bytes.
type Found = (&'static str, usize);

/// Replaces each by `[redacted:KIND]`.
pub(super) fn redact(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut done, mut before) = (0, ' ');
    for (at, c) in text.char_indices() {
        let is_start = at >= done && may_start(before, c);
        before = c;
        let Some((kind, length)) = is_start.then(|| text.get(at..).and_then(credential)).flatten() else { continue };
        out.push_str(text.get(done..at).unwrap_or_default());
        out.push_str("[redacted:");
        out.push_str(kind);
        out.push(']');
        done = at + length;
    }
    out.push_str(text.get(done..).unwrap_or_default());
    out
}

/// Where a word begins. The parts of a JWT may contain dashes: only a start that none precedes is tried, so that each
/// run is read once. The dashes of a PEM block begin anywhere.
fn may_start(before: char, c: char) -> bool {
    match c {
        '-' => true,
        'e' => !before.is_ascii_alphanumeric() && !matches!(before, '-' | '_'),
        _ => c.is_ascii_alphabetic() && !before.is_ascii_alphanumeric(),
    }
}

fn credential(text: &str) -> Option<Found> {
    match text.as_bytes().first()? {
        b'-' => private_key(text),
        b'e' => json_web_token(text),
        b'A' => aws_key(text),
        b'x' | b'g' | b's' | b'n' => SHAPES.iter().find_map(|shape| shape.found(text)),
        _ => None,
    }
}

impl Shape {
    fn found(&self, text: &str) -> Option<Found> {
        let payload = text.strip_prefix(self.prefix)?.as_bytes();
        let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || self.also.contains(byte);
        let head: Vec<u8> = payload.iter().take(LOOK_AHEAD).take_while(|byte| allowed(byte)).copied().collect();
        let is_drawn = |run: &[u8]| run.len() >= self.drawn && run.iter().any(u8::is_ascii_digit);
        if head.len() < self.least || !head.split(|byte| !byte.is_ascii_alphanumeric()).any(is_drawn) {
            return None;
        }
        let run = payload.iter().take_while(|byte| allowed(byte)).count();
        // A full stop or a dash behind the token belongs to the sentence.
        let end = payload.get(..run)?.iter().rposition(|byte| !matches!(byte, b'.' | b'-'))? + 1;
        Some((self.kind, self.prefix.len() + end))
    }
}

/// `AKIA` or `ASIA` and exactly sixteen capitals or digits.
fn aws_key(text: &str) -> Option<Found> {
    const LENGTH: usize = 20;
    let is_key = (text.starts_with("AKIA") || text.starts_with("ASIA"))
        && text.bytes().take(LENGTH).filter(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit()).count()
            == LENGTH
        && !text.as_bytes().get(LENGTH).is_some_and(u8::is_ascii_alphanumeric);
    is_key.then_some(("aws-key", LENGTH))
}

/// Three parts of URL-safe base64; the first two are JSON objects, which is why the first begins with `eyJ`.
fn json_web_token(text: &str) -> Option<Found> {
    const LEAST: usize = 10;
    let part = |text: &str| text.bytes().take_while(|byte| is_base64_url(*byte)).count();
    let header = part(text.strip_prefix("eyJ")?) + 3;
    let rest = text.get(header..)?.strip_prefix('.')?;
    let claims = part(rest);
    let signature = part(rest.get(claims..)?.strip_prefix('.')?);
    (header >= LEAST && claims >= LEAST).then_some(("jwt", header + 1 + claims + 1 + signature))
}

fn is_base64_url(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

/// A PEM block. Without its end line (a cut-off paste) the lines that look like base64 go, and no words.
fn private_key(text: &str) -> Option<Found> {
    let body = text.strip_prefix("-----BEGIN ").and_then(after_label)?;
    let end = body.find("-----").and_then(|at| body.get(at..));
    let rest = match end.and_then(|end| end.strip_prefix("-----END ")).and_then(after_label) {
        Some(rest) => rest,
        None => after_base64_lines(body),
    };
    Some(("private-key", text.len() - rest.len()))
}

/// Reads `… PRIVATE KEY … -----` and answers what follows.
fn after_label(text: &str) -> Option<&str> {
    const LONGEST: usize = 64;
    let end = text.bytes().take(LONGEST).position(|byte| byte == b'-')?;
    let (label, rest) = text.split_at_checked(end)?;
    rest.strip_prefix("-----").filter(|_| label.contains("PRIVATE KEY"))
}

fn after_base64_lines(body: &str) -> &str {
    let is_base64 = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=' | '\r');
    let mut rest = body;
    while let Some(line) = rest.strip_prefix('\n') {
        let after = line.trim_start_matches(is_base64);
        if after.len() == line.len() || !(after.is_empty() || after.starts_with('\n')) {
            break;
        }
        rest = after;
    }
    rest
}
