//! `make demo`: the main job, from a post in Slack to the agent's pane and the ticket, before your eyes.
//!
//! Slack and GitHub are the fake world of the tests, in this process. Everything else is real: the usher binary that was
//! built beside this program, the tmux server, the pane. The agent in it is a stand-in that behaves as Claude Code does.
//! What the demo says it has looked at; it ends with 0 only when all of it was so, and takes everything away again.
#![expect(clippy::print_stdout, clippy::indexing_slicing, reason = "it shows something, and a wrong step must end it")]

mod picture;
mod stage;
#[path = "../../tests/it/world/mod.rs"]
mod world;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::json;
use sha2::{Digest as _, Sha256};

use stage::Stage;
use world::{Agent, DANA, Daemon, FileSpec, ITEM, Posted, ROOM, Transcript, World, eventually};

const WORDS: &str = "The left widget squeaks since Friday &amp; only after lunch. Look, and listen.";
const CAPTIONS: &str = "WEBVTT\n\n00:00:00.000 --> 00:00:01.000\n- hear that? it's the left one,\n\n\
                        00:00:01.000 --> 00:00:02.000\n- every time the belt starts\n";

fn main() {
    let mut stage = Stage::open("usher: what people say on Slack reaches the agent's terminal, and the ticket");
    stage.tell(
        "Slack and GitHub live in this process; usher, tmux and the pane are real; a stand-in plays Claude Code.",
    );
    let world = World::new(usher());
    clean_up_when_interrupted(&world);
    let (daemon, agent, thread) = set_up(&mut stage, &world);
    a_message_with_files_arrives(&mut stage, &world, &agent, &thread);
    a_message_waits_for_a_dialog(&mut stage, &world, &agent, &thread);
    everything_ends(stage, world, daemon);
}

fn set_up(stage: &mut Stage, world: &World) -> (Daemon, Agent, String) {
    stage.scene("An agent works in a pane, and usher is told whom it works for");
    let daemon = world.daemon();
    stage.tell("$ usher run");
    let ready = daemon.wait_line("slack=up github=");
    stage.quote(ready.find("ready ").map_or("", |at| &ready[at..]));
    let agent = world.claude();
    let thread = world.slack.earlier(ROOM, None, DANA, "The widgets squeak");
    let link = world.slack.permalink(ROOM, &thread);
    stage.tell(&format!("$ usher bind {ITEM} --pane {} --slack {link}", agent.pane));
    let bound = world.cli(&["bind", ITEM, "--pane", &agent.pane, "--slack", &link]);
    stage.quote(&said(&bound));
    stage.prove("the ticket, the pane and the Slack thread belong together", bound.status.success());
    (daemon, agent, thread)
}

fn a_message_with_files_arrives(stage: &mut Stage, world: &World, agent: &Agent, thread: &str) {
    stage.scene("Dana posts words, a screenshot and a voice note in the thread");
    let shot = FileSpec::new("Screenshot today.png", "image/png", picture::png());
    let transcript = Transcript::Complete { preview: "hear that?".into(), has_more: true, vtt: Some(CAPTIONS.into()) };
    let note = FileSpec::new("voice note.wav", "audio/wav", picture::wav()).transcribed([transcript]);
    let files = [world.slack.add_file(shot), world.slack.add_file(note)];
    stage.quote(&WORDS.replace("&amp;", "&"));
    if stage.in_colour {
        picture::drawn().for_each(|line| stage.quote(&line));
    }
    stage.quote("📎 Screenshot today.png   📎 voice note.wav (one second, transcribed by Slack)");
    let posted = world.slack.post(ROOM, Some(thread), DANA, WORDS, &files);
    carried(world, &posted);
    world.slack.redeliver(&posted.envelopes[0], 1);
    stage.tell("… and Slack, as it sometimes does, sends the same event a second time.");

    stage.scene("The pane");
    stage.quote(&screen(world, agent));
    stage.tell("What the agent read:");
    let submitted = agent.submitted();
    let text = submitted.first().map_or("", String::as_str);
    stage.quote(text);
    stage.prove("her words, decoded and inside a frame that they cannot close", text.contains("Friday & only after"));
    stage.prove("Slack's own transcript, verbatim", text.contains("it's the left one, every time the belt starts"));

    stage.scene("The files, saved on this machine");
    let saved = saved_files(&world.dir().join("state/local/attachments/acme--widgets--12"));
    saved.iter().for_each(|file| stage.quote(&file.listed()));
    let hashes: Vec<&str> = saved.iter().map(|file| file.sha256.as_str()).collect();
    let same = [sha256(&picture::png()), sha256(&picture::wav())].iter().all(|hash| hashes.contains(&hash.as_str()));
    stage.prove("both files, byte for byte as Dana posted them", same && saved.len() == 2);
    stage.prove("read-only, and the agent has their paths", saved.iter().all(|file| file.is_read_only_in(text)));

    stage.scene(&format!("The ticket, {ITEM}"));
    let comments = world.github.comments(ITEM);
    let comment = comments.first().map_or("", |comment| comment.body.as_str());
    stage.quote(comment);
    stage.prove("one comment: her words and the names of the files", comment.contains("Screenshot today.png"));
    let private = [world.dir().to_string_lossy().as_ref(), "files.slack.com", "/state/"].map(|it| comment.contains(it));
    stage.prove("no path, no private link, no token in it", private == [false; 3]);

    stage.scene("The marks on her message");
    stage.quote(&world.slack.reaction_history(&posted.ts).join("  "));
    stage.prove("she sees that it arrived", world.slack.reactions_on(&posted.ts).contains("white_check_mark"));
}

fn a_message_waits_for_a_dialog(stage: &mut Stage, world: &World, agent: &Agent, thread: &str) {
    stage.scene("The agent asks its person something; an Enter now would say yes");
    agent.control(&json!({"status": "waiting"}));
    stage.quote(&screen(world, agent));
    stage.tell("Dana posts again.");
    let typed = agent.raw();
    let posted = world.slack.post(ROOM, Some(thread), DANA, "It stopped. Never mind the right one.", &[]);
    eventually("the hourglass", || world.slack.reactions_on(&posted.ts).contains("hourglass_flowing_sand"));
    stage.tell("$ usher inbox list --open");
    stage.quote(said(&world.cli(&["inbox", "list", "--open"])).trim());
    stage.prove("her message waits, marked with an hourglass; not one byte was typed", agent.raw() == typed);
    agent.control(&json!({"status": "idle"}));
    stage.tell("The dialog closes.");
    carried(world, &posted);
    stage.quote(&agent.submitted().last().cloned().unwrap_or_default());
    let marks = world.slack.reactions_on(&posted.ts);
    stage.prove("now it arrived, and the hourglass is gone", !marks.contains("hourglass_flowing_sand"));
    stage.prove("the dialog was answered by nobody", agent.approvals() == 0);
    let counts = (agent.submitted().len(), world.github.comments(ITEM).len());
    stage.prove("two messages, three events: twice in the pane, twice on the ticket", counts == (2, 2));
}

fn everything_ends(mut stage: Stage, world: World, daemon: Daemon) {
    stage.scene("The end");
    let processes = [daemon.pid().to_string(), world.tmux.run(&["display-message", "-p", "#{pid}"])];
    stage.prove("usher, told to stop, finishes and exits with 0", daemon.sigterm().success());
    stage.prove("no secret in its output or in any file", world.secrets_leaked().is_empty());
    stage.prove("no call to anywhere that it has no business with", world.take_unexpected().is_empty());
    let dir = world.dir().to_owned();
    world.finish();
    eventually("usher and tmux are gone", || !processes.iter().any(|pid| Path::new("/proc").join(pid).exists()));
    stage.prove("nothing is left running, and no file is left", !dir.exists());
    stage.close();
}

/// Waits until the message is in the pane and on the ticket.
fn carried(world: &World, posted: &Posted) {
    eventually("the check mark on the message", || {
        let marks = world.slack.reactions_on(&posted.ts);
        if marks.contains("white_check_mark") { Ok(()) } else { Err((marks, world.output())) }
    });
}

/// What the pane shows, without the empty lines below.
fn screen(world: &World, agent: &Agent) -> String {
    let captured = world.tmux.capture(&agent.pane);
    let lines = captured.lines().map(|line| line.chars().take(100).collect::<String>());
    lines.collect::<Vec<_>>().join("\n").trim_end().to_owned()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.as_slice(), &output.stderr].concat()).into_owned()
}

/// A file that usher saved.
struct Saved {
    path: PathBuf,
    mode: u32,
    size: u64,
    sha256: String,
}

impl Saved {
    fn listed(&self) -> String {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let (mode, size, sha256) = (self.mode, self.size, &self.sha256[..16]);
        format!("{mode:04o} {size:>7} bytes  sha256 {sha256}…  {name}")
    }

    fn is_read_only_in(&self, text: &str) -> bool {
        self.mode == 0o400 && text.contains(self.path.to_string_lossy().as_ref())
    }
}

fn saved_files(dir: &Path) -> Vec<Saved> {
    let paths = fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    let saved = paths.filter_map(|path| {
        let metadata = fs::metadata(&path).ok()?;
        let sha256 = sha256(&fs::read(&path).ok()?);
        Some(Saved { mode: metadata.permissions().mode() & 0o7777, size: metadata.len(), sha256, path })
    });
    let mut saved: Vec<Saved> = saved.collect();
    saved.sort_by(|one, other| one.path.cmp(&other.path));
    saved
}

fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// The usher that Cargo built into the directory above this program's.
fn usher() -> PathBuf {
    let this = std::env::current_exe().expect("a running program has a path");
    let found = this.ancestors().map(|dir| dir.join("usher")).find(|path| path.is_file());
    found.expect("usher is built: `make demo` does it")
}

/// Ctrl-C reaches usher as well, but neither the tmux server nor the files.
fn clean_up_when_interrupted(world: &World) {
    let (dir, socket) = (world.dir().to_owned(), world.tmux.socket().to_owned());
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(tokio::signal::ctrl_c())?;
        Command::new("tmux").arg("-S").arg(socket).arg("kill-server").output()?;
        fs::remove_dir_all(dir)?;
        std::process::exit(130);
        #[expect(unreachable_code, reason = "it gives the closure its type")]
        Ok::<(), std::io::Error>(())
    });
}
