//! What configuration reads of the process: its variables and its working directory.
//!
//! Owns the only `std::env` access of usher. It must not know what a variable means. No `Debug`: it holds tokens.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// The variables and the working directory of a process.
pub struct Environment {
    variables: BTreeMap<String, String>,
    directory: PathBuf,
}

impl Environment {
    /// That of this process. A variable that is not UTF-8 counts as unset.
    pub fn of_this_process() -> anyhow::Result<Self> {
        let directory =
            env::current_dir().context("the working directory is gone: start usher from one that exists")?;
        let variables =
            env::vars_os().filter_map(|(name, value)| name.into_string().ok().zip(value.into_string().ok()));
        Ok(Self { variables: variables.collect(), directory })
    }

    /// One made of these variables, in this directory.
    pub fn new<N: Into<String>, V: Into<String>>(
        variables: impl IntoIterator<Item = (N, V)>,
        directory: impl Into<PathBuf>,
    ) -> Self {
        let variables = variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        Self { variables, directory: directory.into() }
    }

    /// A variable; an empty one counts as unset, as everywhere on a command line.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The variables that begin with `prefix`, empty ones included, in the order of their names.
    pub(super) fn with_prefix(&self, prefix: &str) -> impl Iterator<Item = (&str, &str)> {
        self.variables.iter().filter(move |(name, _)| name.starts_with(prefix)).map(|(name, value)| (&**name, &**value))
    }

    /// The working directory.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }
}
