//! The work item: the GitHub issue or pull request that everything is about.
//!
//! Owns how a work item is written (`owner/repo#12`) and its file-system form, the slug. It must not know what an issue
//! contains or whether it exists.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A GitHub issue or pull request: `owner/repo#12`, or `host/owner/repo#12` on an Enterprise host.
///
/// GitHub compares names without case, so they are lower-cased at the door: one item has one lane, one slug and one
/// directory, however a person spells it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct WorkItem {
    host: Option<String>,
    owner: String,
    repo: String,
    number: u64,
}

/// Why a text is no work item. The sentence is for the person who typed it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a work item: write owner/repo#12, or host/owner/repo#12 on an Enterprise host")]
pub struct NotAWorkItem(String);

impl WorkItem {
    /// The Enterprise host, or `None` for github.com.
    pub fn host(&self) -> Option<&str> {
        self.host.as_deref()
    }

    /// `owner/repo`, as the REST API's paths want it.
    pub fn repository(&self) -> String {
        format!("{}/{}", self.owner, self.repo)
    }

    /// The number of the issue or pull request.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The file-system form, injective and one path component: `owner/repo#12` -> `owner--repo--12`.
    ///
    /// A dash that could be read as part of a separator is escaped as `%2d`, so `o/a--b` and `o--a/b` stay apart; a
    /// leading dot is `%2e`, so no slug is hidden. `%` occurs in no GitHub name.
    pub fn slug(&self) -> String {
        let number = self.number.to_string();
        let parts = self.host.as_deref().into_iter().chain([self.owner.as_str(), self.repo.as_str(), number.as_str()]);
        parts.map(slug_part).collect::<Vec<_>>().join("--")
    }
}

fn slug_part(part: &str) -> String {
    let mut out = String::with_capacity(part.len());
    let mut before = '-';
    let mut rest = part.chars().peekable();
    while let Some(c) = rest.next() {
        let after = rest.peek().copied().unwrap_or('-');
        match c {
            '-' if before == '-' || after == '-' => out.push_str("%2d"),
            '.' if out.is_empty() => out.push_str("%2e"),
            _ => out.push(c),
        }
        before = c;
    }
    out
}

impl FromStr for WorkItem {
    type Err = NotAWorkItem;

    fn from_str(text: &str) -> Result<Self, NotAWorkItem> {
        let refuse = || NotAWorkItem(text.chars().take(120).collect());
        let (path, number) = text.split_once('#').ok_or_else(refuse)?;
        let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        let number = number.parse().ok().filter(|number| digits && *number > 0).ok_or_else(refuse)?;
        let mut names = path.split('/').map(|part| name(part).ok_or_else(refuse));
        let (first, second) = (names.next().ok_or_else(refuse)??, names.next().ok_or_else(refuse)??);
        let third = names.next().transpose()?;
        if names.next().is_some() {
            return Err(refuse());
        }
        Ok(match third {
            None => Self { host: None, owner: first, repo: second, number },
            Some(repo) if first == "github.com" => Self { host: None, owner: second, repo, number },
            Some(repo) if first.contains('.') => Self { host: Some(first), owner: second, repo, number },
            Some(_) => return Err(refuse()),
        })
    }
}

/// A host, owner or repository name, lower-cased: GitHub's alphabet, and nothing that a path would take for its own.
fn name(part: &str) -> Option<String> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let plain = !part.is_empty() && part.len() <= 100 && part != "." && part != ".." && part.bytes().all(allowed);
    plain.then(|| part.to_ascii_lowercase())
}

impl fmt::Display for WorkItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(host) = &self.host {
            write!(f, "{host}/")?;
        }
        write!(f, "{}/{}#{}", self.owner, self.repo, self.number)
    }
}

impl TryFrom<String> for WorkItem {
    type Error = NotAWorkItem;

    fn try_from(text: String) -> Result<Self, NotAWorkItem> {
        text.parse()
    }
}

impl From<WorkItem> for String {
    fn from(item: WorkItem) -> Self {
        item.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn item(text: &str) -> WorkItem {
        text.parse().unwrap()
    }

    #[test]
    fn reads_both_forms_and_lower_cases_them() {
        assert_eq!(item("Acme/Web.App#12").to_string(), "acme/web.app#12");
        assert_eq!(item("ghe.corp.example/o/r#1").host(), Some("ghe.corp.example"));
        assert_eq!(item("github.com/o/r#1"), item("o/r#1"));
    }

    #[test]
    fn refuses_what_is_no_work_item() {
        for text in [
            "",
            "o/r",
            "o/r#",
            "o/r#0",
            "o/r#-1",
            "o/r#+1",
            "o#1",
            "o/../r#1",
            "a/b/c#1",
            "o/r#1#2",
            "o/r x#1",
            "/r#1",
            "a.b/c/d/e#1",
        ] {
            assert!(text.parse::<WorkItem>().is_err(), "{text}");
        }
    }

    #[test]
    fn slugs_do_not_collide() {
        assert_eq!(item("owner/repo#12").slug(), "owner--repo--12");
        assert_eq!(item("o/a--b#1").slug(), "o--a%2d%2db--1");
        assert_eq!(item("o/.github#1").slug(), "o--%2egithub--1");
        assert_ne!(item("o/a-b#1").slug(), item("o/a--b#1").slug());
    }

    proptest! {
        #[test]
        fn slug_is_injective(a in "[a-c.-]{1,4}/[a-c.-]{1,4}#[1-3]", b in "[a-c.-]{1,4}/[a-c.-]{1,4}#[1-3]") {
            if let (Ok(a), Ok(b)) = (a.parse::<WorkItem>(), b.parse::<WorkItem>()) {
                prop_assert_eq!(a == b, a.slug() == b.slug());
            }
        }

        #[test]
        fn what_is_printed_is_read_back(text in "[a-z0-9]{1,5}/[a-z0-9_.-]{1,8}#[1-9][0-9]{0,4}") {
            if let Ok(item) = text.parse::<WorkItem>() {
                prop_assert_eq!(item.to_string().parse::<WorkItem>().unwrap(), item);
            }
        }
    }
}
