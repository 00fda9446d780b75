//! The issues that a pull request says it closes.
//!
//! Owns GitHub's closing keywords and the branch name `issue-12`. It must not know whether such an issue exists or is
//! bound.

use crate::core::work_item::WorkItem;

/// GitHub's closing keywords (docs.github.com, "Linking a pull request to an issue").
const KEYWORDS: &[&str] = &["close", "closes", "closed", "fix", "fixes", "fixed", "resolve", "resolves", "resolved"];

/// The issues named by the body's closing keywords and by the branch, in that order, each once; `pull_request` gives the
/// repository that a bare `#12` means.
pub(super) fn closed_issues(pull_request: &WorkItem, body: &str, branch: &str) -> Vec<WorkItem> {
    let mut found = Vec::new();
    let mut words = body.split_whitespace().peekable();
    while let Some(word) = words.next() {
        let keyword =
            word.trim_end_matches(':').trim_start_matches(|c: char| !c.is_ascii_alphanumeric()).to_ascii_lowercase();
        if KEYWORDS.contains(&keyword.as_str()) {
            found.extend(words.peek().and_then(|reference| referenced(pull_request, reference)));
        }
    }
    found.extend(of_branch(pull_request, branch));
    let mut seen = Vec::new();
    found.retain(|item| {
        item != pull_request && !seen.contains(item) && {
            seen.push(item.clone());
            true
        }
    });
    found
}

fn referenced(pull_request: &WorkItem, reference: &str) -> Option<WorkItem> {
    let reference = reference.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
    if let Some(number) = reference.strip_prefix('#') {
        return sibling(pull_request, number);
    }
    let path = match reference.strip_prefix("https://") {
        Some(link) => {
            let (repository, number) = link.split_once("/issues/")?;
            format!("{repository}#{number}")
        }
        None => with_host(pull_request, reference),
    };
    path.parse().ok()
}

/// `owner/repo#12` in a text on an Enterprise host means that host.
fn with_host(pull_request: &WorkItem, reference: &str) -> String {
    match pull_request.host() {
        Some(host) => format!("{host}/{reference}"),
        None => reference.to_owned(),
    }
}

/// `issue-12` or `issue/12`, at the beginning of the branch's name or of a part of it.
fn of_branch(pull_request: &WorkItem, branch: &str) -> Option<WorkItem> {
    let lower = branch.to_ascii_lowercase();
    let (before, after) = lower.split_once("issue-").or_else(|| lower.split_once("issue/"))?;
    let opens = before.is_empty() || before.ends_with(['/', '-', '_']);
    let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
    let ends = after.chars().nth(digits.len()).is_none_or(|next| matches!(next, '-' | '_' | '/' | '.'));
    (opens && ends).then(|| sibling(pull_request, &digits)).flatten()
}

fn sibling(pull_request: &WorkItem, number: &str) -> Option<WorkItem> {
    with_host(pull_request, &format!("{}#{number}", pull_request.repository())).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_and_branches_name_the_issues_that_are_closed() {
        let check = |body: &str, branch: &str, expected: &[&str]| {
            let found = closed_issues(&"acme/widgets#7".parse().unwrap(), body, branch);
            let found: Vec<String> = found.iter().map(ToString::to_string).collect();
            assert_eq!(found, expected, "{body} {branch}");
        };
        check("Closes #12", "", &["acme/widgets#12"]);
        check("closes: #12.", "", &["acme/widgets#12"]);
        check("(fixes #12), resolves Other/Repo#3", "", &["acme/widgets#12", "other/repo#3"]);
        check("Resolved https://github.com/acme/widgets/issues/5", "", &["acme/widgets#5"]);
        check("see #12, discloses #13, close the door", "", &[]);
        check("closes #12 and closes #12", "issue-12", &["acme/widgets#12"]);
        check("closes #7", "", &[]);
        check("", "issue-12-squeak", &["acme/widgets#12"]);
        check("", "dana/issue/12", &["acme/widgets#12"]);
        check("", "tissue-12", &[]);
        check("", "issue-12th", &[]);
        check("", "issue-", &[]);
    }

    #[test]
    fn on_an_enterprise_host_a_reference_stays_there() {
        let found = closed_issues(&"ghe.example/o/r#7".parse().unwrap(), "fixes a/b#1, fixes #2", "");
        assert_eq!(found, ["ghe.example/a/b#1".parse().unwrap(), "ghe.example/o/r#2".parse().unwrap()]);
    }
}
