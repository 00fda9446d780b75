//! The set-up of the GitHub stories: a daemon that listens for webhooks, and an agent bound to the work item.

use rusqlite::Connection;
use serde_json::Value;

use crate::main_job::USHER;
use crate::world::{Agent, Daemon, Delivery, Hook, ITEM, Response, World, eventually};

/// A world in which GitHub's webhook leads to the agent.
pub(crate) struct Endpoint {
    daemon: Option<Daemon>,
    pub(crate) hook: Hook,
    pub(crate) agent: Agent,
    pub(crate) world: World,
}

impl Endpoint {
    pub(crate) fn begin() -> Self {
        Self::with_config("")
    }

    /// The same, with these keys in the configuration.
    pub(crate) fn with_config(overrides: &str) -> Self {
        let mut world = World::new(USHER);
        world.config(overrides);
        world.with_webhook();
        Self::of(world)
    }

    /// The same, in a world that has a webhook's secret already.
    pub(crate) fn of(world: World) -> Self {
        let agent = world.claude();
        bind(&world, ITEM, &agent);
        let daemon = world.daemon();
        let hook = world.hook(&daemon);
        Self { daemon: Some(daemon), hook, agent, world }
    }

    pub(crate) fn daemon(&self) -> &Daemon {
        self.daemon.as_ref().unwrap()
    }

    /// The power goes off and comes back.
    pub(crate) fn kill9_and_start(&mut self) {
        self.daemon.take().unwrap().kill9();
        let daemon = self.world.daemon();
        self.hook = self.world.hook(&daemon);
        self.daemon = Some(daemon);
    }

    /// The event of a comment by Dana on the work item.
    pub(crate) fn said(&self, words: &str) -> Value {
        self.said_on(ITEM, "dana", words)
    }

    pub(crate) fn said_on(&self, item: &str, author: &str, words: &str) -> Value {
        let comment = self.world.github.comment(item, author, words);
        self.world.github.comment_event(item, "created", &comment)
    }

    pub(crate) fn delivery(&self, words: &str) -> Delivery {
        self.hook.delivery("issue_comment", &self.said(words))
    }

    /// Dana comments on the work item, and GitHub says so.
    #[track_caller]
    pub(crate) fn say(&self, words: &str) -> Response {
        let response = self.hook.deliver("issue_comment", &self.said(words));
        assert_eq!(response.status, 202, "{response:?}");
        response
    }

    /// Dana says something else, and it is submitted: whatever was going to happen before has happened.
    #[track_caller]
    pub(crate) fn wait_for_the_lane(&self) {
        self.say("That was all");
        self.wait_submitted("That was all");
    }

    /// Waits until these words are submitted; the whole text.
    #[track_caller]
    pub(crate) fn wait_submitted(&self, words: &str) -> String {
        self.wait_submitted_to(&self.agent, words)
    }

    #[track_caller]
    pub(crate) fn wait_submitted_to(&self, agent: &Agent, words: &str) -> String {
        eventually(&format!("`{words}` is submitted"), || {
            let submitted = agent.submitted();
            let found = submitted.iter().find(|text| text.contains(words)).cloned();
            found.ok_or_else(|| (submitted, self.daemon().lines().into_iter().rev().take(5).collect::<Vec<_>>()))
        })
    }

    /// `usher inbox list`, newest first, as `ID STAGE CAUSE`.
    pub(crate) fn inbox(&self) -> Vec<String> {
        let listed = self.world.cli(&["inbox", "list", "--json"]);
        let lines: Vec<Value> = serde_json::from_slice(&listed.stdout).unwrap_or_default();
        let text = |line: &Value, name: &str| line[name].as_str().unwrap_or_default().to_owned();
        lines.iter().map(|line| ["id", "stage", "cause"].map(|name| text(line, name)).join(" ")).collect()
    }

    pub(crate) fn database(&self) -> Connection {
        Connection::open(self.world.dir().join("state/local/usher.db")).unwrap()
    }

    /// How many messages usher knows.
    pub(crate) fn stored(&self) -> i64 {
        self.database().query_row("SELECT count(*) FROM message", [], |row| row.get(0)).unwrap()
    }

    #[track_caller]
    pub(crate) fn assert_nothing_stored(&self) {
        assert_eq!(self.stored(), 0);
    }
}

pub(crate) fn bind(world: &World, item: &str, agent: &Agent) {
    let bound = world.cli(&["bind", item, "--pane", &agent.pane]);
    assert!(bound.status.success(), "{}", String::from_utf8_lossy(&bound.stderr));
}
