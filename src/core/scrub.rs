//! Scrubbing: what the ledger's record must not contain, and what must not act there.
//!
//! Owns the known shapes of credentials ([`scrub`]) and what GitHub or Slack would act on in words that usher only
//! quotes ([`inert()`]). It must not know how a record reads (`record`). The pane gets the words unscrubbed.

mod inert;
mod signed_urls;
mod tokens;

pub use inert::inert;

/// Replaces credentials by `[redacted:KIND]`: tokens and keys of known shape, and the signed part of a URL's query.
///
/// Only known shapes go. A rule like "twenty characters with a digit" destroys file names, permalinks, commits and
/// identifiers in the record of truth (the-loop-spec 11.4, item 44); all of these stay byte for byte.
pub fn scrub(text: &str) -> String {
    tokens::redact(&signed_urls::redact(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A secret in the middle of a sentence, put together here so that no scanner takes this file for a leak.
    fn check(kind: &str, parts: &[&str]) {
        let secret = parts.concat();
        for (before, after) in [("", ""), ("token=", "."), ("(", ")"), ("`", "`"), ("é", " ends"), ("a/", "\n")] {
            let expected = format!("{before}[redacted:{kind}]{after}");
            assert_eq!(scrub(&format!("{before}{secret}{after}")), expected, "{kind}");
        }
    }

    #[test]
    fn known_tokens_are_redacted() {
        let body = "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8";
        for letter in ["a", "b", "e", "p", "r", "s"] {
            check("slack-token", &["xox", letter, "-123456789012-1234567890123-AbCdEf"]);
        }
        check("slack-token", &["xapp", "-1-A0123456789-1234567890123-0a1b2c3d"]);
        check("slack-token", &["xwfp", "-1234567890-ABCDEF"]);
        for letter in ["p", "o", "u", "s", "r"] {
            check("github-token", &["gh", letter, "_", body]);
        }
        check("github-token", &["github_", "pat_11ABCDEFG0", "aBcDeFgHiJkLmN_", body]);
        check("github-token", &["ghs", "_123456_", "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiIxIn0.AbC-d_E"]);
        check("aws-key", &["AKIA", "ABCDEFGHIJKLMN23"]);
        check("jwt", &["eyJ", "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dBjftJeZ4CVP-mB92_K27uhbUJU"]);
        check("anthropic-key", &["sk-", "ant-api03-", body, "-_AA"]);
        check("api-key", &["sk-", body]);
        check("api-key", &["sk-", "proj-", body]);
        check("npm-token", &["npm", "_", body]);
        check("gitlab-token", &["glpat", "-", "a1B2c3D4e5F6g7H8i9J0"]);
    }

    #[test]
    fn private_keys_are_redacted() {
        let begin = ["-----BEGIN RSA PRIV", "ATE KEY-----"].concat();
        let end = ["-----END RSA PRIV", "ATE KEY-----"].concat();
        for (text, expected) in [
            (format!("key:\n{begin}\nMIIEow==\n{end}\nthanks"), "key:\n[redacted:private-key]\nthanks"),
            (format!("{begin}\\nMIIEow==\\n{end}"), "[redacted:private-key]"),
            (
                format!("{begin}\nMIIEow+/\nQUJD\nand this is what I said"),
                "[redacted:private-key]\nand this is what I said",
            ),
            (format!("{begin}\nMIIEow\n{begin}\nQUJD\n{end}"), "[redacted:private-key]\n[redacted:private-key]"),
        ] {
            assert_eq!(scrub(&text), expected);
        }
    }

    #[test]
    fn the_signed_part_of_a_url_is_redacted() {
        for (url, expected) in [
            (
                "https://b.example/k?a=1&X-Amz-Date=2&X-Amz-Signature=3f&b=2#f",
                "https://b.example/k?a=1&[redacted:signed-query]&b=2#f",
            ),
            ("https://x.example/?x-amz-date=1&amp;x-amz-signature=2", "https://x.example/?[redacted:signed-query]"),
            (
                "[shot](https://p.example/1.png?jwt=ab.c-d_e) and",
                "[shot](https://p.example/1.png?[redacted:signed-query]) and",
            ),
            ("https://files.example/a?t=xoxe-1&pub=2", "https://files.example/a?[redacted:signed-query]&pub=2"),
            ("<https://r.example/f?token=ABC|f>", "<https://r.example/f?[redacted:signed-query]|f>"),
            ("https://z.example/b?sv=1&se=2&sig=a%2Bb%3D", "https://z.example/b?sv=1&se=2&[redacted:signed-query]"),
            ("https://c.example/b?Expires=1&Signature=ab~c_", "https://c.example/b?Expires=1&[redacted:signed-query]"),
            ("https://o.example/cb#access_token=abc", "https://o.example/cb#[redacted:signed-query]"),
            (
                "https://o.example/?to=https://p.example/?token=a",
                "https://o.example/?to=https://p.example/?[redacted:signed-query]",
            ),
            ("wss://w.example/link/?ticket=abc&app_id=1", "wss://w.example/link/?[redacted:signed-query]&app_id=1"),
            (
                "https://hooks.slack.com/services/T0/B0/abc: ok",
                "https://hooks.slack.com/services/[redacted:slack-webhook]: ok",
            ),
        ] {
            assert_eq!(scrub(url), expected);
        }
    }

    #[test]
    fn everything_else_stays_as_it_is() {
        for text in [
            "https://ws.slack.com/archives/C0123ABCD/p1700000000123456?thread_ts=1700000000.123456&cid=C0123ABCD",
            "https://ws.slack.com/files/U0456GHIJ/F07ABC123/shot_2026-01-02_at_10.11.12.png",
            "https://github.com/o/r/commit/0123456789abcdef0123456789abcdef01234567#diff-1",
            "https://tickets.example/?ticket=OPS-1&t=30s&sig=me&signature=none&tokens=2",
            "0123456789abcdef0123456789abcdef01234567 and 123e4567-e89b-12d3-a456-426614174000",
            "/home/dana/work/owner--repo--12/F07ABC-shot.png, usher-control-plane-2026-01-02.tar.gz",
            "run /deploy prod-eu-west-1 now; sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "xoxb-your-token-here, xoxb-guide.md, ghp_xxx, github_pat_…, sk-learn, sk-ant-…, npm_config_cache",
            "task-ant-1234567890123456789012, disk-0123456789012345678901234567890123456789",
            "sk-fading-circle-2-with-a-very-long-class-name-indeed",
            "AKIAABCDEFGHIJKLMN234, XAKIAABCDEFGHIJKLMN23, akiaabcdefghijklmn23",
            "eyJhbGciOi.x.y and eyJ alone",
            "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----",
            "-----BEGIN PUBLIC KEY-----",
            "a://b ://?token= https://x.example/?token=&jwt",
        ] {
            assert_eq!(scrub(text), text);
        }
    }

    proptest! {
        #[test]
        fn scrubbing_twice_changes_nothing_more(
            text in prop_oneof![
                any::<String>(),
                "(xoxb-|gh[ps]_|github_pat_|sk-(ant-)?|npm_|AKIA|eyJ|-----(BEGIN|END) PRIVATE KEY-----\
                 |https?://|wss://|[?&#;=.|\\-_/ \n\\[\\]]|token|jwt|X-Amz-A|sig|se|a1b2c3d4e5f6g7h8i9j0|[A-Z0-9]{16}){0,24}",
            ],
        ) {
            let scrubbed = scrub(&text);
            prop_assert_eq!(scrub(&scrubbed), scrubbed);
        }
    }
}
