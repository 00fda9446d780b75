//! The written configuration against the code: `config/usher.toml` and `docs/configuration.md` have every key, with its
//! default, and no other.

use std::collections::BTreeMap;

use toml::{Table, Value};

use super::raw::{Person, Raw};
use super::{Config, Environment, sources};

const EXAMPLE: &str = include_str!("../../config/usher.toml");
const DOCUMENT: &str = include_str!("../../docs/configuration.md");

/// The example with every setting switched on: `#key = value` and `#[[people]]`, where prose is `# like this`.
fn switched_on() -> String {
    let on =
        |line: &'static str| line.strip_prefix('#').filter(|rest| !rest.starts_with([' ', '#']) && !rest.is_empty());
    EXAMPLE.lines().map(|line| on(line).unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

/// Key -> value, written as TOML.
fn settings(table: &Table, section: &str) -> BTreeMap<String, String> {
    let mut settings = BTreeMap::new();
    for (name, value) in table {
        let key = if section.is_empty() { name.clone() } else { format!("{section}.{name}") };
        match value {
            Value::Table(inner) => settings.extend(self::settings(inner, &key)),
            value => drop(settings.insert(key, value.to_string())),
        }
    }
    settings
}

/// The defaults, without the people.
fn defaults() -> BTreeMap<String, String> {
    let mut table = sources::table_of(&Raw::default());
    table.remove("people");
    settings(&table, "")
}

#[test]
fn the_example_has_every_key_with_its_default() {
    let mut table: Table = switched_on().parse().unwrap();
    let people = table.remove("people").unwrap();
    assert_eq!(settings(&table, ""), defaults());
    let person = people.as_array().unwrap()[0].as_table().unwrap();
    assert_eq!(sources::every_key(person, ""), sources::every_key(&sources::table_of(&Person::default()), ""));
}

#[test]
fn the_example_is_safe_to_copy_and_valid_when_switched_on() {
    for (text, people) in [(EXAMPLE.to_owned(), 0), (switched_on(), 1)] {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("config")).unwrap();
        std::fs::write(directory.path().join("config/usher.toml"), text).unwrap();
        let config = Config::load(None, &Environment::new([("HOME", "/home/u")], directory.path())).unwrap();
        assert_eq!(config.people.len(), people);
    }
}

#[test]
fn the_documentation_has_every_key_with_its_default() {
    let mut documented = BTreeMap::new();
    let mut section = "";
    for line in DOCUMENT.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            section = heading.trim_matches(['`', '[', ']']);
        }
        let cells: Vec<&str> = line.split(" | ").map(|cell| cell.trim_matches(['|', ' '])).collect();
        if let [key, default, _] = cells[..]
            && let Some(key) = key.strip_prefix('`').and_then(|key| key.strip_suffix('`'))
            && !section.contains(' ')
        {
            documented.insert(format!("{section}.{key}"), default.trim_matches('`').to_owned());
        }
    }
    let mut expected = defaults();
    expected.extend(settings(&sources::table_of(&Person::default()), "people"));
    expected.insert("people.name".to_owned(), "none".to_owned());
    assert_eq!(documented, expected);
}
