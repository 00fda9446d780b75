//! Point 6 of the first issue: who may speak, what may be published, and what is silence.

use std::fs;

use crate::bound::{Bound, CHECK, done};
use crate::main_job::{USHER, png};
use crate::world::{Agent, DANA, DANA_DM, Daemon, FileSpec, ITEM, Posted, ROOM, SAM, Twin, World, eventually};

const TWINS: [Twin; 2] = [Twin::Mention, Twin::Message];

/// Whether any file of usher's state holds these words, the write-ahead log of the database included.
fn is_kept(world: &World, words: &str) -> bool {
    let local = fs::read_dir(world.dir().join("state/local")).unwrap().flatten();
    let files: Vec<_> = local.map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    assert!(files.iter().any(|path| path.ends_with("usher.db-wal")), "{files:?}");
    files.iter().any(|path| String::from_utf8_lossy(&fs::read(path).unwrap()).contains(words))
}

/// Nothing at all was shown to anybody about this post.
#[track_caller]
fn silence(world: &World, posted: &Posted) {
    assert_eq!(world.slack.reaction_history(&posted.ts), [] as [String; 0]);
    assert_eq!(world.slack.ephemerals(), []);
}

#[test]
fn of_a_stranger_nothing_is_read_fetched_said_or_kept() {
    let bound = Bound::claude("");
    let world = &bound.world;
    // The reading at the start is over before anybody speaks: what is asked from here on is about what is said.
    eventually("usher has caught up", || world.slack.calls().iter().any(|call| call == "conversations.replies"));
    let file = world.slack.add_file(FileSpec::new("plans.png", "image/png", png()));
    let said = world.slack.mention(ROOM, Some(&bound.thread), SAM, "zanzibar at dawn", &[file], &TWINS);
    // A mention without its files: of somebody known it would be read again.
    let asked = world.slack.mention(ROOM, Some(&bound.thread), SAM, "zanzibar?", &[], &[Twin::MentionWithoutFiles]);
    let calls = world.slack.calls();
    let answer = bound.say("who was that");
    bound.wait_done(&answer);
    for posted in [said, asked] {
        silence(world, &posted);
        assert!(world.slack.acked(&posted.envelopes));
    }
    assert_eq!(world.slack.file_requests(), []);
    let new: Vec<String> = world.slack.calls().split_off(calls.len());
    assert!(new.iter().all(|call| call.starts_with("reactions.")), "{new:?}");
    assert!(bound.only_submission().contains("who was that"));
    assert_eq!(world.github.comments(ITEM).len(), 1);
    assert!(is_kept(world, "who was that"));
    assert!(!is_kept(world, "zanzibar") && !is_kept(world, "plans.png"));
    assert!(!world.output().iter().any(|line| line.contains("zanzibar") || line.contains("plans.png")));
}

#[test]
fn an_empty_list_of_people_lets_nobody_speak() {
    let bound = Bound::claude("people = []");
    let posted = bound.world.slack.mention(ROOM, Some(&bound.thread), DANA, "to the left", &[], &TWINS);
    bound.daemon().wait_line("reason=\"stranger\"");
    let next = bound.say("to the right");
    bound.daemon().wait_line(&format!("{} reason=\"stranger\"", next.ts));
    silence(&bound.world, &posted);
    assert_eq!(bound.agent.raw(), b"");
    assert_eq!(bound.world.github.comments(ITEM), []);
}

/// The one notice that Dana gets, beside the failed mark on her post.
#[track_caller]
fn told(world: &World, posted: &Posted) -> String {
    let told = eventually("the notice", || world.slack.ephemerals().into_iter().next());
    assert_eq!((told.channel.as_str(), told.user.as_str()), (posted.channel.as_str(), DANA));
    eventually("the failed mark", || world.slack.reactions_on(&posted.ts).contains("warning"));
    assert_eq!(world.slack.ephemerals().len(), 1);
    told.text
}

#[test]
fn what_slack_may_not_publish_is_told_and_not_done() {
    let bound = Bound::claude("[slack]\npublish = []");
    let posted = bound.say("to the left");
    let words = told(&bound.world, &posted);
    assert!(words.contains("does not take work-item.reply from Slack"), "{words}");
    assert_eq!(bound.agent.raw(), b"");
    assert_eq!(bound.world.github.comments(ITEM), []);
}

#[test]
fn in_a_conversation_of_no_work_item_only_a_mention_is_answered() {
    let bound = Bound::claude("");
    let talk = bound.world.slack.post(ROOM, None, DANA, "lunch?", &[]);
    let asked = bound.world.slack.mention(ROOM, None, DANA, "what about the widgets?", &[], &TWINS);
    let words = told(&bound.world, &asked);
    assert!(words.contains("does not know which work item this conversation belongs to"), "{words}");
    assert_eq!(bound.world.slack.reaction_history(&talk.ts), [] as [String; 0]);
    assert_eq!(bound.agent.raw(), b"");
}

#[test]
fn a_mention_without_words_is_told_so() {
    let bound = Bound::claude("");
    let posted = bound.world.slack.mention(ROOM, Some(&bound.thread), DANA, "", &[], &TWINS);
    let words = told(&bound.world, &posted);
    assert!(words.contains("there were no words and no files in it"), "{words}");
    assert_eq!(bound.agent.raw(), b"");
}

/// An agent bound to a conversation with these arguments, and a daemon.
fn listening(config: &str, channel: &str, arguments: &[&str]) -> (Daemon, Agent, World) {
    let world = World::new(USHER);
    world.config(config);
    let agent = world.claude();
    done(&world.cli(&[&["bind", ITEM, "--pane", &agent.pane, "--slack", channel], arguments].concat()));
    let daemon = world.daemon();
    daemon.wait_line("slack=up github=");
    (daemon, agent, world)
}

/// Which of a plain message and a mention the agent gets.
#[track_caller]
fn heard(config: &str, channel: &str, arguments: &[&str]) -> Vec<&'static str> {
    let (_daemon, agent, world) = listening(config, channel, arguments);
    let plain = world.slack.post(channel, None, DANA, "among ourselves", &[]);
    let mention = world.slack.mention(channel, None, DANA, "for the agent", &[], &TWINS);
    eventually("the mention is done", || world.slack.reactions_on(&mention.ts).contains(CHECK));
    let submitted = agent.submitted();
    let heard = |words: &&str| submitted.iter().any(|text| text.contains(&format!("{words}\n[usher ")));
    let heard: Vec<_> = ["among ourselves", "for the agent"].into_iter().filter(heard).collect();
    assert_eq!(submitted.len(), heard.len(), "{submitted:?}");
    if heard.len() == 1 {
        silence(&world, &plain);
    }
    heard
}

#[test]
fn a_room_is_heard_when_it_mentions_usher_and_whole_when_bound_so() {
    assert_eq!(heard("", ROOM, &[]), ["for the agent"]);
    assert_eq!(heard("", ROOM, &["--listen", "all"]), ["among ourselves", "for the agent"]);
}

#[test]
fn a_direct_conversation_is_heard_whole_unless_configured_or_bound_otherwise() {
    assert_eq!(heard("", DANA_DM, &[]), ["among ourselves", "for the agent"]);
    assert_eq!(heard("[slack]\nlisten = \"mentions\"", DANA_DM, &[]), ["for the agent"]);
    assert_eq!(heard("", DANA_DM, &["--listen", "mentions"]), ["for the agent"]);
    assert_eq!(heard("[slack]\nlisten = \"mentions\"", DANA_DM, &["--listen", "all"]).len(), 2);
}
