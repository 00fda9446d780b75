//! What was said while usher was away arrives, late, once and in order.

use crate::main_job::{USHER, png};
use crate::story::Story;
use crate::world::{Agent, DANA, Fault, FileSpec, ITEM, ROOM, SAM, World, eventually};

fn arrived(agent: &Agent, count: usize) -> Vec<String> {
    eventually("the messages arrive", || {
        let submitted = agent.submitted();
        if submitted.len() >= count { Ok(submitted) } else { Err(submitted) }
    })
}

impl Story {
    /// Somebody says something in the thread, and its event never comes.
    fn unheard(&self, user: &str, words: &str) {
        self.world.slack.earlier(ROOM, Some(&self.thread), user, words);
    }
}

#[test]
fn what_was_said_while_usher_was_away_arrives_once_in_order_with_its_files() {
    // Field report T9: messages sent while the daemon was down never arrived.
    let story = Story::begin();
    let daemon = story.daemon();
    story.say("before");
    arrived(&story.agent, 1);
    daemon.kill9();
    story.unheard(DANA, "first");
    story.unheard(SAM, "a stranger's");
    let shot = story.world.slack.add_file(FileSpec::new("shot.png", "image/png", png()));
    story.say_with("second", &[shot]);

    let daemon = story.daemon();
    let submitted = arrived(&story.agent, 3);
    assert_eq!(submitted.len(), 3, "{submitted:?}");
    assert!(submitted[1].contains("first"), "{submitted:?}");
    assert!(submitted[2].contains("second") && submitted[2].contains("shot.png"), "{submitted:?}");
    eventually("the ticket has all three", || story.world.github.comments(ITEM).len() == 3);
    daemon.wait_line("caught up");
}

#[test]
fn a_limit_is_waited_out_page_by_page_and_live_messages_do_not_wait() {
    // Field report T10: history calls are throttled for some apps.
    let story = Story::begin();
    story.unheard(DANA, "while you were away");
    story.world.slack.fail_next("conversations.replies", Fault::RateLimited(3));
    let daemon = story.daemon();
    daemon.wait_line("catching up waits for Slack's limit");
    story.say("live");
    let submitted = arrived(&story.agent, 2);
    assert!(submitted[0].contains("live"), "{submitted:?}");
    assert!(submitted[1].contains("while you were away"), "{submitted:?}");
}

#[test]
fn a_reconnect_catches_up_and_what_was_live_is_not_repeated() {
    let story = Story::begin();
    let _daemon = story.daemon();
    story.say("live");
    arrived(&story.agent, 1);
    story.unheard(DANA, "its event was lost");
    story.world.slack.abort_tcp();
    let submitted = arrived(&story.agent, 2);
    assert!(submitted[1].contains("its event was lost"), "{submitted:?}");
    story.say("and on");
    assert_eq!(arrived(&story.agent, 3).len(), 3);
}

#[test]
fn a_binding_may_reach_back() {
    let world = World::new(USHER);
    let agent = world.claude();
    let thread = world.slack.earlier(ROOM, None, DANA, "The widgets squeak");
    world.slack.earlier(ROOM, Some(&thread), DANA, "said before the binding");
    let link = world.slack.permalink(ROOM, &thread);
    let bound = world.cli(&["bind", ITEM, "--pane", &agent.pane, "--slack", &link, "--since", "1h"]);
    assert!(bound.status.success(), "{}", String::from_utf8_lossy(&bound.stderr));
    let _daemon = world.daemon();
    let submitted = arrived(&agent, 2);
    assert!(submitted[1].contains("said before the binding"), "{submitted:?}");
}
