//! Who is heard, on which item, and what becomes of words that are changed or taken back.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::endpoint::{Endpoint, bind};
use crate::world::{ITEM, REPOSITORY, with};

const PULL: &str = "acme/widgets#30";

#[test]
fn words_that_really_changed_arrive_as_an_edited_reply() {
    let endpoint = Endpoint::begin();
    let github = &endpoint.world.github;
    let comment = github.comment(ITEM, "dana", "Press the left button");
    endpoint.hook.deliver("issue_comment", &github.comment_event(ITEM, "created", &comment));
    endpoint.wait_submitted("Press the left button");
    let edited = github.edit(ITEM, comment.id, "Press the right button");
    let event = github.edited_event(ITEM, &edited, "Press the left button", "dana");
    assert_eq!(endpoint.hook.deliver("issue_comment", &event).status, 202);
    let text = endpoint.wait_submitted("Press the right button");
    assert!(
        text.lines().next().unwrap().contains("] edited reply from Dana (github:dana) on acme/widgets#12"),
        "{text}"
    );
    assert_eq!(endpoint.hook.deliver("issue_comment", &event).status, 200);
}

#[test]
fn an_edit_that_changed_no_words_is_no_message() {
    // Field report W11.
    let endpoint = Endpoint::begin();
    let github = &endpoint.world.github;
    let comment = github.comment(ITEM, "dana", "The same words");
    let same = github.edited_event(ITEM, &comment, "The same words", "dana");
    assert_eq!(endpoint.hook.deliver("issue_comment", &same).body, "not for usher\n");
    let retitled = with(github.opened_event(ITEM), json!({"action": "edited", "changes": {"title": {"from": "x"}}}));
    assert_eq!(endpoint.hook.deliver("issues", &retitled).body, "not for usher\n");
    let nothing = with(github.comment_event(ITEM, "edited", &comment), json!({"changes": {}}));
    assert_eq!(endpoint.hook.deliver("issue_comment", &nothing).body, "not for usher\n");
    endpoint.assert_nothing_stored();
}

#[test]
fn an_edit_is_judged_by_who_made_it() {
    let endpoint = Endpoint::begin();
    let github = &endpoint.world.github;
    let comment = github.comment(ITEM, "dana", "Words that Mallory put into Dana's mouth");
    let by_a_stranger = github.edited_event(ITEM, &comment, "Dana's words", "mallory");
    assert_eq!(endpoint.hook.deliver("issue_comment", &by_a_stranger).status, 202);
    let comment = github.comment(ITEM, "mallory", "Words that Dana stands for");
    let by_dana = github.edited_event(ITEM, &comment, "Mallory's words", "dana");
    assert_eq!(endpoint.hook.deliver("issue_comment", &by_dana).status, 202);
    endpoint.wait_submitted("Words that Dana stands for");
    assert_eq!(endpoint.agent.submitted().len(), 1, "{:?}", endpoint.agent.submitted());
    assert_eq!(endpoint.world.state_holding("Dana's mouth"), Vec::<PathBuf>::new());
}

#[test]
fn a_deleted_comment_wakes_nobody() {
    let endpoint = Endpoint::begin();
    let github = &endpoint.world.github;
    let comment = github.comment(ITEM, "dana", "Forget that");
    let deleted = github.comment_event(ITEM, "deleted", &comment);
    assert_eq!(endpoint.hook.deliver("issue_comment", &deleted).status, 202);
    endpoint.wait_for_the_lane();
    assert_eq!(endpoint.agent.submitted().len(), 1, "{:?}", endpoint.agent.submitted());
    assert!(
        endpoint.inbox().iter().any(|line| line.ends_with("+deleted refused taken-back")),
        "{:?}",
        endpoint.inbox()
    );
}

#[test]
fn an_item_that_nobody_bound_is_refused_and_the_operator_can_see_it() {
    let endpoint = Endpoint::begin();
    endpoint.world.github.add_issue("acme/widgets#99", "Nobody's");
    let event = endpoint.said_on("acme/widgets#99", "dana", "Is anybody there?");
    assert_eq!(endpoint.hook.deliver("issue_comment", &event).status, 202);
    endpoint.wait_for_the_lane();
    assert!(endpoint.inbox().iter().any(|line| line.ends_with("refused unmapped")), "{:?}", endpoint.inbox());
}

#[test]
fn names_are_compared_without_case_as_github_does() {
    let endpoint = Endpoint::begin();
    let event = endpoint.said_on(ITEM, "DaNa", "In capitals");
    let event = with(event, json!({"repository": {"full_name": REPOSITORY.to_uppercase()}}));
    assert_eq!(endpoint.hook.deliver("issue_comment", &event).status, 202);
    endpoint.wait_submitted("In capitals");
}

#[test]
fn ghosts_null_bodies_and_fields_of_tomorrow_harm_nobody() {
    let endpoint = Endpoint::begin();
    let event = endpoint.said("fine");
    for odd in [
        json!({"comment": {"user": null}}),
        json!({"comment": {"user": {"login": null, "type": "Mannequin"}}}),
        json!({"comment": null}),
        json!({"comment": {"id": "not a number"}}),
        json!({"issue": null}),
        json!({"issue": {"number": -12}}),
        json!({"repository": null}),
        json!({"action": "exploded"}),
        json!({"action": 7}),
    ] {
        let response = endpoint.hook.deliver("issue_comment", &with(event.clone(), odd.clone()));
        assert_eq!((response.status, response.body.as_str()), (202, "not for usher\n"), "{odd}");
    }
    let unknown = json!({"comment": {"reactions": {"+1": [null]}, "pinned": {"by": []}}, "sender": null});
    assert_eq!(endpoint.hook.deliver("issue_comment", &with(event, unknown)).body, "stored\n");
    endpoint.wait_submitted("fine");
}

#[test]
fn control_characters_and_carriage_returns_never_reach_the_terminal() {
    let endpoint = Endpoint::begin();
    endpoint.say("One\r\nTwo \u{1b}[201~\u{3}\u{7}\u{9b}2J\u{202e}three");
    let text = endpoint.wait_submitted("three");
    assert!(text.contains("One\\nTwo"), "{text}");
    let raw = String::from_utf8_lossy(&endpoint.agent.raw()).into_owned();
    let foreign = raw.split("[usher ").nth(1).unwrap_or_default();
    let body = foreign.split("end]").next().unwrap_or_default();
    assert!(!body.contains(['\u{3}', '\u{7}', '\u{9b}', '\u{202e}']), "{body:?}");
}

/// Dana comments on the pull request.
fn comment_on_pull(endpoint: &Endpoint, words: &str) -> Value {
    endpoint.said_on(PULL, "dana", words)
}

#[test]
fn a_comment_on_a_pull_request_goes_to_the_issue_that_it_closes() {
    let endpoint = Endpoint::begin();
    endpoint.world.github.add_pull_request(PULL, "Oil", "Closes #12", "oil");
    assert_eq!(endpoint.hook.deliver("issue_comment", &comment_on_pull(&endpoint, "More oil")).status, 202);
    assert_eq!(endpoint.hook.deliver("issue_comment", &comment_on_pull(&endpoint, "Even more")).status, 202);
    let text = endpoint.wait_submitted("Even more");
    assert!(text.contains("acme/widgets#12"), "{text}");
    assert!(endpoint.agent.submitted()[0].contains("More oil"), "{:?}", endpoint.agent.submitted());
}

#[test]
fn a_pull_request_goes_to_the_issue_of_its_branch() {
    let endpoint = Endpoint::begin();
    endpoint.world.github.add_pull_request(PULL, "Oil", "Some oil", "issue-12-oil");
    assert_eq!(endpoint.hook.deliver("pull_request", &endpoint.world.github.pull_request_event(PULL)).status, 202);
    endpoint.wait_submitted("Some oil");
}

#[test]
fn a_pull_request_with_a_session_of_its_own_speaks_to_that_one_and_nobody_is_asked() {
    let endpoint = Endpoint::begin();
    endpoint.world.github.add_pull_request(PULL, "Oil", "Closes #12", "oil");
    let own = endpoint.world.claude();
    bind(&endpoint.world, PULL, &own);
    assert_eq!(endpoint.hook.deliver("issue_comment", &comment_on_pull(&endpoint, "For the reviewer")).status, 202);
    endpoint.wait_submitted_to(&own, "For the reviewer");
    assert_eq!(endpoint.agent.submitted(), Vec::<String>::new());
    let calls = endpoint.world.github.calls();
    assert!(!calls.iter().any(|call| call.contains("/pulls/")), "{calls:?}");
}
