//! The effects on a pane that looks and speaks like Claude Code: its prompt box, its state file, its transcript.

use std::time::{Duration, SystemTime};

use super::world::{World, text};
use crate::core::session::Session;
use crate::tmux::{Aftermath, Evidence, Hold, Paste, Pasted, Settings, Submit, Tmux, Verdict, line_feeds};

const IDLE: &str = r#""status":"idle""#;
const WAITING: &str = r#""status":"waiting","waitingFor":"permission prompt""#;
const TAKEN: &str = r#"{"type":"user","message":{"content":"[usher 7f3a9c2e] reply"}}"#;

async fn claude_session(world: &World) -> Session {
    world.usher().find(&world.socket(), &"%0".parse().unwrap(), None).await.unwrap()
}

async fn paste_into_claude(world: &World) -> Pasted {
    let clear = world.usher().guard(&claude_session(world).await).await.unwrap();
    match world.usher().paste(clear, &text("7f3a9c2e")).await {
        Paste::Seen(pasted) => pasted,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn claude_is_believed_by_its_transcript() {
    let world = World::claude(IDLE);
    let usher = world.usher();
    let Submit::Pressed(submitted) = usher.submit(paste_into_claude(&world).await).await else { panic!("held") };
    let answer = tokio::join!(usher.confirm(submitted), async {
        world.eventually(|world| world.got().ends_with("end]\u{1b}[201~\u{18}\n"));
        world.write_transcript(TAKEN);
    });
    assert_eq!(answer.0, Verdict::Submitted { by: Evidence::Transcript });
}

#[tokio::test]
async fn without_evidence_the_key_is_repeated_but_not_the_text_and_the_verdict_is_unsure() {
    let world = World::claude(IDLE);
    let patient = Tmux::new(Settings { evidence: Duration::from_millis(1800), ..world.settings() });
    let Submit::Pressed(submitted) = patient.submit(paste_into_claude(&world).await).await else { panic!("held") };
    assert!(matches!(patient.confirm(submitted).await, Verdict::Unsure(_)));
    world.eventually(|world| world.got().matches('\u{18}').count() == 2);
    assert_eq!(world.got().matches("[usher 7f3a9c2e]").count(), 1);
}

#[tokio::test]
async fn a_dialog_of_claude_gets_neither_text_nor_key() {
    let world = World::claude(WAITING);
    let dialog = Hold::Dialog("permission prompt".to_owned());
    let session = claude_session(&world).await;
    assert_eq!(world.usher().guard(&session).await.unwrap_err(), dialog);
    world.stays_untouched();

    world.say(IDLE);
    let pasted = paste_into_claude(&world).await;
    world.say(WAITING);
    let Submit::Held(pasted, hold) = world.usher().submit(pasted).await else { panic!("pressed") };
    assert_eq!(hold, dialog);
    assert!(!world.got().contains("end]"), "the key was pressed");
    world.say(IDLE);
    assert!(matches!(world.usher().submit(pasted).await, Submit::Pressed(_)));
}

#[tokio::test]
async fn after_a_crash_what_became_of_the_text_is_found_out() {
    let world = World::claude(IDLE);
    let usher = Tmux::new(Settings { evidence: Duration::from_millis(300), ..world.settings() });
    let (session, since) = (claude_session(&world).await, SystemTime::now());
    let lines = line_feeds(&text("7f3a9c2e"));
    let ask = async |nonce: &str| usher.after_crash(&session, nonce, lines, since).await;
    assert!(matches!(ask("7f3a9c2e").await, Aftermath::Absent));
    drop(paste_into_claude(&world).await);
    assert!(matches!(ask("00000000").await, Aftermath::Unknown(_)));
    assert!(matches!(ask("7f3a9c2e").await, Aftermath::InComposer(_)));
    world.say(WAITING);
    assert!(matches!(ask("7f3a9c2e").await, Aftermath::Held(Hold::Dialog(_))));
    world.write_transcript(TAKEN);
    assert!(matches!(ask("7f3a9c2e").await, Aftermath::Delivered(Evidence::Transcript)));
}
