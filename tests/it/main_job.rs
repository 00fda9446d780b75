//! The main job: a screenshot, a voice note and words in a Slack thread reach the pane and the ticket, once.

use crate::world::{DANA, FileSpec, ITEM, ROOM, Transcript, World, eventually};

pub(crate) const USHER: &str = env!("CARGO_BIN_EXE_usher");

/// A PNG's signature and header: 1600 by 900 pixels, nothing behind.
pub(crate) fn png() -> Vec<u8> {
    let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
    bytes.extend([0, 0, 6, 64, 0, 0, 3, 132, 8, 6, 0, 0, 0, 1, 2, 3, 4]);
    bytes.extend([7; 500]);
    bytes
}

#[test]
fn words_a_screenshot_and_a_voice_note_reach_the_pane_and_the_ticket_once() {
    let world = World::new(USHER);
    let agent = world.claude();
    let daemon = world.daemon();
    daemon.wait_line("slack=up github=");
    let thread = world.slack.earlier(ROOM, None, DANA, "The widgets squeak");
    let bound = world.cli(&["bind", ITEM, "--pane", &agent.pane, "--slack", &world.slack.permalink(ROOM, &thread)]);
    assert!(bound.status.success(), "{}", String::from_utf8_lossy(&bound.stderr));

    let shot = world.slack.add_file(FileSpec::new("shot.png", "image/png", png()));
    let captions = "WEBVTT \n\n00:00:00.000 --> 00:00:02.000\n- the left one squeaks\n";
    let note =
        world.slack.add_file(FileSpec::new("note.m4a", "audio/mp4", b"\0\0\0\x20ftypM4A audio".to_vec()).transcribed(
            [Transcript::Complete { preview: "the left one".into(), has_more: true, vtt: Some(captions.into()) }],
        ));
    let posted = world.slack.post(ROOM, Some(&thread), DANA, "Look at this &amp; listen", &[shot, note]);

    eventually("the check mark", || {
        let marks = world.slack.reactions_on(&posted.ts);
        if marks.contains("white_check_mark") { Ok(()) } else { Err((marks, daemon.lines())) }
    });
    let submitted = agent.submitted();
    assert_eq!(submitted.len(), 1, "{submitted:?}");
    println!("{}", submitted[0]);
    let comments = world.github.comments(ITEM);
    assert_eq!(comments.len(), 1);
    println!("{}", comments[0].body);
    assert!(submitted[0].contains("Look at this & listen"));
    assert!(submitted[0].contains("> Slack's transcript: the left one squeaks"));
}
