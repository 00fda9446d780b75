//! The effects on a real tmux: what a pane receives, and that a held pane receives nothing.

mod claude;
mod world;

use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use self::world::{RECORDER, SILENT, World, pieces, text};
use super::{Aftermath, Evidence, Hold, NotBindable, Paste, Settings, Sight, Submit, Tmux, Trouble, Verdict};
use crate::core::session::Session;

#[tokio::test]
async fn a_message_arrives_whole_once_and_bracketed() {
    let world = World::ready(RECORDER, "sed");
    let usher = world.usher();
    let Submit::Pressed(submitted) = usher.submit(world.pasted().await).await else { panic!("held") };
    assert_eq!(usher.confirm(submitted).await, Verdict::Submitted { by: Evidence::Screen });
    world.eventually(|world| world.got().ends_with("201~\n"));
    let expected = format!("\u{1b}[200~{}\u{1b}[201~\n", text("7f3a9c2e").as_str());
    assert_eq!(world.got(), expected);
    assert_eq!(world.tmux(&["list-buffers"]), "");
}

#[tokio::test]
async fn pieces_arrive_as_one_text() {
    let world = World::ready(RECORDER, "sed");
    let parts = pieces("ab12", &["[usher ab12] reply\n\nfirst\n", "second\n[usher ab12 end]"]);
    let usher = world.usher();
    let Paste::Seen(pasted) = usher.paste(world.clear().await, &parts).await else { panic!("not seen") };
    assert!(matches!(usher.submit(pasted).await, Submit::Pressed(_)));
    world.eventually(|world| world.got().ends_with("end]\u{1b}[201~\n"));
    let got = world.got().replace("\u{1b}[200~", "").replace("\u{1b}[201~", "");
    assert_eq!(got, format!("{}\n", parts.as_str()));
}

#[tokio::test]
async fn sixty_four_kibibytes_arrive_whole() {
    let world = World::ready(SILENT, "dd");
    let words = format!("[usher ab12] reply\n{}\n[usher ab12 end]", "0123456789abcdef\n".repeat(4096));
    // This receiver shows nothing: the text arrives, usher does not see it and does not submit it.
    let impatient = Tmux::new(Settings { see: Duration::from_millis(50), ..world.settings() });
    let answer = impatient.paste(world.clear().await, &pieces("ab12", &[&words])).await;
    assert!(matches!(answer, Paste::Unseen(_)), "{answer:?}");
    let expected = format!("\u{1b}[200~{}\u{1b}[201~", words.replace('\n', "\r"));
    world.eventually(|world| world.got().len() >= expected.len());
    assert!(world.got() == expected, "the text arrived otherwise, or a key was pressed");
}

async fn holds(line: &str, prepare: &[&[&str]], ready: fn(&World) -> bool, expected: &Hold) {
    let world = World::new(line);
    world.eventually(ready);
    let session = world.session("generic").await;
    for arguments in prepare {
        world.tmux(arguments);
    }
    assert_eq!(&world.usher().guard(&session).await.unwrap_err(), expected);
    assert_eq!(world.usher().look(&session).await, Sight::Held(expected.clone()));
    world.stays_untouched();
}

#[tokio::test]
async fn a_pane_that_must_not_be_typed_into_is_held() {
    let shell = Hold::Shell("sh".to_owned());
    holds("while :; do sleep 0.1; done", &[], |world| world.ask("#{pane_current_command}") == "sh", &shell).await;
    let pager = r#"ln -s "$(command -v sleep)" FILE-less; mkdir FILE.d; mv FILE-less FILE.d/less; exec FILE.d/less 60"#;
    let less = |world: &World| world.ask("#{pane_current_command}") == "less";
    holds(pager, &[], less, &Hold::OtherProgram("less".to_owned())).await;
    holds("exec cat > FILE", &[], |w| w.ask("#{pane_current_command}") == "cat", &Hold::LineMode).await;
    let dd = |world: &World| world.shows("ready");
    holds(SILENT, &[&["select-pane", "-d", "-t", "%0"]], dd, &Hold::InputOff).await;
    holds(SILENT, &[&["set-option", "-w", "synchronize-panes", "on"]], dd, &Hold::Synchronised).await;
}

#[tokio::test]
async fn a_dead_pane_is_held() {
    let world = World::new("read line");
    let session = world.session("generic").await;
    world.tmux(&["send-keys", "-t", "%0", "Enter"]);
    world.eventually(|world| world.ask("#{pane_dead}") == "1");
    assert_eq!(world.usher().guard(&session).await.unwrap_err(), Hold::Dead);
    let again = world.usher().find(&world.socket(), &"%0".parse().unwrap(), Some("generic")).await;
    assert_eq!(again, Err(NotBindable::Dead("%0".parse().unwrap())));
}

#[tokio::test]
async fn a_lost_binding_is_lasting() {
    let world = World::ready(SILENT, "dd");
    let session = world.session("generic").await;
    let other = Session { server_started: session.server_started - 1, ..session.clone() };
    assert_eq!(world.usher().guard(&other).await.unwrap_err(), Hold::Restarted);
    let gone = Session { pane: "%9".parse().unwrap(), ..session.clone() };
    assert_eq!(world.usher().guard(&gone).await.unwrap_err(), Hold::PaneGone);
    world.stays_untouched();
    world.tmux(&["kill-server"]);
    world.eventually(|world| world.tmux(&["list-sessions"]).is_empty());
    assert_eq!(world.usher().guard(&session).await.unwrap_err(), Hold::ServerGone);
}

#[tokio::test]
async fn a_person_is_taken_out_of_copy_mode_after_the_wait() {
    let world = World::ready(SILENT, "dd");
    world.tmux(&["copy-mode", "-t", "%0"]);
    let started = Instant::now();
    world.clear().await;
    assert!(started.elapsed() >= Duration::from_millis(50));
    assert_eq!(world.ask("#{pane_in_mode}"), "0");
    world.stays_untouched();
}

#[tokio::test]
async fn tmux_itself_refuses_what_changed_after_the_guard() {
    for (change, expected) in [
        (["copy-mode", "-t", "%0", ""].as_slice(), Hold::InMode),
        (&["select-pane", "-d", "-t", "%0"], Hold::InputOff),
        (&["set-option", "-w", "synchronize-panes", "on"], Hold::Synchronised),
        (&["respawn-pane", "-k", "-t", "%0", "echo again; exec cat"], Hold::LineMode),
        (&["respawn-pane", "-k", "-t", "%0", "exit"], Hold::Dead),
    ] {
        let world = World::ready(SILENT, "dd");
        let clear = world.clear().await;
        let change: Vec<&str> = change.iter().copied().filter(|word| !word.is_empty()).collect();
        world.tmux(&change);
        world.eventually(|world| expected != Hold::Dead || world.ask("#{pane_dead}") == "1");
        // Right after a respawn tmux may name the program by the command line, and then its own child before the exec.
        let is_cat = |world: &World| world.shows("again") && world.ask("#{pane_current_command}") == "cat";
        world.eventually(|world| expected != Hold::LineMode || is_cat(world));
        match world.usher().paste(clear, &text("7f3a9c2e")).await {
            Paste::NotPasted(hold) => assert_eq!(hold, expected),
            other => panic!("{change:?}: {other:?}"),
        }
        world.stays_untouched();
    }
}

#[tokio::test]
async fn the_key_is_not_pressed_when_the_pane_changed_after_the_paste() {
    let world = World::ready(RECORDER, "sed");
    let pasted = world.pasted().await;
    world.tmux(&["select-pane", "-d", "-t", "%0"]);
    let Submit::Held(pasted, hold) = world.usher().submit(pasted).await else { panic!("pressed") };
    assert_eq!(hold, Hold::InputOff);
    assert!(!world.got().contains("end]"), "the last line was submitted");
    world.tmux(&["select-pane", "-e", "-t", "%0"]);
    assert!(matches!(world.usher().submit(pasted).await, Submit::Pressed(_)));
    world.eventually(|world| world.got().contains("end]"));
}

#[tokio::test]
async fn a_pane_has_one_delivery_at_a_time() {
    let world = World::ready(SILENT, "dd");
    let clear = world.clear().await;
    let session = world.session("generic").await;
    assert_eq!(world.usher().guard(&session).await.unwrap_err(), Hold::Locked);
    drop(clear);
    assert!(world.usher().guard(&session).await.is_ok());
}

#[tokio::test]
async fn a_pane_is_bound_only_with_an_agent_that_has_a_profile() {
    let world = World::ready(SILENT, "dd");
    let find = async |pane: &str, agent| world.usher().find(&world.socket(), &pane.parse().unwrap(), agent).await;
    let sentences = [find("%0", None).await, find("%0", Some("pi")).await, find("%7", None).await]
        .map(|refusal| refusal.unwrap_err().to_string());
    insta::assert_snapshot!(sentences.join("\n"), @r"
    no agent is recognised in pane %0 (dd is in front): start it, or name it with --agent (aider, claude, codex, gemini, generic, opencode)
    there is no agent profile `pi`: use one of aider, claude, codex, gemini, generic, opencode
    there is no pane %7 on this tmux server: run `tmux list-panes -a`, or name its server with --socket
    ");
    let nowhere = world.usher().find(Path::new("/nonexistent/s"), &"%0".parse().unwrap(), None).await;
    assert_eq!(nowhere.unwrap_err(), NotBindable::Tmux(Trouble::NoServer));
}

#[tokio::test]
async fn after_a_crash_an_agent_without_evidence_leaves_no_answer() {
    let world = World::ready(SILENT, "dd");
    let answer = world.usher().after_crash(&world.session("generic").await, "7f3a9c2e", 3, SystemTime::now()).await;
    assert!(matches!(answer, Aftermath::Unknown(_)), "{answer:?}");
    world.stays_untouched();
}
