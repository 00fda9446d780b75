//! The scopes of the Slack app: each with its reason, and what is missing without it.
//!
//! Owns the list; the manifest and the documentation are tested against it. It must not know which scopes an
//! installation really has: the probe asks.

/// One bot scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scope {
    /// Its name, as in the `X-OAuth-Scopes` header.
    pub name: &'static str,
    /// What usher needs it for.
    pub why: &'static str,
    /// What follows when it is missing; completes the sentence of the probe.
    pub without: &'static str,
}

/// Every scope that usher asks for, in the order of the manifest. Methods and their scopes: platform-facts C3.
pub const SCOPES: &[Scope] = &[
    Scope {
        name: "app_mentions:read",
        why: "hear a mention in a channel",
        without: "mentions in channels do not arrive",
    },
    Scope {
        name: "channels:history",
        why: "hear messages in public channels",
        without: "messages in public channels do not arrive",
    },
    Scope {
        name: "groups:history",
        why: "hear messages in private channels",
        without: "messages in private channels do not arrive",
    },
    Scope { name: "im:history", why: "hear direct messages", without: "direct messages do not arrive" },
    Scope { name: "mpim:history", why: "hear group direct messages", without: "group direct messages do not arrive" },
    Scope {
        name: "channels:read",
        why: "name a public channel, and know that it is public",
        without: "public channels have no name and cannot be told from private ones",
    },
    Scope {
        name: "groups:read",
        why: "name a private channel, and know that it is private",
        without: "private channels have no name and cannot be told from public ones",
    },
    Scope {
        name: "chat:write",
        why: "tell a person privately why something was refused",
        without: "nobody is told why something was refused",
    },
    Scope {
        name: "reactions:write",
        why: "mark a message as received, waiting, done or failed",
        without: "messages carry no marks",
    },
    Scope {
        name: "users:read",
        why: "name the people who are mentioned or quoted",
        without: "people who are mentioned or quoted appear as ids",
    },
    Scope {
        name: "files:read",
        why: "fetch attached files and transcripts",
        without: "files are named and linked, never fetched",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = include_str!("../../manifest/slack-app.yaml");
    const DOCUMENT: &str = include_str!("../../docs/configuration.md");

    /// The entries of the YAML list under `key:`, as `- name` or `- name # reason`.
    fn listed(key: &str) -> Vec<(&'static str, &'static str)> {
        let after = MANIFEST.lines().skip_while(|line| line.trim() != format!("{key}:")).skip(1);
        let entries = after.map_while(|line| line.trim().strip_prefix("- "));
        entries.map(|entry| entry.split_once('#').unwrap_or((entry, ""))).map(|(a, b)| (a.trim(), b.trim())).collect()
    }

    #[test]
    fn the_manifest_asks_for_these_scopes_with_these_reasons() {
        let scopes: Vec<_> = SCOPES.iter().map(|scope| (scope.name, scope.why)).collect();
        assert_eq!(listed("bot"), scopes);
    }

    #[test]
    fn the_documentation_lists_these_scopes() {
        let rows = SCOPES.iter().map(|scope| format!("| `{}` | {} | {} |", scope.name, scope.why, scope.without));
        let section = DOCUMENT.lines().skip_while(|line| !line.starts_with("| scope |")).skip(2);
        let documented: Vec<&str> = section.take_while(|line| line.starts_with('|')).collect();
        assert_eq!(documented, rows.collect::<Vec<_>>());
    }

    #[test]
    fn the_manifest_subscribes_to_what_the_socket_reads() {
        let events: Vec<&str> = listed("bot_events").into_iter().map(|(event, _)| event).collect();
        insta::assert_snapshot!(events.join(" "), @"app_mention message.channels message.groups message.im message.mpim file_change");
        assert!(MANIFEST.lines().any(|line| line.trim() == "socket_mode_enabled: true"));
    }
}
