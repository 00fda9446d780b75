//! The problems of a configuration, all at once: one sentence each, naming the place a person has to change.
//!
//! Owns where a key came from. It must not know what is wrong with it, and no sentence repeats a value: whoever pastes
//! a token into the wrong key must not find it in the log (field report X7).

use std::collections::BTreeMap;
use std::fmt::Display;

use super::ConfigError;

/// What is wrong so far, and which key was set where.
#[derive(Debug, Default)]
pub(super) struct Report {
    /// The file, as it was named.
    pub(super) file: Option<String>,
    /// Key -> the environment variable that set it.
    pub(super) variables: BTreeMap<String, String>,
    problems: Vec<String>,
}

impl Report {
    /// Something is wrong with a key; the sentence begins with its verb.
    pub(super) fn key(&mut self, key: &str, sentence: impl Display) {
        match (self.variables.get(key), &self.file) {
            (Some(variable), _) => self.problems.push(format!("{variable} {sentence}")),
            (None, Some(file)) => self.problems.push(format!("{file}: {key} {sentence}")),
            (None, None) => self.problems.push(format!("{key} {sentence}")),
        }
    }

    /// Something is wrong that has no key.
    pub(super) fn other(&mut self, sentence: impl Display) {
        self.problems.push(sentence.to_string());
    }

    /// The outcome: what was built, if nothing is wrong.
    pub(super) fn finish<T>(self, built: T) -> Result<T, ConfigError> {
        if self.problems.is_empty() { Ok(built) } else { Err(ConfigError(self.problems)) }
    }
}
