//! What an event lacks, and asking GitHub for it.
//!
//! Owns how long the events of one review are waited for, and what is read of GitHub when an event does not say enough:
//! the rest of a review, and the issues that a commented pull request closes. It must not know storage or lanes.

use futures_util::try_join;
use jiff::{SignedDuration, Timestamp};

use super::api::{Api, ApiError};
use super::closing;
use super::event::review_of;
use crate::core::loose::{field, text};
use crate::core::message::{GitHubPlace, Message, Place, Spot};
use crate::core::work_item::WorkItem;

/// A review with N inline comments comes as N + 1 deliveries in any order (platform-facts D); GitHub sends them within a
/// few hundred milliseconds of each other. Each one that comes prolongs the wait, which `inbox` bounds.
const SIBLINGS: SignedDuration = SignedDuration::from_secs(1);

/// Until when more of a message may come by itself; at that moment GitHub is asked for the rest. `None`: it is whole.
pub fn incomplete_until(message: &Message, now: Timestamp) -> Option<Timestamp> {
    let Place::GitHub(place) = &message.place else { return None };
    match place.spot {
        Spot::Review(_) if message.supplement.is_none() => Some(now + SIBLINGS),
        // A comment's event calls the pull request an issue, and tells neither its branch nor what it closes.
        Spot::Comment(_) if is_on_pull_request(message) => Some(now),
        Spot::Review(_) | Spot::Comment(_) | Spot::Description => None,
    }
}

/// The message with what GitHub knows beyond its events.
pub async fn completed(api: &Api, message: &Message, host: Option<&str>) -> Result<Message, ApiError> {
    let Place::GitHub(place) = &message.place else { return Ok(message.clone()) };
    match place.spot {
        Spot::Review(id) => {
            let (review, comments) = try_join!(api.review(&place.item, id), api.review_comments(&place.item, id))?;
            Ok(review_of(message, &review, &comments, host))
        }
        Spot::Comment(_) | Spot::Description => {
            let closes = closes(api, place).await?;
            Ok(Message { place: Place::GitHub(GitHubPlace { closes, ..place.clone() }), ..message.clone() })
        }
    }
}

async fn closes(api: &Api, place: &GitHubPlace) -> Result<Vec<WorkItem>, ApiError> {
    let pull_request = api.pull_request(&place.item).await?;
    let branch = text(field(&pull_request, "head"), "ref").unwrap_or_default();
    Ok(closing::closed_issues(&place.item, text(&pull_request, "body").unwrap_or_default(), branch))
}

/// A link to something said on a pull request has `/pull/` where an issue's has `/issues/`.
fn is_on_pull_request(message: &Message) -> bool {
    let link = message.permalink.as_deref().unwrap_or_default();
    link.split(['?', '#']).next().unwrap_or_default().rsplit('/').nth(1) == Some("pull")
}
