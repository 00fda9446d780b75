//! The set-up of most stories: a daemon, and an agent whose pane and Slack thread are bound to the work item.

use std::collections::BTreeSet;
use std::process::Output;

use crate::main_job::USHER;
use crate::world::{Agent, DANA, Daemon, ITEM, Posted, ROOM, World, eventually};

/// The emoji of a hold.
pub(crate) const HOURGLASS: &str = "hourglass_flowing_sand";
/// The emoji of a delivery.
pub(crate) const CHECK: &str = "white_check_mark";

/// A world in which Dana's thread leads to the agent.
pub(crate) struct Bound {
    daemon: Option<Daemon>,
    pub(crate) agent: Agent,
    pub(crate) thread: String,
    pub(crate) world: World,
}

impl Bound {
    /// An agent that behaves as Claude Code does.
    pub(crate) fn claude(config: &str) -> Self {
        Self::with(config, |world| (world.claude(), &[]))
    }

    /// The agent that this makes, bound with these further arguments.
    pub(crate) fn with(config: &str, agent: impl FnOnce(&World) -> (Agent, &'static [&'static str])) -> Self {
        let world = World::new(USHER);
        world.config(config);
        let (agent, arguments) = agent(&world);
        let thread = world.slack.earlier(ROOM, None, DANA, "The widgets squeak");
        let link = world.slack.permalink(ROOM, &thread);
        done(&world.cli(&[&["bind", ITEM, "--pane", &agent.pane, "--slack", &link], arguments].concat()));
        let daemon = start(&world);
        Self { daemon: Some(daemon), agent, thread, world }
    }

    pub(crate) fn daemon(&self) -> &Daemon {
        self.daemon.as_ref().unwrap()
    }

    /// The power goes off.
    pub(crate) fn kill9(&mut self) {
        self.daemon.take().unwrap().kill9();
    }

    /// The daemon starts (again).
    pub(crate) fn start(&mut self) {
        self.daemon = Some(start(&self.world));
    }

    /// Dana says something in the thread.
    pub(crate) fn say(&self, text: &str) -> Posted {
        self.world.slack.post(ROOM, Some(&self.thread), DANA, text, &[])
    }

    pub(crate) fn marks(&self, posted: &Posted) -> BTreeSet<String> {
        self.world.slack.reactions_on(&posted.ts)
    }

    /// Waits until a message carries exactly these marks.
    #[track_caller]
    pub(crate) fn wait_marks(&self, posted: &Posted, marks: &[&str]) {
        let wanted: BTreeSet<String> = marks.iter().map(ToString::to_string).collect();
        eventually(&format!("the marks {marks:?}"), || {
            let seen = self.marks(posted);
            if seen == wanted { Ok(()) } else { Err((seen, self.last_lines())) }
        });
    }

    #[track_caller]
    pub(crate) fn wait_done(&self, posted: &Posted) {
        self.wait_marks(posted, &["eyes", CHECK]);
    }

    /// Waits until a message is held for this cause, and its sender sees that.
    #[track_caller]
    pub(crate) fn wait_held(&self, posted: &Posted, cause: &str) {
        self.daemon().wait_line(&format!("cause={cause}"));
        self.wait_marks(posted, &["eyes", HOURGLASS]);
    }

    /// Runs a verb that must succeed; what it prints.
    #[track_caller]
    pub(crate) fn cli(&self, arguments: &[&str]) -> String {
        done(&self.world.cli(arguments))
    }

    /// The id of a message, as `usher inbox` takes it.
    #[track_caller]
    pub(crate) fn id_of(&self, posted: &Posted) -> String {
        let list: serde_json::Value = serde_json::from_str(&self.cli(&["inbox", "list", "--json"])).unwrap();
        let ids = list.as_array().unwrap().iter().filter_map(|line| line["id"].as_str());
        ids.into_iter().find(|id| id.ends_with(&posted.ts)).unwrap().to_owned()
    }

    /// The one text that was submitted.
    #[track_caller]
    pub(crate) fn only_submission(&self) -> String {
        let submitted = self.agent.submitted();
        assert_eq!(submitted.len(), 1, "{submitted:#?}");
        submitted[0].clone()
    }

    fn last_lines(&self) -> Vec<String> {
        let lines = self.daemon.as_ref().map(Daemon::lines).unwrap_or_default();
        lines.into_iter().rev().take(12).rev().collect()
    }
}

#[track_caller]
fn start(world: &World) -> Daemon {
    let daemon = world.daemon();
    daemon.wait_line("slack=up github=");
    daemon
}

/// What a verb printed that must have ended well.
#[track_caller]
pub(crate) fn done(output: &Output) -> String {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{:?}: {out}{err}", output.status);
    out.into_owned()
}
