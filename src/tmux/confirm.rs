//! The verdict: whether the agent took the message.
//!
//! Owns the wait for evidence and the repetition of the key; the text is never pasted again (a second paste doubles it).
//! "Sent" is only said of evidence that names the message (field reports M15 and M16).

use std::fmt;
use std::time::{Duration, Instant};

use super::Tmux;
use super::paste::pauses;
use super::screen::Screen;
use super::submit::Submitted;
use super::transcript::Transcript;
use super::view;

/// How long a key may take to show an effect before it is pressed again: evidence came after 261 ms at most.
const KEY_WAIT: Duration = Duration::from_millis(1500);

/// How often the key is pressed again.
const KEY_RETRIES: u32 = 2;

/// What proves a submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evidence {
    /// A line of the agent's transcript holds the message.
    Transcript,
    /// The agent's own queue holds the message.
    Queue,
    /// The screen changed as it does after a submit. Weaker: this agent leaves nothing durable that usher reads.
    Screen,
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Transcript => "the agent's transcript names it",
            Self::Queue => "the agent's queue holds it",
            Self::Screen => "the screen changed after the key",
        })
    }
}

/// How a delivery ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The agent has the message.
    Submitted {
        /// What proves it.
        by: Evidence,
    },
    /// The key was pressed and nothing proves that it was taken: a person must look. The reason.
    Unsure(&'static str),
}

impl Tmux {
    /// Waits for evidence, for `evidence` at most; presses the key again, after the guard, while our text still waits.
    pub async fn confirm(&self, submitted: Submitted) -> Verdict {
        let deadline = Instant::now() + self.settings.evidence;
        let mut proof = Proof::of(&submitted);
        let mut pressed = (Instant::now(), 0);
        for pause in pauses() {
            if let Some(by) = self.look_for(&mut proof, &submitted).await {
                return Verdict::Submitted { by };
            }
            if Instant::now() >= deadline {
                break;
            }
            if pressed.0.elapsed() >= KEY_WAIT && pressed.1 < KEY_RETRIES {
                self.press_again(&submitted).await;
                pressed = (Instant::now(), pressed.1 + 1);
            }
            tokio::time::sleep(pause).await;
        }
        Verdict::Unsure(proof.what_is_missing())
    }

    async fn look_for(&self, proof: &mut Proof, submitted: &Submitted) -> Option<Evidence> {
        match proof {
            Proof::Transcript(transcript) => {
                let (mut moved, nonce) = (transcript.clone(), submitted.trace.nonce.clone());
                let looked = tokio::task::spawn_blocking(move || (moved.look(&nonce).ok().flatten(), moved)).await;
                let (found, moved) = looked.ok()?;
                *transcript = moved;
                found
            }
            Proof::Screen(before) => {
                let session = &submitted.ground.session;
                let view = view::look(&session.socket, &session.pane, self.settings.timeout).await.ok()?;
                let changed = match &submitted.ground.profile.empty_composer {
                    Some(ghost) => view.screen.shows_at_the_bottom(ghost),
                    None => view.screen != *before,
                };
                changed.then_some(Evidence::Screen)
            }
        }
    }

    /// A pane that is held now is looked at again at the next turn.
    async fn press_again(&self, submitted: &Submitted) {
        drop(self.press(&submitted.ground, &submitted.trace, &submitted.screen).await);
    }
}

/// Where the evidence is looked for.
enum Proof {
    Transcript(Transcript),
    Screen(Screen),
}

impl Proof {
    fn of(submitted: &Submitted) -> Self {
        let transcript = submitted.ground.transcript.clone().map(Self::Transcript);
        transcript.unwrap_or_else(|| Self::Screen(submitted.screen.clone()))
    }

    fn what_is_missing(&self) -> &'static str {
        match self {
            Self::Transcript(_) => "the message was pasted, but the agent's transcript does not name it",
            Self::Screen(_) => "the submit key was pressed, but the pane did not change",
        }
    }
}
