//! The submit: the guard once more, milliseconds before the key, then the key.
//!
//! Owns the decision whether the key may be pressed with our text in the composer. It must not know what proves the
//! submission.

use super::Tmux;
use super::guard::Ground;
use super::hold::Hold;
use super::paste::{Pasted, Trace};
use super::profile::Composer;
use super::screen::Screen;

/// The key was pressed: only the submit makes it, only the confirmation takes it.
#[derive(Debug)]
pub struct Submitted {
    pub(super) ground: Box<Ground>,
    pub(super) trace: Trace,
    /// The screen right before the key.
    pub(super) screen: Screen,
}

/// How a submit ended.
#[derive(Debug)]
pub enum Submit {
    /// The key was pressed, or a person had already submitted or removed our text: the confirmation tells.
    Pressed(Submitted),
    /// The key was not pressed; our text still stands in the composer.
    Held(Pasted, Hold),
}

impl Tmux {
    /// Presses the profile's key, if the pane still is as it must be.
    pub async fn submit(&self, pasted: Pasted) -> Submit {
        match self.press(&pasted.ground, &pasted.trace, &pasted.screen).await {
            Ok(screen) => Submit::Pressed(Submitted { ground: pasted.ground, trace: pasted.trace, screen }),
            Err(hold) => Submit::Held(pasted, hold),
        }
    }

    /// Guards and presses; returns the screen right before the key. `before`: the last screen that was seen.
    pub(super) async fn press(&self, ground: &Ground, trace: &Trace, before: &Screen) -> Result<Screen, Hold> {
        if ground.profile.is_blind() && ground.is_raw().await {
            // Nothing on the screen or in a state file is judged for this agent, and tmux checks all the rest in the
            // same command as the key: a look of our own would only cost time.
            match self.press_guarded(ground, ground.profile.submit_keys(None, "")).await {
                Err(Hold::InMode) => {}
                pressed => return pressed.map(|()| before.clone()),
            }
        }
        let facts = self.stand(&ground.session, &ground.profile).await?;
        let screen = facts.view.screen;
        if ground.profile.composer == Some(Composer::ClaudeBox) {
            let prompt = screen.prompt_box().ok_or(Hold::NoPrompt)?;
            if !prompt.shell && !trace.is_shown(&screen, before, &ground.profile) {
                // Ours is gone: the key would submit whatever a person types now.
                return Ok(screen);
            }
            if prompt.shell || !trace.is_alone(&prompt, &ground.profile) {
                return Err(Hold::Typing);
            }
        }
        let version = facts.state.as_ref().and_then(|state| state.version.as_deref());
        self.press_guarded(ground, ground.profile.submit_keys(version, &facts.view.title)).await?;
        Ok(screen)
    }
}
