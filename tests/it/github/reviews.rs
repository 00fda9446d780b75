//! A review comes as one event and one more for each of its inline comments; the agent reads one message.

use serde_json::Value;

use crate::endpoint::Endpoint;
use crate::main_job::png;
use crate::world::{REPOSITORY, Review, with};

const PULL: &str = "acme/widgets#30";

fn endpoint() -> Endpoint {
    let endpoint = Endpoint::begin();
    endpoint.world.github.add_pull_request(PULL, "Oil", "Closes #12", "oil");
    endpoint
}

fn review(endpoint: &Endpoint) -> (Review, Vec<(&'static str, Value)>) {
    let github = &endpoint.world.github;
    let review = github.review(PULL, "dana", "Nearly there", &["first remark", "second remark", "third remark"]);
    let events = github.review_events(PULL, &review);
    (review, events)
}

#[track_caller]
fn deliver(endpoint: &Endpoint, (event, payload): &(&str, Value)) {
    let response = endpoint.hook.deliver(event, payload);
    assert!(matches!(response.status, 200 | 202), "{response:?}");
}

/// One message, with everything of the review in the order in which it was written.
#[track_caller]
fn assert_read_as_one(endpoint: &Endpoint) {
    let text = endpoint.wait_submitted("third remark");
    let places: Vec<_> =
        ["first remark", "second remark", "third remark"].iter().map(|words| text.find(words)).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{text}");
    assert!(text.contains("Nearly there") && text.contains("\"state\": \"commented\""), "{text}");
    assert!(text.contains("pull_request_review (submitted)"), "{text}");
    endpoint.wait_for_the_lane();
    assert_eq!(endpoint.agent.submitted().len(), 2, "{:?}", endpoint.agent.submitted());
}

#[test]
fn a_review_and_its_inline_comments_read_as_one_message_in_order() {
    let endpoint = endpoint();
    let (_, events) = review(&endpoint);
    events.iter().for_each(|event| deliver(&endpoint, event));
    assert_read_as_one(&endpoint);
}

#[test]
fn whatever_the_order_in_which_its_events_come() {
    let endpoint = endpoint();
    let (_, events) = review(&endpoint);
    [3, 1, 0, 2, 1].iter().for_each(|index| deliver(&endpoint, &events[*index]));
    assert_read_as_one(&endpoint);
}

#[test]
fn the_inline_comments_whose_events_do_not_come_are_read_of_github() {
    let endpoint = endpoint();
    let (_, events) = review(&endpoint);
    deliver(&endpoint, &events[2]);
    assert_read_as_one(&endpoint);
    assert_eq!(endpoint.hook.deliver(events[0].0, &events[0].1).status, 200);
}

#[test]
fn a_review_that_github_does_not_show_goes_as_its_events_brought_it() {
    let endpoint = endpoint();
    let (review, events) = review(&endpoint);
    let elsewhere = with(events[0].1.clone(), serde_json::json!({"review": {"id": review.id + 500}}));
    deliver(&endpoint, &("pull_request_review", elsewhere));
    let text = endpoint.wait_submitted("Nearly there");
    assert!(!text.contains("first remark"), "{text}");
    assert!(endpoint.daemon().lines().iter().any(|line| line.contains("GitHub did not say the rest")));
}

#[test]
fn an_image_in_an_inline_comment_is_found_in_the_rendered_inline_comments() {
    let endpoint = endpoint();
    let github = &endpoint.world.github;
    github.hide_files_from_the_token();
    let image = github.add_image(REPOSITORY, png());
    let review = github.review(PULL, "dana", "", &[&format!("like this {image}")]);
    github.review_events(PULL, &review).iter().for_each(|event| deliver(&endpoint, event));
    let text = endpoint.wait_submitted("like this");
    assert!(text.contains("saved at `"), "{text}");
}

#[test]
fn the_words_of_a_strangers_review_are_not_kept() {
    let endpoint = endpoint();
    let github = &endpoint.world.github;
    let review = github.review(PULL, "mallory", "Run this quickly", &["and that"]);
    github.review_events(PULL, &review).iter().for_each(|event| deliver(&endpoint, event));
    endpoint.wait_for_the_lane();
    assert_eq!(endpoint.agent.submitted().len(), 1);
    assert!(endpoint.world.state_holding("Run this quickly").is_empty());
    let calls = endpoint.world.github.calls();
    assert!(!calls.iter().any(|call| call.contains("/reviews/")), "{calls:?}");
}
