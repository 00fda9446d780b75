//! The rooms of the house: what each may import and touch (docs/architecture.md). A broken rule names its file and line.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Which rooms each room may import, itself aside. A room that is not here does not exist.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("core", &[]),
    ("net", &[]),
    ("serve", &[]),
    ("layout", &["core"]),
    ("config", &["core"]),
    ("telemetry", &["config"]),
    ("inbox", &["core"]),
    ("fetch", &["core", "net"]),
    ("tmux", &["core"]),
    ("slack", &["core", "net", "inbox"]),
    ("github", &["core", "net", "inbox"]),
    ("pipeline", &["core", "inbox", "fetch", "tmux", "config", "layout", "slack", "github"]),
    ("clients", &["config", "net", "slack", "github", "tmux"]),
    ("probe", &["core", "config", "layout", "clients", "inbox", "slack", "github", "tmux"]),
    ("health", &["inbox", "slack", "github"]),
    (
        "daemon",
        &[
            "core", "config", "layout", "clients", "probe", "inbox", "fetch", "slack", "github", "tmux", "pipeline",
            "serve", "health",
        ],
    ),
    ("cli", &["core", "config", "layout", "clients", "probe", "inbox", "slack", "tmux", "telemetry", "daemon"]),
];

/// What a piece of source may stand in, and why nowhere else.
const ONLY_IN: &[(&str, &[&str], &str)] = &[
    ("std::env", &["src/config/environment.rs"], "what is set outside comes in through the configuration"),
    ("env::var", &["src/config/environment.rs"], "what is set outside comes in through the configuration"),
    ("Command::new", &["src/tmux/command.rs"], "no other process is started than tmux"),
    ("Client::builder", &["src/net.rs"], "one HTTP client: one proxy, one trust store, no redirects"),
    ("Client::new", &["src/net.rs"], "one HTTP client: one proxy, one trust store, no redirects"),
    ("reqwest::get", &[], "one HTTP client: one proxy, one trust store, no redirects"),
    ("TcpStream", &["src/serve.rs"], "one HTTP client: one proxy, one trust store; one accept loop"),
    ("Connection::open", &["src/inbox/mod.rs"], "one connection to the database, on one thread"),
    ("cfg!(test)", &[], "tests swap the world, not the code"),
    ("cfg(debug_assertions)", &[], "tests swap the world, not the code"),
    ("#[ignore", &[], "a test that does not run proves nothing"),
    ("thread::sleep", &[], "a sleeping thread serves nobody"),
];

/// What the pure room may not touch: its inputs are arguments, its outcome is a value.
const NOT_IN_CORE: &[&str] = &[
    "tokio",
    "reqwest",
    "rusqlite",
    "tracing",
    "std::fs",
    "std::env",
    "std::net",
    "std::process",
    "std::thread",
    "Instant::now",
    "SystemTime",
    "Timestamp::now",
    "Zoned::now",
    "getrandom",
    "async fn",
];

/// A source file of the binary, without comments and test modules, one entry a line so that numbers stay right.
struct Source {
    path: String,
    opening: String,
    lines: Vec<String>,
}

#[test]
fn each_room_imports_only_what_it_may() {
    let may: BTreeMap<&str, BTreeSet<&str>> =
        MAY_IMPORT.iter().map(|(room, others)| (*room, others.iter().copied().collect())).collect();
    let mut broken = Vec::new();
    for source in sources().iter().filter(|source| !is_root(source)) {
        let room = room(&source.path);
        let Some(allowed) = may.get(room) else {
            broken.push(format!("{}: the room {room} is not in the table", source.path));
            continue;
        };
        for (line, other) in imports(source) {
            if other != room && !allowed.contains(other.as_str()) {
                broken.push(format!("{}:{line}: {room} may not import {other}", source.path));
            }
        }
    }
    assert_tidy(&broken);
}

#[test]
fn the_table_of_imports_has_no_circle_and_no_room_that_is_gone() {
    let rooms: BTreeSet<String> =
        sources().iter().filter(|source| !is_root(source)).map(|source| room(&source.path).to_owned()).collect();
    let mut built: BTreeSet<&str> = BTreeSet::new();
    let mut left: Vec<_> = MAY_IMPORT.to_vec();
    while !left.is_empty() {
        let before = left.len();
        left.retain(|(room, others)| {
            let ready = others.iter().all(|other| built.contains(other));
            if ready {
                built.insert(room);
            }
            !ready
        });
        assert!(left.len() < before, "these import each other: {left:?}");
    }
    assert_eq!(built.into_iter().map(str::to_owned).collect::<BTreeSet<_>>(), rooms);
}

#[test]
fn core_is_pure() {
    let pure = |source: &&Source| source.path.starts_with("src/core");
    let all = sources();
    let broken: Vec<String> =
        all.iter().filter(pure).flat_map(|source| NOT_IN_CORE.iter().flat_map(|word| finds(source, word))).collect();
    assert_tidy(&broken);
}

#[test]
fn each_door_to_the_outside_is_in_one_room() {
    let mut broken = Vec::new();
    for source in sources() {
        for (word, rooms, why) in ONLY_IN.iter().filter(|(_, rooms, _)| !rooms.contains(&source.path.as_str())) {
            let allowed = if rooms.is_empty() { "nowhere".to_owned() } else { rooms.join(", ") };
            broken.extend(finds(&source, word).iter().map(|found| format!("{found} (only in {allowed}: {why})")));
        }
    }
    assert_tidy(&broken);
}

#[test]
fn a_door_that_is_listed_is_still_there() {
    let all = sources();
    let is_used =
        |word: &str, room: &str| all.iter().any(|source| source.path == room && !finds(source, word).is_empty());
    let unused: Vec<String> = ONLY_IN
        .iter()
        .flat_map(|(word, rooms, _)| rooms.iter().map(move |room| (*word, *room)))
        .filter(|(word, room)| !["env::var", "Client::new"].contains(word) && !is_used(word, room))
        .map(|(word, room)| format!("{room} has no {word} any more"))
        .collect();
    assert_tidy(&unused);
}

#[test]
fn every_module_says_first_what_it_owns() {
    let missing: Vec<String> = sources()
        .iter()
        .filter(|source| !source.opening.starts_with("//! "))
        .map(|source| format!("{}:1: it does not open with //!", source.path))
        .collect();
    assert_tidy(&missing);
}

#[test]
fn every_room_stands_on_the_map() {
    let map = read(&root().join("docs/architecture.md"));
    let missing: Vec<&str> =
        MAY_IMPORT.iter().map(|(room, _)| *room).filter(|room| !map.contains(&format!("`{room}`"))).collect();
    assert!(missing.is_empty(), "docs/architecture.md does not name {missing:?}");
}

#[test]
fn every_test_that_the_security_page_names_exists() {
    let page = read(&root().join("docs/security.md"));
    let tests: String =
        files_below(&root().join("tests")).chain(files_below(&root().join("src"))).map(|path| read(&path)).collect();
    let named: Vec<&str> =
        page.split('`').skip(1).step_by(2).filter(|word| word.contains('_') && word.matches('_').count() > 3).collect();
    assert!(!named.is_empty(), "docs/security.md names no test");
    let gone: Vec<&&str> = named.iter().filter(|name| !tests.contains(&format!("fn {name}("))).collect();
    assert!(gone.is_empty(), "docs/security.md names tests that are not there: {gone:#?}");
}

#[test]
fn the_reading_of_sources_sees_imports_and_passes_over_tests_and_comments() {
    let source = Source::read(
        "src/slack/x.rs",
        "//! Owns x.\nuse crate::core::act;\n/// See [`crate::tmux`].\nuse crate::{\n    github,\n    net::{Net, inbox},\n};\n\
         let url = \"https://x/crate::daemon\"; // crate::cli\nlet a: crate::fetch::F;\n#[cfg(test)]\nmod tests {\n    use crate::cli;\n}\nuse crate::inbox;\n",
    );
    let found: Vec<String> = imports(&source).into_iter().map(|(line, room)| format!("{line} {room}")).collect();
    assert_eq!(found, ["2 core", "4 github", "4 net", "8 daemon", "9 fetch", "14 inbox"]);
}

impl Source {
    fn read(path: &str, text: &str) -> Self {
        let opening = text.lines().next().unwrap_or_default().to_owned();
        let mut lines = Vec::new();
        let mut in_tests = false;
        let mut next_is_test = false;
        for line in text.lines() {
            let starts = next_is_test && line.starts_with("mod ") && line.ends_with('{');
            next_is_test = line.starts_with("#[cfg(test)]");
            in_tests |= starts;
            lines.push(if in_tests { String::new() } else { without_comment(line).to_owned() });
            in_tests &= line != "}";
        }
        Self { path: path.to_owned(), opening, lines }
    }
}

fn without_comment(line: &str) -> &str {
    match line.find("//") {
        Some(at) if !line[..at].ends_with(':') => &line[..at],
        Some(at) => &line[..at + 2 + without_comment(&line[at + 2..]).len()],
        None => line,
    }
}

/// The rooms that a file names, with the line: `crate::x`, and each branch of `crate::{x, y::{z}}`.
fn imports(source: &Source) -> Vec<(usize, String)> {
    let text = source.lines.join("\n");
    let mut found = Vec::new();
    for (at, _) in text.match_indices("crate::") {
        let line = text[..at].matches('\n').count() + 1;
        let rest = &text[at + "crate::".len()..];
        let named = match rest.strip_prefix('{') {
            Some(group) => branches(group),
            None => vec![word(rest)],
        };
        found.extend(named.into_iter().map(|room| (line, room.to_owned())));
    }
    found
}

/// The first word of each branch of a group, up to its closing brace.
fn branches(group: &str) -> Vec<&str> {
    let (mut depth, mut start, mut found) = (0, 0, Vec::new());
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => {
                found.push(word(group[start..at].trim_start()));
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                found.push(word(group[start..at].trim_start()));
                start = at + 1;
            }
            _ => {}
        }
    }
    found.retain(|word| !word.is_empty());
    found
}

fn word(text: &str) -> &str {
    text.split(|c: char| c != '_' && !c.is_alphanumeric()).next().unwrap_or_default()
}

/// `path:line` of each place where a word stands.
fn finds(source: &Source, word: &str) -> Vec<String> {
    let numbered = source.lines.iter().enumerate();
    numbered
        .filter(|(_, line)| line.contains(word))
        .map(|(index, _)| format!("{}:{}: {word}", source.path, index + 1))
        .collect()
}

fn room(path: &str) -> &str {
    path.trim_start_matches("src/").split(['/', '.']).next().unwrap_or_default()
}

/// The two files that only say which rooms there are, and start the first.
fn is_root(source: &Source) -> bool {
    ["src/lib.rs", "src/main.rs"].contains(&source.path.as_str())
}

/// Every file of the binary; files that are tests as a whole are not.
fn sources() -> Vec<Source> {
    let source = |path: PathBuf| {
        let text = read(&path);
        Source::read(&path.strip_prefix(root()).unwrap().to_string_lossy(), &text)
    };
    files_below(&root().join("src")).map(source).filter(|source| !is_test_file(&source.path)).collect()
}

fn is_test_file(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.contains("/tests/")
}

fn files_below(directory: &Path) -> impl Iterator<Item = PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    assert!(!found.is_empty(), "{} has no sources", directory.display());
    found.into_iter()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn assert_tidy(broken: &[String]) {
    assert!(broken.is_empty(), "{} broken rules:\n{}", broken.len(), broken.join("\n"));
}
