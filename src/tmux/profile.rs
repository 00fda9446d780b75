//! Agent profiles: what usher knows about each agent's terminal, as data.
//!
//! Owns the format of `config/agents.toml` and the questions asked of a profile. What a profile only names (Claude's state
//! file, its transcript, its prompt box) is code in the neighbouring files. Pure.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::core::delivery::{ImageLimits, Manner};
use crate::core::pane_text::PlainLimit;
use anyhow::Context as _;
use serde::Deserialize;

/// The profiles that usher is built with.
const BUILT_IN: &str = include_str!("../../config/agents.toml");

/// All profiles, and what none of them may type into.
#[derive(Debug, Clone)]
pub struct Profiles {
    shells: Arc<[String]>,
    never: Arc<[String]>,
    agents: BTreeMap<String, Arc<Profile>>,
}

/// One agent's terminal.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    #[serde(skip)]
    name: String,
    commands: Vec<String>,
    #[serde(default)]
    interpreters: Vec<String>,
    #[serde(default)]
    pub(super) state: Option<State>,
    #[serde(default)]
    pub(super) evidence: Option<EvidenceSource>,
    #[serde(default)]
    pub(super) composer: Option<Composer>,
    #[serde(default)]
    pub(super) empty_composer: Option<String>,
    #[serde(default)]
    pub(super) placeholder: Option<String>,
    submit: Vec<String>,
    settle_ms: u64,
    #[serde(default)]
    chord: Option<Chord>,
    #[serde(default)]
    pub(super) stash: Option<Stash>,
    #[serde(default)]
    plain_words: Option<PlainWords>,
    #[serde(default)]
    images: Option<Images>,
    #[serde(default)]
    pub(super) dialog_titles: Vec<String>,
    #[serde(default)]
    pub(super) dialog_screens: Vec<String>,
    #[serde(default)]
    busy: Option<Busy>,
}

/// How the agent tells its state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum State {
    /// `sessions/<pid>.json` of Claude Code.
    ClaudeSessions,
}

/// Where durable evidence of a submission is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum EvidenceSource {
    /// The session's JSONL transcript of Claude Code.
    ClaudeTranscript,
}

/// How the agent's composer is read from the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Composer {
    /// The prompt box of Claude Code.
    ClaudeBox,
}

/// A key combination that only submits: inert in dialogs.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Chord {
    keys: Vec<String>,
    since: String,
}

/// A key that puts a half-typed line away until the next submit.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Stash {
    /// The key.
    pub(super) keys: Vec<String>,
    /// What the screen shows while a line is put away.
    pub(super) taken: String,
}

/// The largest paste that the agent takes as the person's own words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlainWords {
    lines: usize,
    characters: usize,
}

/// The largest picture that the agent opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Images {
    side: u32,
    bytes: u64,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Busy {
    title_spinner: bool,
    keys: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    shells: Vec<String>,
    never: Vec<String>,
    agents: BTreeMap<String, Profile>,
}

impl Profiles {
    /// The profiles that usher is built with.
    pub fn built_in() -> anyhow::Result<Self> {
        Self::parse(BUILT_IN).context("the built-in agent profiles are damaged")
    }

    /// Reads profiles in the format of `config/agents.toml`. An unknown key is an error: a misspelt guard would be none.
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        let file: File = toml::from_str(text).context("agents.toml cannot be read")?;
        let named = |(name, profile): (String, Profile)| (name.clone(), Arc::new(Profile { name, ..profile }));
        let agents = file.agents.into_iter().map(named).collect();
        Ok(Self { shells: file.shells.into(), never: file.never.into(), agents })
    }

    /// The profile of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<Profile>> {
        self.agents.get(name)
    }

    /// The names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.agents.keys().map(String::as_str)
    }

    /// The profile whose agent is in front.
    pub(super) fn recognise(&self, command: &str, arguments: &[String]) -> Option<&Arc<Profile>> {
        self.agents.values().find(|profile| !profile.commands.is_empty() && profile.is_in_front(command, arguments))
    }

    /// Whether this foreground program is a shell; a login shell's name begins with `-`.
    pub(super) fn is_shell(&self, command: &str) -> bool {
        let bare = command.trim_start_matches('-');
        self.shells.iter().any(|name| name == bare)
    }

    /// Whether this foreground program is an editor, a pager or the like.
    pub(super) fn forbids(&self, command: &str) -> bool {
        self.never.iter().any(|name| name == command)
    }
}

impl Profile {
    /// The profile's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How the agent wants to be written to.
    pub fn manner(&self) -> Manner {
        let plain = self.plain_words.map(|limit| PlainLimit { lines: limit.lines, chars: limit.characters });
        let images = self.images.map(|limit| ImageLimits { max_side: limit.side, max_bytes: limit.bytes });
        Manner { plain, images }
    }

    /// Whether this foreground program is the agent: by its name, or as a script of an interpreter.
    pub(super) fn is_in_front(&self, command: &str, arguments: &[String]) -> bool {
        let is_ours = |name: &str| self.commands.iter().any(|ours| ours == name);
        let interpreted = self.interpreters.iter().any(|name| name == command);
        self.commands.is_empty()
            || is_ours(command)
            || (interpreted && arguments.iter().filter_map(|argument| script_name(argument)).any(is_ours))
    }

    /// Whether nothing that the agent shows or writes is judged.
    pub(super) fn is_blind(&self) -> bool {
        let reads_screen = self.composer.is_some() || self.empty_composer.is_some() || !self.dialog_screens.is_empty();
        let reads_title = self.busy.is_some() || !self.dialog_titles.is_empty();
        !reads_screen && !reads_title && self.state.is_none() && self.interpreters.is_empty()
    }

    /// The time between the paste and the key.
    pub(super) fn settle(&self) -> Duration {
        Duration::from_millis(self.settle_ms)
    }

    /// The keys that submit, all in one call.
    pub(super) fn submit_keys(&self, agent_version: Option<&str>, title: &str) -> &[String] {
        let chord = self.chord.as_ref().filter(|chord| is_at_least(agent_version, &chord.since));
        let busy = self.busy.as_ref().filter(|busy| busy.title_spinner && title.starts_with(is_braille));
        match (chord, busy) {
            (Some(chord), _) => &chord.keys,
            (None, Some(busy)) => &busy.keys,
            (None, None) => &self.submit,
        }
    }
}

fn script_name(argument: &str) -> Option<&str> {
    Path::new(argument).file_stem()?.to_str()
}

fn is_braille(c: char) -> bool {
    ('\u{2801}'..='\u{28ff}').contains(&c)
}

/// Compares dotted versions; one that cannot be read counts as older, which means the plain key.
fn is_at_least(version: Option<&str>, least: &str) -> bool {
    let numbers = |text: &str| text.split('.').map(str::parse).collect::<Result<Vec<u32>, _>>().ok();
    match (version.and_then(numbers), numbers(least)) {
        (Some(version), Some(least)) => version >= least,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(agent: &str, version: Option<&str>, title: &str) -> String {
        Profiles::built_in().unwrap().get(agent).unwrap().submit_keys(version, title).join(" ")
    }

    #[test]
    fn the_built_in_profiles_are_whole() {
        let profiles = Profiles::built_in().unwrap();
        let names: Vec<&str> = profiles.names().collect();
        assert_eq!(names, ["aider", "claude", "codex", "gemini", "generic", "opencode"]);
    }

    #[test]
    fn an_unknown_key_is_refused() {
        for text in [
            "shells = []\nnever = []\nagents = {}\nnevr = []",
            "shells = []\nnever = []\n[agents.x]\ncommands = []\nsubmit = []\nsettle_ms = 0\ndialog_title = []",
            "shells = []\nnever = []\n[agents.x]\ncommands = []\nsubmit = []\nsettle_ms = 0\nstate = \"guess\"",
            "shells = []\nnever = []\n[agents.x]\ncommands = []\nsubmit = []\nsettle_ms = 0\nstash = { keys = [], key = 1, taken = \"\" }",
        ] {
            assert!(Profiles::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_submit_key_follows_the_version_and_the_title() {
        assert_eq!(keys("claude", Some("2.1.332"), ""), "C-x Enter");
        assert_eq!(keys("claude", Some("2.10.0"), ""), "C-x Enter");
        assert_eq!(keys("claude", Some("3.0"), ""), "C-x Enter");
        assert_eq!(keys("claude", Some("2.1.197"), ""), "Enter");
        assert_eq!(keys("claude", Some("2.1.next"), ""), "Enter");
        assert_eq!(keys("claude", None, ""), "Enter");
        assert_eq!(keys("codex", None, "⠋ working"), "Tab");
        assert_eq!(keys("codex", None, "work"), "Enter");
    }

    #[test]
    fn the_agent_in_front_is_recognised() {
        let profiles = Profiles::built_in().unwrap();
        let check = |command: &str, arguments: &[&str], expected: Option<&str>| {
            let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
            assert_eq!(profiles.recognise(command, &arguments).map(|profile| profile.name()), expected, "{command}");
        };
        check("claude", &["claude"], Some("claude"));
        check("node", &["node", "/usr/bin/codex"], Some("codex"));
        check("node", &["node", "/opt/x/bin/codex.js", "resume"], Some("codex"));
        check("node", &["node", "/usr/bin/gemini"], Some("gemini"));
        check("python3", &["python3", "/home/d/.venv/bin/aider"], Some("aider"));
        check("node", &["node", "server.js"], None);
        check("bash", &["bash", "codex"], None);
        assert!(profiles.is_shell("-bash") && profiles.forbids("vim") && !profiles.forbids("claude"));
    }
}
