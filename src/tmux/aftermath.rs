//! After a crash between the paste and the verdict: what became of the text.
//!
//! Owns that one question (design section 3). The answer decides whether to settle, to submit, to paste, or to tell a
//! person: when there is any doubt, nothing is pasted.

use std::time::{Duration, Instant, SystemTime};

use super::Tmux;
use super::confirm::Evidence;
use super::guard::{Clear, Draft};
use super::hold::Hold;
use super::paste::{Pasted, Trace};
use super::profile::{EvidenceSource, Profile};
use super::screen::Screen;
use super::transcript;
use crate::core::session::Session;

/// What became of a text whose delivery was cut off.
#[derive(Debug)]
pub enum Aftermath {
    /// The agent has it.
    Delivered(Evidence),
    /// It stands in the composer: submit it.
    InComposer(Pasted),
    /// It was never pasted: begin again.
    Absent,
    /// The pane cannot be examined now: ask again when the cause is gone.
    Held(Hold),
    /// There is no telling: a person must look. The reason.
    Unknown(&'static str),
}

/// How often transcripts and composer are looked at again; each look reads whole transcripts.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

const GONE: &str = "the pane is gone, and nothing tells what it took";
const NO_PROFILE: &str = "the agent's profile is gone";
const NO_EVIDENCE: &str = "this agent leaves nothing that would tell whether it took the message";
const UNREADABLE: &str = "the agent's transcript cannot be read";
const NOT_OURS: &str = "the prompt box, or what was put away from it, may hold the message";

impl Tmux {
    /// Finds out what became of the message with this nonce. `line_feeds`: [`super::line_feeds`] of its text; `since`: when
    /// its paste was journaled.
    ///
    /// A restart can be faster than the agent: the text may still be on its way through the terminal, or submitted and not
    /// yet in the transcript (up to 261 ms, agents-in-tmux 12). That nothing is there is believed only after `evidence`.
    pub async fn after_crash(&self, session: &Session, nonce: &str, line_feeds: usize, since: SystemTime) -> Aftermath {
        let Ok(profile) = self.profile(session) else { return Aftermath::Unknown(NO_PROFILE) };
        let Some(EvidenceSource::ClaudeTranscript) = profile.evidence else { return Aftermath::Unknown(NO_EVIDENCE) };
        let deadline = Instant::now() + self.settings.evidence;
        loop {
            match self.look_after_crash(session, nonce, line_feeds, since).await {
                Aftermath::Absent | Aftermath::Unknown(NOT_OURS) if Instant::now() < deadline => {
                    tokio::time::sleep(LOOK_AGAIN).await;
                }
                found => return found,
            }
        }
    }

    async fn look_after_crash(
        &self,
        session: &Session,
        nonce: &str,
        line_feeds: usize,
        since: SystemTime,
    ) -> Aftermath {
        match self.recorded(nonce, since).await {
            Some(Some(evidence)) => Aftermath::Delivered(evidence),
            Some(None) => self.in_the_composer(session, Trace::new(nonce, line_feeds)).await,
            None => Aftermath::Unknown(UNREADABLE),
        }
    }

    async fn in_the_composer(&self, session: &Session, trace: Trace) -> Aftermath {
        match self.guard(session).await {
            Ok(Clear { draft: Draft::None, ground, screen }) if !is_put_away(&screen, &ground.profile) => {
                Aftermath::Absent
            }
            Ok(Clear { ground, screen, .. }) if trace.is_shown(&screen, &screen, &ground.profile) => {
                Aftermath::InComposer(Pasted { ground, trace, screen })
            }
            Ok(_) => Aftermath::Unknown(NOT_OURS),
            Err(hold) if hold.is_lasting() => Aftermath::Unknown(GONE),
            Err(hold) => Aftermath::Held(hold),
        }
    }

    /// Whether an agent's transcript names the message; the outer `None`: there is no saying.
    async fn recorded(&self, nonce: &str, since: SystemTime) -> Option<Option<Evidence>> {
        let (folder, nonce) = (self.settings.claude_folder(), nonce.to_owned());
        let search = move || transcript::recorded(&folder, &nonce, since);
        tokio::task::spawn_blocking(search).await.ok()?.ok()
    }
}

fn is_put_away(screen: &Screen, profile: &Profile) -> bool {
    profile.stash.as_ref().is_some_and(|stash| screen.shows(&stash.taken))
}
