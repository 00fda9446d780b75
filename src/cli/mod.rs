//! The command line: one file a verb.
//!
//! Owns the verbs, their help and their exit codes: 0 done, 1 findings or a refusal, 2 usage or configuration. It must
//! not decide anything that the daemon decides.

mod bind;
mod inbox;
mod run;
mod show;

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{CommandFactory as _, Parser, Subcommand};
use clap_complete::Shell;
use serde::Serialize;

use crate::config::{Config, Environment};
use crate::core::session::{Listen, PaneId};
use crate::core::work_item::WorkItem;
use crate::layout::Layout;

/// Brings what people say on Slack and GitHub, words and files, to the tmux pane where a coding agent works.
#[derive(Debug, Parser)]
#[command(name = "usher", version, max_term_width = 100)]
struct Cli {
    /// The configuration file [default: $USHER_CONFIG, ./config/usher.toml, /etc/usher/usher.toml]
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Run the daemon (the default)
    Run,
    /// Check the world as at start and say what is missing
    Probe(Json),
    /// Bind a work item to the pane of its agent, and to a Slack conversation
    Bind(bind::Arguments),
    /// Take every binding of a work item away
    Unbind(Item),
    /// Show the bound panes and how they do
    Sessions(Json),
    /// Look at messages, try them again, or drop them
    Inbox {
        #[command(subcommand)]
        verb: Option<inbox::Verb>,
        #[command(flatten)]
        json: Json,
    },
    /// Show whether usher runs and how many messages are where
    Status(Json),
    /// Print the Slack app's manifest
    Manifest,
    /// Check or show the configuration
    Config {
        #[command(subcommand)]
        verb: ConfigVerb,
    },
    /// Show every path that usher writes, and why
    State,
    /// Print the completions of a shell
    Completions {
        /// Which shell
        shell: Shell,
    },
}

#[derive(Debug, Subcommand)]
enum ConfigVerb {
    /// Say every problem of the configuration
    Check,
    /// Print the configuration as it holds, secrets as set or unset
    Show,
}

#[derive(Debug, Clone, Copy, clap::Args)]
struct Json {
    /// Print JSON for machines
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct Item {
    /// owner/repo#12, or host/owner/repo#12 on an Enterprise host
    work_item: WorkItem,
    #[command(flatten)]
    json: Json,
}

/// How a verb ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    /// As asked.
    Well,
    /// With findings, or with a refusal that was said.
    WithFindings,
}

/// Parses, runs and answers with the exit code.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(usage) => {
            drop(usage.print());
            return if usage.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS };
        }
    };
    match answer(cli) {
        Ok(Ended::Well) => ExitCode::SUCCESS,
        Ok(Ended::WithFindings) => ExitCode::from(1),
        Err(Failure::Config(error)) => complain(&error.to_string(), 2),
        Err(Failure::Other(error)) => complain(&format!("{error:#}"), 1),
    }
}

/// Why a verb did not end: a configuration that cannot be used has an exit code of its own.
enum Failure {
    Config(anyhow::Error),
    Other(anyhow::Error),
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::Other(error)
    }
}

fn answer(cli: Cli) -> Result<Ended, Failure> {
    match cli.verb {
        Some(Verb::Manifest) => return Ok(print(include_str!("../../manifest/slack-app.yaml"))?),
        Some(Verb::Completions { shell }) => {
            clap_complete::generate(shell, &mut Cli::command(), "usher", &mut io::stdout());
            return Ok(Ended::Well);
        }
        _ => {}
    }
    let environment = Environment::of_this_process()?;
    let config = Config::load(cli.config.as_deref(), &environment).map_err(|error| Failure::Config(error.into()))?;
    Ok(with_config(cli.verb.unwrap_or(Verb::Run), config)?)
}

fn with_config(verb: Verb, config: Config) -> anyhow::Result<Ended> {
    match verb {
        Verb::Run => run::daemon(config),
        Verb::Probe(json) => run::probe(&config, json),
        Verb::Bind(arguments) => bind::bind(&config, &arguments),
        Verb::Unbind(item) => bind::unbind(&config, &item),
        Verb::Sessions(json) => show::sessions(&config, json),
        Verb::Inbox { verb, json } => inbox::answer(&config, verb.unwrap_or_default(), json),
        Verb::Status(json) => show::status(&config, json),
        Verb::Config { verb: ConfigVerb::Check } => print("the configuration is valid\n"),
        Verb::Config { verb: ConfigVerb::Show } => print(&config.show()),
        Verb::State => print(&Layout::new(&config.state.root).table()),
        Verb::Manifest | Verb::Completions { .. } => Ok(Ended::Well),
    }
}

/// Prints text for people. A reader that went away (`| head`) is no error.
fn print(text: &str) -> anyhow::Result<Ended> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(error).context("standard output cannot be written")
        }
        _ => Ok(Ended::Well),
    }
}

/// Prints a value as JSON, or as text for people.
fn print_as<T: Serialize>(json: Json, value: &T, text: impl FnOnce(&T) -> String) -> anyhow::Result<Ended> {
    if json.json { print(&format!("{}\n", serde_json::to_string_pretty(value)?)) } else { print(&text(value)) }
}

fn complain(text: &str, code: u8) -> ExitCode {
    // Nobody is left to tell when standard error is closed.
    drop(writeln!(io::stderr(), "usher: {text}"));
    ExitCode::from(code)
}

/// A runtime for verbs that talk to the world for a moment.
fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("no runtime could be started")?;
    runtime.block_on(work)
}

/// `--listen`, as clap reads it.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum ListenArgument {
    /// Only messages that mention usher
    Mentions,
    /// Every message
    All,
}

impl From<ListenArgument> for Listen {
    fn from(argument: ListenArgument) -> Self {
        match argument {
            ListenArgument::Mentions => Self::Mentions,
            ListenArgument::All => Self::All,
        }
    }
}

/// The store, as the verbs open it beside a running daemon.
fn open_inbox(config: &Config) -> anyhow::Result<(Layout, crate::inbox::Inbox)> {
    let layout = Layout::new(&config.state.root);
    layout.prepare()?;
    let (inbox, _thread) = crate::inbox::Inbox::open(&layout.database())?;
    Ok((layout, inbox))
}

fn pane_id(text: &str) -> Result<PaneId, String> {
    text.parse::<PaneId>().map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_help_is_the_manual() {
        insta::assert_snapshot!(Cli::command().render_help(), @"
        Brings what people say on Slack and GitHub, words and files, to the tmux pane where a coding agent
        works

        Usage: usher [OPTIONS] [COMMAND]

        Commands:
          run          Run the daemon (the default)
          probe        Check the world as at start and say what is missing
          bind         Bind a work item to the pane of its agent, and to a Slack conversation
          unbind       Take every binding of a work item away
          sessions     Show the bound panes and how they do
          inbox        Look at messages, try them again, or drop them
          status       Show whether usher runs and how many messages are where
          manifest     Print the Slack app's manifest
          config       Check or show the configuration
          state        Show every path that usher writes, and why
          completions  Print the completions of a shell
          help         Print this message or the help of the given subcommand(s)

        Options:
              --config <FILE>  The configuration file [default: $USHER_CONFIG, ./config/usher.toml,
                               /etc/usher/usher.toml]
          -h, --help           Print help
          -V, --version        Print version
        ");
    }
}
