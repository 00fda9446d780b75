//! Where the configuration comes from: defaults, `$STATE_DIRECTORY`, one file, `USHER__SECTION__KEY` variables.
//!
//! Owns finding and reading the file, refusing what it does not know, and the order of precedence. It must not know
//! what a value means (`validate`). Kinds are checked here, before serde sees them, because the errors of the `config`
//! crate repeat the value and those of TOML print the source line (style 4.6), and both stop at the first.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use config::FileFormat;
use toml::{Table, Value};

use super::environment::Environment;
use super::raw::{Person, Raw};
use super::report::Report;
use super::secrets;

/// The prefix of variables that set a key. Two underscores, so that `USHER_SLACK_BOT_TOKEN` is not one of them.
const PREFIX: &str = "USHER__";

/// The file in the working directory, and the one of the machine.
const PLACES: [&str; 2] = ["config/usher.toml", "/etc/usher/usher.toml"];

/// Below this likeness a suggestion confuses more than it helps.
const ALIKE: f64 = 0.6;

/// Reads every source into one. What is wrong goes into the report, and its default stands in for it.
pub(super) fn read(named: Option<&Path>, environment: &Environment, report: &mut Report) -> Raw {
    let file = read_file(named, environment, report).unwrap_or_default();
    let known = table_of(&Raw::default());
    let file = known_only(file, &known, "", report);
    merge(&file, environment, &known, report).unwrap_or_else(|_| {
        report.other(
            "the configuration could not be put together: please report this with the output of `usher config show`",
        );
        Raw::default()
    })
}

fn read_file(named: Option<&Path>, environment: &Environment, report: &mut Report) -> Option<Table> {
    let path = find_file(named, environment)?;
    let shown = path.display().to_string();
    report.file = Some(shown.clone());
    match std::fs::read_to_string(environment.directory().join(&path)) {
        Ok(text) => parse(&text, &shown, report),
        Err(error) => {
            report.other(format_args!("{shown}: cannot be read ({}): name a file that usher may read", error.kind()));
            None
        }
    }
}

/// The named file, whether it exists or not; else the first place where there is one.
fn find_file(named: Option<&Path>, environment: &Environment) -> Option<PathBuf> {
    let named = named.map(Path::to_owned).or_else(|| environment.get("USHER_CONFIG").map(PathBuf::from));
    let there = |place: &&str| {
        let found = std::fs::metadata(environment.directory().join(place));
        !found.is_err_and(|error| matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory))
    };
    named.or_else(|| PLACES.iter().find(|place| there(place)).map(PathBuf::from))
}

/// The places that are looked at, for a finding.
pub(super) fn places() -> String {
    format!("--config, $USHER_CONFIG, {}", PLACES.join(", "))
}

fn parse(text: &str, shown: &str, report: &mut Report) -> Option<Table> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    match text.parse::<Table>() {
        Ok(table) => Some(table),
        Err(error) => {
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or(text);
            let line = before.matches('\n').count() + 1;
            let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
            report.other(format_args!(
                "{shown}: line {line}, column {column} is not TOML: expected [section] or key = value, texts in double \
                 quotes, each key once"
            ));
            None
        }
    }
}

/// A structure as a TOML table.
pub(super) fn table_of(value: &impl serde::Serialize) -> Table {
    Table::try_from(value).unwrap_or_default()
}

/// What is known and of the right kind; the rest is reported.
fn known_only(table: Table, known: &Table, section: &str, report: &mut Report) -> Table {
    let mut kept = Table::new();
    for (name, value) in table {
        let key = join(section, &name);
        if let Some(value) = known_value(value, known, &name, &key, report) {
            kept.insert(name, value);
        }
    }
    kept
}

fn known_value(value: Value, known: &Table, name: &str, key: &str, report: &mut Report) -> Option<Value> {
    match (known.get(name), value) {
        (None, value) => {
            let sentence = unknown(key, &value);
            report.key(&secrets::shown_name(key), sentence);
            None
        }
        (Some(Value::Table(inner)), Value::Table(table)) => Some(Value::Table(known_only(table, inner, key, report))),
        (Some(Value::Array(_)), Value::Array(people)) if key == "people" => Some(known_people(people, report)),
        (Some(expected), value) => match wrong(&value, expected, key) {
            None => Some(value),
            Some(sentence) => {
                report.key(key, sentence);
                None
            }
        },
    }
}

fn known_people(people: Vec<Value>, report: &mut Report) -> Value {
    let known = table_of(&Person::default());
    let mut kept = Vec::new();
    for (index, person) in people.into_iter().enumerate() {
        let key = person_key(index);
        match person {
            Value::Table(table) => kept.push(Value::Table(known_only(table, &known, &key, report))),
            _ => report.key(&key, "is not a person: write [[people]] and, below it, name, github, slack"),
        }
    }
    Value::Array(kept)
}

/// How an entry of `[[people]]` is named to a person, who counts from one.
pub(super) fn person_key(index: usize) -> String {
    format!("people[{}]", index + 1)
}

/// What is wrong with a value whose key is known.
fn wrong(value: &Value, expected: &Value, key: &str) -> Option<String> {
    if holds_secret(value) {
        return Some(secrets::NOT_HERE.to_owned());
    }
    let is_list_of_texts = value.as_array().is_some_and(|list| list.iter().all(Value::is_str));
    let right = if expected.is_array() { is_list_of_texts } else { value.same_type(expected) };
    (!right).then(|| kind(expected, key))
}

fn holds_secret(value: &Value) -> bool {
    match value {
        Value::String(text) => secrets::looks_like_one(text),
        Value::Array(list) => list.iter().any(holds_secret),
        Value::Table(table) => table.values().any(holds_secret),
        _ => false,
    }
}

/// The form that a key wants, by the kind of its default.
fn kind(expected: &Value, key: &str) -> String {
    match expected {
        Value::Boolean(_) => "must be true or false".to_owned(),
        Value::Integer(_) => "must be a whole number".to_owned(),
        Value::Array(_) if key == "people" => "must be entries of their own: write [[people]] before each".to_owned(),
        Value::Array(_) => "must be a list of texts, such as [\"one\", \"two\"]".to_owned(),
        Value::Table(_) => format!("is a section: write [{key}] and its keys below"),
        Value::String(default) if default.is_empty() => "must be a text in double quotes".to_owned(),
        Value::String(default) => format!("must be a text in double quotes, such as \"{default}\""),
        Value::Float(_) | Value::Datetime(_) => "must be a number".to_owned(),
    }
}

/// Why an unknown key is refused: a secret, a misspelling, or nothing that usher has.
fn unknown(key: &str, value: &Value) -> String {
    if holds_secret(value) || secrets::names_one(key) || secrets::looks_like_one(key) {
        return secrets::NOT_HERE.to_owned();
    }
    match nearest(key) {
        Some(known) => format!("is not a key of usher: the nearest is {known}"),
        None => "is not a key of usher: docs/configuration.md lists them".to_owned(),
    }
}

/// The known key that is most alike, one of the same name before all others.
fn nearest(key: &str) -> Option<String> {
    let likeness = |known: &String| strsim::normalized_damerau_levenshtein(key, known);
    let most_alike = |keys: Vec<String>| keys.into_iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    let (same_name, others) = keys_beside(key).into_iter().partition(|known| name_of(known) == name_of(key));
    most_alike(same_name).or_else(|| most_alike(others).filter(|known| likeness(known) >= ALIKE))
}

/// Every known key, those of a person as they would be written in the same entry.
fn keys_beside(key: &str) -> Vec<String> {
    let mut keys = every_key(&table_of(&Raw::default()), "");
    if let Some((entry, _)) = key.split_once("].") {
        keys.extend(every_key(&table_of(&Person::default()), &format!("{entry}]")));
    }
    keys
}

fn name_of(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

/// Every key below a table, sections included, with its path.
pub(super) fn every_key(table: &Table, section: &str) -> Vec<String> {
    let mut keys = Vec::new();
    for (name, value) in table {
        let key = join(section, name);
        if let Value::Table(inner) = value {
            keys.extend(every_key(inner, &key));
        }
        keys.push(key);
    }
    keys
}

fn join(section: &str, name: &str) -> String {
    if section.is_empty() { name.to_owned() } else { format!("{section}.{name}") }
}

/// The sources in the order of precedence, the weakest first.
fn merge(
    file: &Table,
    environment: &Environment,
    known: &Table,
    report: &mut Report,
) -> Result<Raw, config::ConfigError> {
    let text = |table: &Table| config::File::from_str(&table.to_string(), FileFormat::Toml);
    let mut builder = config::Config::builder().add_source(text(known));
    // systemd lists several state directories with colons; the first one is the unit's own.
    if let Some(root) = environment.get("STATE_DIRECTORY").and_then(|list| list.split(':').next()) {
        builder = builder.add_source(text(&state_root(root)));
    }
    builder = builder.add_source(text(file));
    for (variable, written) in environment.with_prefix(PREFIX) {
        let key = variable.strip_prefix(PREFIX).unwrap_or_default().to_ascii_lowercase().replace("__", ".");
        report.variables.insert(key.clone(), secrets::shown_name(variable));
        match variable_value(&key, written, known) {
            Ok(value) => builder = builder.set_override(&key, value)?,
            Err(sentence) => report.key(&key, sentence),
        }
    }
    builder.build()?.try_deserialize()
}

fn state_root(root: &str) -> Table {
    let state = Table::from_iter([("root".to_owned(), Value::from(root))]);
    Table::from_iter([("state".to_owned(), Value::Table(state))])
}

/// A variable's text as the kind that its key has.
fn variable_value(key: &str, written: &str, known: &Table) -> Result<config::Value, String> {
    let whole = Value::Table(known.clone());
    let expected = key.split('.').try_fold(&whole, |at, name| at.get(name));
    let text = Value::from(written);
    let Some(expected) = expected else { return Err(unknown(key, &text)) };
    if holds_secret(&text) {
        return Err(secrets::NOT_HERE.to_owned());
    }
    match expected {
        Value::String(_) => Ok(written.into()),
        Value::Boolean(_) => written.parse::<bool>().map(Into::into).map_err(|_| kind(expected, key)),
        Value::Integer(_) => written.parse::<i64>().map(Into::into).map_err(|_| kind(expected, key)),
        Value::Array(_) if key != "people" => Ok(list(written).into()),
        _ => Err("cannot be set by a variable: only single keys can, write this one into the file".to_owned()),
    }
}

/// A list in a variable: entries between commas.
fn list(written: &str) -> Vec<String> {
    written.split(',').map(str::trim).filter(|entry| !entry.is_empty()).map(str::to_owned).collect()
}
