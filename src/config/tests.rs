//! What a configuration may say, and every sentence about one that may not be.

use proptest::prelude::*;
use secrecy::ExposeSecret as _;

use super::*;
use crate::core::message::Person;

/// A working directory with this `config/usher.toml`.
fn directory_with(text: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("config")).unwrap();
    std::fs::write(directory.path().join("config/usher.toml"), text).unwrap();
    directory
}

fn load(text: &str, variables: &[(&str, &str)]) -> Result<Config, ConfigError> {
    let directory = directory_with(text);
    let home = [("HOME", "/home/u")];
    Config::load(None, &Environment::new(home.into_iter().chain(variables.iter().copied()), directory.path()))
}

/// Every sentence; none of them repeats what must not be repeated.
fn problems(text: &str, variables: &[(&str, &str)]) -> String {
    let sentences = load(text, variables).unwrap_err().to_string();
    for forbidden in ["hunter2", "xoxb-1", "xapp-1", "ghp_1"] {
        assert!(!sentences.to_lowercase().contains(forbidden), "{sentences}");
    }
    sentences
}

#[test]
fn the_defaults_are_valid() {
    let config = load("", &[]).unwrap();
    assert_eq!(config.slack.publish, BTreeSet::from([Act::WorkItemReply]));
    assert_eq!(config.slack.twin_wait, Duration::from_millis(1_500));
    assert_eq!(config.slack.reactions.done.as_deref(), Some("white_check_mark"));
    assert_eq!((config.attachments.mode, config.attachments.max_bytes), (0o400, 25 * 1024 * 1024));
    assert_eq!(config.pane.agent_home, Path::new("/home/u"));
    assert!(config.people.is_empty() && config.github.repositories.is_empty());
}

#[test]
fn a_file_is_read_and_variables_win_over_it() {
    let text = r#"
        [slack]
        silence = "10s"
        listen = "mentions"
        [slack.reactions]
        received = ""
        [github]
        repositories = ["Acme/Web"]
        [[people]]
        name = "Dana"
        github = "Dana-D"
        slack = "U0456GHIJ"
    "#;
    let variables = [
        ("USHER__SLACK__SILENCE", "45s"),
        ("USHER__SLACK__REACTIONS__DONE", "rocket"),
        ("USHER__SLACK__ENABLED", "false"),
        ("USHER__GITHUB__REPOSITORIES", "acme/api, Acme/Docs"),
        ("USHER__ATTACHMENTS__MAX_FILES", "3"),
        ("USHER__ATTACHMENTS__MODE", "0440"),
        ("USHER_SLACK_BOT_TOKEN", "xoxb-1"),
    ];
    let config = load(text, &variables).unwrap();
    assert_eq!((config.slack.silence, config.slack.listen), (Duration::from_secs(45), Listen::Mentions));
    assert_eq!((config.slack.reactions.received, config.slack.enabled), (None, false));
    assert_eq!(config.slack.reactions.done.as_deref(), Some("rocket"));
    assert_eq!(config.github.repositories, ["acme/api", "acme/docs"]);
    assert_eq!((config.attachments.max_files, config.attachments.mode), (3, 0o440));
    let ids = vec![Person::Slack("U0456GHIJ".into()), Person::GitHub("dana-d".into())];
    assert_eq!(config.people, [KnownPerson { name: "Dana".into(), ids }]);
    assert_eq!(config.secrets.slack_bot.unwrap().expose_secret(), "xoxb-1");
}

#[test]
fn the_state_root_follows_file_then_systemd_then_the_working_directory() {
    let directory = directory_with("");
    let root = |variables: &[(&str, &str)]| {
        let home = [("HOME", "/home/u")].into_iter();
        Config::load(None, &Environment::new(home.chain(variables.iter().copied()), directory.path()))
            .unwrap()
            .state
            .root
    };
    let systemd = ("STATE_DIRECTORY", "/var/lib/usher:/var/lib/other");
    assert_eq!(root(&[]), directory.path().join("state"));
    assert_eq!(root(&[systemd]), Path::new("/var/lib/usher"));
    assert_eq!(root(&[systemd, ("USHER__STATE__ROOT", "~/usher")]), Path::new("/home/u/usher"));
    let written = load("[state]\nroot = \"/srv/usher\"", &[systemd]).unwrap();
    assert_eq!(written.state.root, Path::new("/srv/usher"));
}

#[test]
fn the_socket_is_the_configured_one_then_the_one_usher_runs_in() {
    let inside = ("TMUX", "/tmp/tmux-1000/default,4242,0");
    assert_eq!(load("", &[inside]).unwrap().pane.socket, Path::new("/tmp/tmux-1000/default"));
    let named = load("[pane]\nsocket = \"/run/tmux\"", &[inside]).unwrap();
    assert_eq!(named.pane.socket, Path::new("/run/tmux"));
    let default = load("", &[("TMUX_TMPDIR", "/run/user/7")]).unwrap().pane.socket;
    assert!(default.starts_with("/run/user/7") && default.ends_with("default"), "{}", default.display());
}

#[test]
fn a_named_file_that_is_not_there_is_an_error() {
    let directory = directory_with("");
    let load = |named: Option<&str>, variables: &[(&str, &str)]| {
        let home = [("HOME", "/home/u")].into_iter();
        let environment = Environment::new(home.chain(variables.iter().copied()), directory.path());
        Config::load(named.map(Path::new), &environment).map(|config| config.file)
    };
    insta::assert_snapshot!(load(Some("absent.toml"), &[]).unwrap_err(), @"absent.toml: cannot be read (entity not found): name a file that usher may read");
    insta::assert_snapshot!(load(None, &[("USHER_CONFIG", "other.toml")]).unwrap_err(), @"other.toml: cannot be read (entity not found): name a file that usher may read");
    assert_eq!(
        load(Some("config/usher.toml"), &[("USHER_CONFIG", "other.toml")]).unwrap().unwrap(),
        Path::new("config/usher.toml")
    );
}

#[test]
fn every_problem_is_told_at_once() {
    let text = r#"
        [slack]
        silance = "30s"
        listen = "some"
        twin_wait = 1.5
        [gates]
        labels = []
        [github]
        repositories = "acme/web"
        host = "https://github.com/"
        [attachments]
        deadline = "1h"
        max_files = 0
    "#;
    insta::assert_snapshot!(problems(text, &[("USHER__PANE__RETRY_MIN", "2m"), ("USHER__LOGG__FORMAT", "json")]), @r#"
    config/usher.toml: gates is not a key of usher: docs/configuration.md lists them
    config/usher.toml: github.repositories must be a list of texts, such as ["one", "two"]
    config/usher.toml: slack.silance is not a key of usher: the nearest is slack.silence
    config/usher.toml: slack.twin_wait must be a text in double quotes, such as "1.5s"
    USHER__LOGG__FORMAT is not a key of usher: the nearest is log.format
    config/usher.toml: slack.listen must be "all" or "mentions"
    config/usher.toml: github.host is not a host name: write it alone, such as "github.com", without https:// and slashes
    config/usher.toml: attachments.max_files must be from 1 to 1000: receive = false turns files off
    config/usher.toml: attachments.deadline must not be longer than attachments.file_deadline
    USHER__PANE__RETRY_MIN must not be longer than pane.retry_max
    "#);
}

#[test]
fn a_file_that_is_not_toml_is_refused_by_place_and_not_quoted() {
    insta::assert_snapshot!(problems("[slack]\nbot = xoxb-1\n", &[]), @"config/usher.toml: line 2, column 7 is not TOML: expected [section] or key = value, texts in double quotes, each key once");
    insta::assert_snapshot!(problems("[log]\nformat = \"text\"\nformat = \"hunter2\"\n", &[]), @"config/usher.toml: line 3, column 1 is not TOML: expected [section] or key = value, texts in double quotes, each key once");
    insta::assert_snapshot!(problems("[log\n", &[]), @"config/usher.toml: line 1, column 5 is not TOML: expected [section] or key = value, texts in double quotes, each key once");
}

#[test]
fn a_wrong_kind_is_refused_by_key_and_not_quoted() {
    let text = r#"
        log = "hunter2"
        [state]
        root = ["hunter2"]
        [slack]
        enabled = "hunter2"
        publish = ["work-item.reply", 3]
        reactions = "hunter2"
        [attachments]
        mode = 400
        max_files = "hunter2"
        [pane]
        socket = 1979-05-27
        [people]
        name = "hunter2"
    "#;
    insta::assert_snapshot!(problems(text, &[]), @r#"
    config/usher.toml: attachments.max_files must be a whole number
    config/usher.toml: attachments.mode must be a text in double quotes, such as "0400"
    config/usher.toml: log is a section: write [log] and its keys below
    config/usher.toml: pane.socket must be a text in double quotes
    config/usher.toml: people must be entries of their own: write [[people]] before each
    config/usher.toml: slack.enabled must be true or false
    config/usher.toml: slack.publish must be a list of texts, such as ["one", "two"]
    config/usher.toml: slack.reactions is a section: write [slack.reactions] and its keys below
    config/usher.toml: state.root must be a text in double quotes, such as "state"
    "#);
}

#[test]
fn a_secret_is_refused_wherever_it_was_pasted() {
    let text = r#"
        ghp_1234567890 = "x"
        [slack]
        bot_token = "hunter2"
        publish = ["xoxb-1234567890"]
        [pane]
        socket = "xapp-1234567890"
        [gates]
        labels = ["ghp_1234567890"]
        [[people]]
        name = "ghp_1234567890"
        token = "hunter2"
    "#;
    insta::assert_snapshot!(problems(text, &[("USHER__SLACK__BOT_TOKEN", "xoxb-1234567890")]), @r"
    config/usher.toml: gates looks like a secret, and secrets are never in the configuration: revoke it if others could read it, and give it as $CREDENTIALS_DIRECTORY/NAME, as a file that NAME_FILE names, or as the variable NAME (USHER_SLACK_APP_TOKEN, USHER_SLACK_BOT_TOKEN, GH_TOKEN)
    config/usher.toml: (a key that is not shown) looks like a secret, and secrets are never in the configuration: revoke it if others could read it, and give it as $CREDENTIALS_DIRECTORY/NAME, as a file that NAME_FILE names, or as the variable NAME (USHER_SLACK_APP_TOKEN, USHER_SLACK_BOT_TOKEN, GH_TOKEN)
    config/usher.toml: pane.socket looks like a secret, and secrets are never in the configuration: revoke it if others could read it, and give it as $CREDENTIALS_DIRECTORY/NAME, as a file that NAME_FILE names, or as the variable NAME (USHER_SLACK_APP_TOKEN, USHER_SLACK_BOT_TOKEN, GH_TOKEN)
    config/usher.toml: people[1].name looks like a secret, and secrets are never in the configuration: revoke it if others could read it, and give it as $CREDENTIALS_DIRECTORY/NAME, as a file that NAME_FILE names, or as the variable NAME (USHER_SLACK_APP_TOKEN, USHER_SLACK_BOT_TOKEN, GH_TOKEN)
    config/usher.toml: people[1].token looks like a secret, and secrets are never in the configuration: revoke it if others could read it, and give it as $CREDENTIALS_DIRECTORY/NAME, as a file that NAME_FILE names, or as the variable NAME (USHER_SLACK_APP_TOKEN, USHER_SLACK_BOT_TOKEN, GH_TOKEN)
    config/usher.toml: slack.bot_token looks like a secret, and secrets are never in the configuration: revoke it if others could read it, and give it as $CREDENTIALS_DIRECTORY/NAME, as a file that NAME_FILE names, or as the variable NAME (USHER_SLACK_APP_TOKEN, USHER_SLACK_BOT_TOKEN, GH_TOKEN)
    config/usher.toml: slack.publish looks like a secret, and secrets are never in the configuration: revoke it if others could read it, and give it as $CREDENTIALS_DIRECTORY/NAME, as a file that NAME_FILE names, or as the variable NAME (USHER_SLACK_APP_TOKEN, USHER_SLACK_BOT_TOKEN, GH_TOKEN)
    USHER__SLACK__BOT_TOKEN looks like a secret, and secrets are never in the configuration: revoke it if others could read it, and give it as $CREDENTIALS_DIRECTORY/NAME, as a file that NAME_FILE names, or as the variable NAME (USHER_SLACK_APP_TOKEN, USHER_SLACK_BOT_TOKEN, GH_TOKEN)
    config/usher.toml: people[1].name must be a name of one line, at most 80 characters
    config/usher.toml: people[1] has neither slack nor github: add one, it is how a person is recognised
    ");
}

#[test]
fn variables_are_held_to_the_same_rules() {
    let variables = [
        ("USHER__PEOPLE", "Dana"),
        ("USHER__SLACK", "on"),
        ("USHER__SLACK__ENABLED", "hunter2"),
        ("USHER__SLACK__SILENCE", "hunter2"),
        ("USHER__ATTACHMENTS__PARALLEL", "hunter2"),
        ("USHER__", "hunter2"),
        ("USHER__A[0]__B", "hunter2"),
    ];
    insta::assert_snapshot!(problems("", &variables), @r#"
    USHER__ is not a key of usher: docs/configuration.md lists them
    USHER__ATTACHMENTS__PARALLEL must be a whole number
    USHER__A[0]__B is not a key of usher: docs/configuration.md lists them
    USHER__PEOPLE cannot be set by a variable: only single keys can, write this one into the file
    USHER__SLACK cannot be set by a variable: only single keys can, write this one into the file
    USHER__SLACK__ENABLED must be true or false
    USHER__SLACK__SILENCE is not a duration: write a number and a unit, such as "500ms", "1.5s", "15m", "2h", up to "365d"
    "#);
}

#[test]
fn values_are_refused_with_the_reason() {
    let text = r#"
        [state]
        root = ""
        [slack]
        silence = "0s"
        publish = ["help", "hunter2"]
        [slack.reactions]
        done = ":tada:"
        [github]
        repositories = ["acme/web", "ACME/web", "hunter2", "github.com/acme/api", "acme/web#1"]
        limit_wait = "-1s"
        [attachments]
        max_bytes = "hunter2"
        mode = "0640x"
        [pane]
        agent_home = "~root"
        evidence = "2y"
        [log]
        format = "hunter2"
    "#;
    insta::assert_snapshot!(problems(text, &[]), @r#"
    config/usher.toml: state.root must name a directory
    config/usher.toml: slack.publish has no act as entry 2: the acts are work-item.reply, gate.feedback, control.command, context.added, decision.recorded, work-item.create, help
    config/usher.toml: slack.silence must be above zero: every connection would count as dead at once
    config/usher.toml: slack.reactions.done is not the name of an emoji: write it without colons, such as "eyes", or "" for no mark
    config/usher.toml: github.repositories has entry 2 twice: remove one
    config/usher.toml: github.repositories has no repository as entry 3: write owner/repo
    config/usher.toml: github.repositories has no repository as entry 4: write owner/repo
    config/usher.toml: github.repositories has no repository as entry 5: write owner/repo
    config/usher.toml: github.limit_wait is not a duration: write a number and a unit, such as "500ms", "1.5s", "15m", "2h", up to "365d"
    config/usher.toml: attachments.max_bytes is not a size: write a number and a unit, such as "64KiB", "25MiB", "5GiB" or "100MB"
    config/usher.toml: attachments.mode is not a file mode: write it in octal, such as "0400" or "0440"
    config/usher.toml: pane.agent_home names somebody else's home: write the whole path
    config/usher.toml: pane.evidence is not a duration: write a number and a unit, such as "500ms", "1.5s", "15m", "2h", up to "365d"
    config/usher.toml: log.format must be "text" or "json"
    "#);
    for (mode, said) in
        [("0200", "owner"), ("0660", "write"), ("0500", "executable"), ("4400", "octal"), ("9", "octal")]
    {
        let sentences = problems(&format!("[attachments]\nmode = \"{mode}\""), &[]);
        assert!(sentences.contains(said), "{mode}: {sentences}");
    }
}

#[test]
fn people_are_refused_with_the_way_to_their_id() {
    let text = r#"
        [[people]]
        name = "Dana"
        slack = "@hunter2"
        [[people]]
        name = "Eli"
        github = "eli"
        [[people]]
        name = "two\nlines"
        github = "ELI"
        slak = "U0456GHIJ"
        [[people]]
        slack = "U04"
        github = "@eli"
        [[people]]
        name = "Fay"
    "#;
    insta::assert_snapshot!(problems(text, &[]), @r#"
    config/usher.toml: people[3].slak is not a key of usher: the nearest is people[3].slack
    config/usher.toml: people[1].slack is not a member id (U0456GHIJ; names and handles change): in Slack open the person's profile, then the three dots, then "Copy member ID"
    config/usher.toml: people[3].name must be a name of one line, at most 80 characters
    config/usher.toml: people[3] has an id of people[2]: one person, one entry
    config/usher.toml: people[4].name must be a name of one line, at most 80 characters
    config/usher.toml: people[4].github is not a GitHub login: write it without @ and without https://github.com/
    config/usher.toml: people[5] has neither slack nor github: add one, it is how a person is recognised
    "#);
}

#[test]
fn a_home_that_is_not_set_is_told() {
    let directory = directory_with("");
    let outcome = Config::load(None, &Environment::new([("LANG", "C")], directory.path()));
    insta::assert_snapshot!(outcome.unwrap_err(), @"config/usher.toml: pane.agent_home begins with ~, and HOME is not set: write the whole path");
}

#[test]
fn no_file_is_a_finding() {
    let mut config = load("", &[]).unwrap();
    assert_eq!(config.finding(), None);
    config.file = None;
    insta::assert_snapshot!(config.finding().unwrap(), @"no configuration file at --config, $USHER_CONFIG, config/usher.toml, /etc/usher/usher.toml: the defaults hold, nobody may do anything; copy config/usher.toml and edit it");
}

#[test]
fn what_is_shown_has_no_secret_and_reads_back() {
    let text = "[log]\nformat = \"json\"\n[[people]]\nname = \"Dana\"\nslack = \"U04\"\n[github]\nrepositories = [\"Acme/Web\"]";
    let config = load(text, &[("USHER_SLACK_BOT_TOKEN", "xoxb-1")]).unwrap();
    let shown = config.show();
    assert!(!shown.contains("xoxb-1") && !format!("{config:?}").contains("xoxb-1"), "{shown}");
    assert_eq!(load(&shown, &[]).unwrap().raw, config.raw);
    insta::assert_snapshot!(shown, @r#"
    # usher's configuration in force, from config/usher.toml, variables and defaults

    [state]
    root = "state"

    [slack]
    enabled = true
    publish = ["work-item.reply"]
    listen = "all"
    ledger_private_channels = false
    twin_wait = "1.5s"
    silence = "30s"
    catch_up = "15m"

    [slack.reactions]
    received = "eyes"
    waiting = "hourglass_flowing_sand"
    done = "white_check_mark"
    unsure = "grey_question"
    failed = "warning"

    [github]
    host = "github.com"
    app_id = 0
    repositories = ["Acme/Web"]
    publish = ["work-item.reply"]
    limit_wait = "60s"
    catch_up = "15m"

    [webhook]
    listen = "127.0.0.1:8787"
    path = "/gh-webhook"
    max_body = "25MiB"

    [prompt]
    event = ""

    [[people]]
    name = "Dana"
    github = ""
    slack = "U04"

    [attachments]
    receive = true
    max_files = 10
    max_bytes = "25MiB"
    parallel = 10
    mode = "0400"
    timeout = "30s"
    deadline = "60s"
    file_deadline = "10m"
    transcript_retries = 3
    transcript_wait = "2s"
    transcript_poll = "1m"

    [ledger]
    patience = "2s"

    [pane]
    socket = ""
    agent_home = "~"
    timeout = "5s"
    mode_wait = "10s"
    retry_min = "1s"
    retry_max = "60s"
    evidence = "10s"

    [log]
    format = "json"

    # secrets
    # USHER_SLACK_APP_TOKEN: unset
    # USHER_SLACK_BOT_TOKEN: set, from the environment
    # GH_TOKEN or GITHUB_TOKEN: unset
    # USHER_GITHUB_APP_KEY: unset
    # USHER_GITHUB_WEBHOOK_SECRET: unset
    # USHER_GITHUB_WEBHOOK_SECRET_PREVIOUS: unset
    "#);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn no_file_panics_and_no_sentence_repeats_a_value(
        section in "[a-z]{1,8}|slack|pane|people",
        key in "[a-z_]{1,10}|silence|name|\"[^\"\\\\\\n]{0,6}\"",
        value in "[ -~&&[^\"\\\\]]{0,12}",
    ) {
        let marked = format!("ZQX{value}");
        if let Err(error) = load(&format!("[{section}]\n{key} = \"{marked}\"\n"), &[]) {
            prop_assert!(!error.to_string().contains("ZQX"), "{}", error);
        }
    }

    #[test]
    fn no_variable_panics(name in "[ -~&&[^=]]{0,20}", value in "\\PC{0,20}") {
        let marked = format!("ZQX{value}");
        let outcome = load("", &[(&format!("USHER__{name}"), &marked)]);
        prop_assert!(!outcome.err().is_some_and(|error| error.to_string().contains("ZQX")));
    }
}
