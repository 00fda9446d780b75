//! A comment's files: fetched by the route that this token has, and never with the credential where it does not belong.

use std::path::{Path, PathBuf};

use crate::endpoint::Endpoint;
use crate::main_job::png;
use crate::world::{AssetRequest, ITEM, REPOSITORY};

const PUBLIC: &str = "acme/open";
const PUBLIC_ITEM: &str = "acme/open#3";
const BUCKET: &str = "github-production-user-asset-6210df.s3.amazonaws.com";

/// The paths that a delivered text names, in order.
fn saved(text: &str) -> Vec<PathBuf> {
    text.split("saved at `").skip(1).filter_map(|rest| Some(PathBuf::from(rest.split_once('`')?.0))).collect()
}

#[track_caller]
fn assert_saved(text: &str, bytes: &[u8]) {
    let paths = saved(text);
    assert_eq!(paths.len(), 1, "{text}");
    assert_eq!(std::fs::read(&paths[0]).unwrap(), bytes, "{text}");
}

/// The requests as `HOST AUTHORIZATION`.
fn hops(requests: &[AssetRequest]) -> Vec<String> {
    let shown = |request: &AssetRequest| {
        format!("{} {}", request.host, if request.with_authorization { "bearer" } else { "plain" })
    };
    requests.iter().map(shown).collect()
}

#[test]
fn a_comment_with_an_image_on_a_private_repository_reaches_the_pane_with_the_file_once() {
    // Field reports A1, A2, A5, A6 and A8: hidden from tokens, sent on to S3, which takes no second credential.
    let endpoint = Endpoint::begin();
    let image = endpoint.world.github.add_image(REPOSITORY, png());
    let response = endpoint.say(&format!("It squeaks here:\r\n\r\n![image]({image})"));
    let text = endpoint.wait_submitted("It squeaks here:");
    assert_saved(&text, &png());
    assert!(text.contains("(image/png, "), "{text}");
    let path = saved(&text).remove(0);
    assert_eq!(path.extension().and_then(|extension| extension.to_str()), Some("png"));

    (0..3).for_each(|_| assert_eq!(endpoint.hook.redeliver(&response.guid).status, 200));
    endpoint.wait_for_the_lane();
    assert_eq!(endpoint.agent.submitted().len(), 2, "{:?}", endpoint.agent.submitted());
    let requests = endpoint.world.github.asset_requests();
    assert_eq!(hops(&requests), ["github.com bearer".to_owned(), format!("{BUCKET} plain")]);
    let comments = endpoint.world.github.comments(ITEM);
    assert!(comments.iter().all(|comment| comment.author == "dana"), "a second record: {comments:?}");
    assert!(endpoint.world.github.writes().is_empty());
}

#[test]
fn a_token_that_gets_404_takes_the_signed_url_of_the_rendered_comment() {
    // Field report A1: fine-grained and app tokens.
    let endpoint = Endpoint::begin();
    endpoint.world.github.hide_files_from_the_token();
    let image = endpoint.world.github.add_image(REPOSITORY, png());
    endpoint.say(&format!("It squeaks here: <img width=\"600\" src=\"{image}\">"));
    assert_saved(&endpoint.wait_submitted("It squeaks here"), &png());
    let requests = endpoint.world.github.asset_requests();
    assert_eq!(hops(&requests), ["github.com bearer", "private-user-images.githubusercontent.com plain"]);
}

#[test]
fn an_image_in_a_description_is_found_in_the_rendered_description() {
    let endpoint = Endpoint::begin();
    endpoint.world.github.hide_files_from_the_token();
    let image = endpoint.world.github.add_old_image(REPOSITORY, png());
    endpoint.world.github.describe(ITEM, &format!("See for yourself\n\n{image}"));
    assert_eq!(endpoint.hook.deliver("issues", &endpoint.world.github.opened_event(ITEM)).status, 202);
    assert_saved(&endpoint.wait_submitted("See for yourself"), &png());
}

#[test]
fn a_file_that_no_route_reaches_is_named_with_its_url() {
    // `files` have no signed URL in a rendered body (platform-facts E3).
    let endpoint = Endpoint::begin();
    endpoint.world.github.hide_files_from_the_token();
    let log = endpoint.world.github.add_file(REPOSITORY, "squeak.log", "text/plain", b"squeak\n".to_vec());
    endpoint.say(&format!("The log: [squeak.log]({log})"));
    let text = endpoint.wait_submitted("The log:");
    let line = "not fetched (not-reachable-with-this-token): GitHub does not show it to this token (you may try the URL \
                yourself)";
    assert!(text.contains(&format!("{line} — {log}")), "{text}");
    assert_eq!(saved(&text), Vec::<PathBuf>::new());
}

#[test]
fn every_shape_of_file_is_fetched_in_order_each_once() {
    // Field report A3: only images were looked for.
    let endpoint = Endpoint::begin();
    let github = &endpoint.world.github;
    let bytes = |number: u8| [&b"file number "[..], &[b'0' + number]].concat();
    let urls = [
        github.add_file(REPOSITORY, "one.log", "text/plain", bytes(1)),
        github.add_old_file(REPOSITORY, "two.txt", "text/plain", bytes(2)),
        github.add_old_image(REPOSITORY, png()),
    ];
    endpoint.say(&format!("[a]({}), {} and {}.\n\nAgain: {0}", urls[0], urls[1], urls[2]));
    let text = endpoint.wait_submitted("Again:");
    let contents: Vec<Vec<u8>> = saved(&text).iter().map(|path| std::fs::read(path).unwrap()).collect();
    assert_eq!(contents, [bytes(1), bytes(2), png()], "{text}");
    let first_hops = github.asset_requests().into_iter().filter(|request| request.host == "github.com");
    assert_eq!(first_hops.count(), 3);
}

#[test]
fn a_public_repositorys_file_needs_no_luck_with_the_token() {
    let endpoint = Endpoint::with_config(&format!("[github]\nrepositories = [\"{REPOSITORY}\", \"{PUBLIC}\"]"));
    endpoint.world.github.add_repository(PUBLIC, false);
    endpoint.world.github.add_issue(PUBLIC_ITEM, "In the open");
    endpoint.world.github.hide_files_from_the_token();
    let agent = endpoint.world.claude();
    crate::endpoint::bind(&endpoint.world, PUBLIC_ITEM, &agent);
    let image = endpoint.world.github.add_image(PUBLIC, png());
    let event = endpoint.said_on(PUBLIC_ITEM, "dana", &format!("Everybody may see {image}"));
    assert_eq!(endpoint.hook.deliver("issue_comment", &event).status, 202);
    assert_saved(&endpoint.wait_submitted_to(&agent, "Everybody may see"), &png());
}

#[test]
fn a_file_that_is_here_already_is_not_asked_for_again() {
    let endpoint = Endpoint::begin();
    let image = endpoint.world.github.add_image(REPOSITORY, png());
    endpoint.say(&format!("First {image}"));
    let first = saved(&endpoint.wait_submitted("First"));
    let requests = endpoint.world.github.asset_requests().len();
    endpoint.say(&format!("Second {image}"));
    assert_eq!(saved(&endpoint.wait_submitted("Second")), first);
    assert_eq!(endpoint.world.github.asset_requests().len(), requests);
}

#[test]
fn a_file_that_somebody_changed_on_the_disk_is_fetched_again() {
    let endpoint = Endpoint::begin();
    let image = endpoint.world.github.add_image(REPOSITORY, png());
    endpoint.say(&format!("First {image}"));
    let path = saved(&endpoint.wait_submitted("First")).remove(0);
    overwrite(&path);
    endpoint.say(&format!("Second {image}"));
    let text = endpoint.wait_submitted("Second");
    assert_saved(&text, &png());
}

fn overwrite(path: &Path) {
    std::fs::remove_file(path).unwrap();
    std::fs::write(path, b"something else").unwrap();
}

#[test]
fn urls_in_code_and_links_to_elsewhere_are_words() {
    // Field report A7: a token sent to any URL in a comment.
    let endpoint = Endpoint::begin();
    let image = endpoint.world.github.add_image(REPOSITORY, png());
    let path = image.strip_prefix("https://github.com").unwrap();
    endpoint.say(&format!(
        "Only words:\n```\n{image}\n```\n`{image}` <https://github.com/settings/tokens> https://evil.example{path} \
         https://github.com@evil.example{path} http://github.com{path} {image}/../../../acme"
    ));
    let text = endpoint.wait_submitted("Only words:");
    assert!(!text.contains("attachments]"), "{text}");
    assert_eq!(endpoint.world.github.asset_requests(), []);
}

#[test]
fn of_a_stranger_nothing_is_fetched_and_nothing_is_kept() {
    let endpoint = Endpoint::begin();
    let image = endpoint.world.github.add_image(REPOSITORY, png());
    let event = endpoint.said_on(ITEM, "mallory", &format!("Run this quickly {image}"));
    assert_eq!(endpoint.hook.deliver("issue_comment", &event).status, 202);
    endpoint.wait_for_the_lane();
    assert_eq!(endpoint.agent.submitted().len(), 1);
    assert_eq!(endpoint.world.github.asset_requests(), []);
    assert_eq!(endpoint.world.state_holding("Run this quickly"), Vec::<PathBuf>::new());
    assert_eq!(endpoint.world.state_holding(&image), Vec::<PathBuf>::new());
    assert!(endpoint.inbox().iter().any(|line| line.ends_with("refused stranger")), "{:?}", endpoint.inbox());
}
