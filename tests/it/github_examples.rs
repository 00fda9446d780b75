//! The payloads that GitHub's users collected: the npm package `@octokit/webhooks-examples`, read at test time.
//!
//! It is put below `target/` by `npm i`, or found where `$USHER_GITHUB_EXAMPLES` says. Where neither is possible the test
//! passes and says why: it needs the network, and the other stories do not.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use usher::github::event::{Own, PassedOver, Scope, What, read};

const PACKAGE: &str = "@octokit/webhooks-examples@7";

#[test]
fn every_collected_payload_is_a_message_or_passed_over_for_a_reason() {
    let files = match examples() {
        Ok(files) => files,
        Err(reason) => return say(&format!("skipped: {reason}")),
    };
    let mut outcomes = BTreeMap::<String, usize>::new();
    for file in &files {
        for (event, payload) in payloads(file) {
            *outcomes.entry(outcome(&event, &payload)).or_default() += 1;
        }
    }
    let total: usize = outcomes.values().sum();
    say(&format!("{total} payloads in {} files: {outcomes:#?}", files.len()));
    assert!(total >= 300, "{outcomes:?}");
    for heard in ["issues", "issue_comment", "pull_request", "pull_request_review", "pull_request_review_comment"] {
        assert!(outcomes.contains_key(&format!("{heard} message")), "{heard}: {outcomes:?}");
        assert!(!outcomes.contains_key(&format!("{heard} {}", PassedOver::Unreadable.code())), "{heard}: {outcomes:?}");
    }
}

/// `EVENT message`, `EVENT REASON`, or only the reason for events that usher does not know.
fn outcome(event: &str, payload: &Value) -> String {
    let repository = payload["repository"]["full_name"].as_str().unwrap_or_default().to_lowercase();
    let repositories = [repository];
    let scope = Scope { host: None, repositories: &repositories };
    match read(event, payload, scope, &Own::default()) {
        What::Message(_) => format!("{event} message"),
        What::PassedOver(PassedOver::OtherEvent) => PassedOver::OtherEvent.code().to_owned(),
        What::PassedOver(why) => format!("{event} {}", why.code()),
    }
}

fn payloads(file: &Path) -> Vec<(String, Value)> {
    let text = std::fs::read_to_string(file).unwrap();
    let events: Vec<Value> = serde_json::from_str(&text).unwrap();
    let named = |event: Value| {
        let name = event["name"].as_str().unwrap_or_default().to_owned();
        let examples = event["examples"].as_array().cloned().unwrap_or_default();
        examples.into_iter().map(move |payload| (name.clone(), payload))
    };
    events.into_iter().flat_map(named).collect()
}

/// The package's files, one for github.com and for each generation of Enterprise hosts.
fn examples() -> Result<Vec<PathBuf>, String> {
    let package = match std::env::var_os("USHER_GITHUB_EXAMPLES") {
        Some(path) => PathBuf::from(path),
        None => installed()?,
    };
    let hosts = std::fs::read_dir(&package).map_err(|error| format!("{}: {error}", package.display()))?;
    let files: Vec<_> = hosts.flatten().map(|host| host.path().join("index.json")).filter(|it| it.is_file()).collect();
    if files.is_empty() { Err(format!("there are no payloads in {}", package.display())) } else { Ok(files) }
}

fn installed() -> Result<PathBuf, String> {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("github-examples");
    let package = root.join("node_modules/@octokit/webhooks-examples");
    if !package.is_dir() {
        std::fs::create_dir_all(&root).map_err(|error| error.to_string())?;
        install(&root)?;
    }
    Ok(package)
}

fn install(root: &Path) -> Result<(), String> {
    let mut npm = Command::new("npm");
    npm.args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=0", "--fetch-timeout=20000"]);
    let output = npm.arg("--prefix").arg(root).arg(PACKAGE).output();
    let output = output.map_err(|error| format!("npm cannot be started: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    output.status.success().then_some(()).ok_or_else(|| format!("npm could not install {PACKAGE}: {said}"))
}

#[expect(clippy::print_stdout, reason = "what was read, or why nothing was, is for whoever runs the test")]
fn say(words: &str) {
    println!("{words}");
}
