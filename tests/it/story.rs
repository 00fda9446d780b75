//! What most stories begin with: Dana's thread, bound to an agent's pane, before any daemon runs.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::main_job::USHER;
use crate::world::{Agent, Comment, DANA, Daemon, ITEM, Posted, ROOM, World, eventually};

pub(crate) struct Story {
    pub(crate) world: World,
    pub(crate) agent: Agent,
    pub(crate) thread: String,
}

impl Story {
    /// A thread of the room, bound to a pane in which Claude waits.
    pub(crate) fn begin() -> Self {
        let world = World::new(USHER);
        let agent = world.claude();
        let thread = world.slack.earlier(ROOM, None, DANA, "The widgets squeak");
        let story = Self { world, agent, thread };
        story.bind(ITEM, &story.agent, &story.thread);
        story
    }

    /// The same, with these keys in the configuration.
    pub(crate) fn with_config(overrides: &str) -> Self {
        let story = Self::begin();
        story.world.config(overrides);
        story
    }

    pub(crate) fn bind(&self, item: &str, agent: &Agent, thread: &str) {
        let link = self.world.slack.permalink(ROOM, thread);
        let bound = self.world.cli(&["bind", item, "--pane", &agent.pane, "--slack", &link]);
        assert!(bound.status.success(), "{}", String::from_utf8_lossy(&bound.stderr));
    }

    /// A daemon that Slack has greeted.
    pub(crate) fn daemon(&self) -> Daemon {
        let daemon = self.world.daemon();
        daemon.wait_line("slack=up github=");
        daemon
    }

    /// Dana says something in the thread.
    pub(crate) fn say(&self, words: &str) -> Posted {
        self.say_with(words, &[])
    }

    pub(crate) fn say_with(&self, words: &str, files: &[Value]) -> Posted {
        self.world.slack.post(ROOM, Some(&self.thread), DANA, words, files)
    }

    pub(crate) fn mark(&self, posted: &Posted) -> BTreeSet<String> {
        self.world.slack.reactions_on(&posted.ts)
    }

    /// Waits until the message carries the check mark, and nothing that says otherwise.
    #[track_caller]
    pub(crate) fn wait_done(&self, posted: &Posted) {
        let done = BTreeSet::from(["eyes".to_owned(), "white_check_mark".to_owned()]);
        eventually("the check mark", || {
            let marks = self.mark(posted);
            if marks == done { Ok(()) } else { Err(marks) }
        });
    }

    /// Says something else and waits until that is done: whatever was going to happen in this lane before has happened.
    #[track_caller]
    pub(crate) fn wait_for_the_lane(&self) {
        self.wait_done(&self.say("That was all"));
    }

    #[track_caller]
    pub(crate) fn wait_submitted(&self, words: &str) {
        eventually(&format!("`{words}` is submitted"), || match self.submissions_of(words) {
            0 => Err(self.agent.submitted()),
            _ => Ok(()),
        });
    }

    /// How often these words were submitted.
    pub(crate) fn submissions_of(&self, words: &str) -> usize {
        self.agent.submitted().iter().filter(|text| text.contains(words)).count()
    }

    /// How often these words came through the agent's terminal.
    pub(crate) fn pastes_of(&self, words: &str) -> usize {
        String::from_utf8_lossy(&self.agent.raw()).matches(words).count()
    }

    /// The comments that hold these words.
    pub(crate) fn records_of(&self, words: &str) -> Vec<Comment> {
        let comments = self.world.github.comments(ITEM);
        comments.into_iter().filter(|comment| comment.body.contains(words)).collect()
    }

    /// Once typed, once submitted, once on the ticket.
    #[track_caller]
    pub(crate) fn assert_once(&self, words: &str) {
        assert_eq!(self.pastes_of(words), 1, "pastes of `{words}`");
        assert_eq!(self.submissions_of(words), 1, "submissions of `{words}`");
        assert_eq!(self.records_of(words).len(), 1, "records of `{words}`");
    }

    /// `usher inbox list`, newest first.
    pub(crate) fn inbox(&self) -> Vec<Value> {
        let listed = self.world.cli(&["inbox", "list", "--json"]);
        serde_json::from_slice(&listed.stdout).unwrap_or_default()
    }

    /// The line of a post in `usher inbox list`; null when usher does not know it.
    pub(crate) fn line_of(&self, posted: &Posted) -> Value {
        let is_it = |line: &Value| line["id"].as_str().is_some_and(|id| id.ends_with(&posted.ts));
        self.inbox().into_iter().find(is_it).unwrap_or_default()
    }
}
