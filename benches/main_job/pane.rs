//! From the event to the pane.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::Row;
use super::daemon::{USHER, memory, rate, sleep_until, until};
use super::samples::{Samples, ms};
use super::world::{Agent, Behaviour, DANA, Daemon, FileSpec, ITEM, REPOSITORY, ROOM, World};

/// GitHub wants a second between two comments: messages that are measured one by one are further apart.
const APART: Duration = Duration::from_millis(1_100);

pub(crate) fn text() -> Row {
    let stage = Stage::new("");
    let times: Vec<Duration> = (0..31).map(|_| stage.one_by_one(&[])).collect();
    let measured = format!("{}, first {}", Samples::new(times[1..].iter().copied()).median_and_p90(), ms(times[0]));
    Row { work: "event to submitted, text", target: "median < 15 ms, first < 50 ms", measured }
}

pub(crate) fn one_image() -> Row {
    let stage = Stage::new("");
    let measured = stage.with_files(11, || image(1, Behaviour::Normal)).median_and_p90();
    Row { work: "with one 1 MiB image", target: "< 30 ms", measured }
}

pub(crate) fn ten_images() -> Row {
    let stage = Stage::new("");
    let measured = stage.with_files(6, || image(10, Behaviour::Normal)).median_and_p90();
    Row { work: "with ten 1 MiB images", target: "< 80 ms", measured }
}

/// As configured by default, and with `attachments.parallel` at ten.
pub(crate) fn ten_images_from_a_slow_host() -> Row {
    let median = |settings| {
        let stage = Stage::new(settings);
        ms(stage.with_files(6, || image(10, Behaviour::Delay(Duration::from_millis(200)))).median())
    };
    let (usual, ten) = (median(""), median("attachments.parallel = 10"));
    let measured = format!("median {usual}; with `attachments.parallel = 10` {ten}");
    Row { work: "with ten from a host that takes 200 ms", target: "< 350 ms", measured }
}

pub(crate) fn thirty_at_once() -> Row {
    let stage = Stage::new("");
    let texts: Vec<String> = (0..30).map(|number| format!("message {number:02}")).collect();
    let time = stage.all(1, &texts);
    let submitted = stage.agents[0].submitted();
    let in_order = submitted.iter().zip(&texts).all(|(submitted, text)| submitted.contains(text.as_str()));
    let how = if in_order && submitted.len() == texts.len() { "in order, once" } else { "NOT in order, once" };
    let measured = format!("{}, {how}, in {}", submitted.len(), ms(time));
    Row { work: "30 messages to one thread at once", target: "30, in order, once", measured }
}

pub(crate) fn one_pane() -> Row {
    let stage = Stage::new("");
    let texts: Vec<String> = (0..200).map(|number| format!("message {number:03}")).collect();
    Row { work: "deliveries a second to one pane", target: "> 50", measured: rate(200, stage.all(1, &texts)) }
}

pub(crate) fn sixteen_panes() -> Row {
    let stage = Stage::with_panes(16, "");
    let texts: Vec<String> = (0..20).map(|number| format!("message {number:02}")).collect();
    Row { work: "deliveries a second to 16 panes", target: "> 200", measured: rate(320, stage.all(16, &texts)) }
}

/// The first message of a fresh daemon.
pub(crate) fn ten_large_files() -> Row {
    let stage = Stage::new("");
    let files = stage.stored(large(10, Behaviour::Normal));
    let time = stage.one_by_one(&files);
    let (peak, rate) = (memory(stage.daemon.pid(), "VmHWM"), 250.0 * 1.048_576 / time.as_secs_f64());
    let measured = format!("{}, peak {peak:.0} MB ({rate:.0} MB/s to disk, hashed)", ms(time));
    Row { work: "10 × 25 MiB in one message", target: "< 0.8 s, < 48 MB peak; a file > 600 MB/s", measured }
}

/// A running usher with its panes, each with a work item and a thread of its own.
pub(crate) struct Stage {
    pub(crate) daemon: Daemon,
    agents: Vec<Agent>,
    threads: Vec<String>,
    pub(crate) world: World,
}

impl Stage {
    pub(crate) fn new(settings: &str) -> Self {
        Self::with_panes(1, settings)
    }

    fn with_panes(count: usize, settings: &str) -> Self {
        let world = World::new(USHER);
        world.config(settings);
        let daemon = world.daemon();
        daemon.wait_line("slack=up github=");
        let (agents, threads) = (0..count).map(|number| bound(&world, number)).unzip();
        Self { daemon, agents, threads, world }
    }

    /// Files as the fake Slack knows them.
    pub(crate) fn stored(&self, files: Vec<FileSpec>) -> Vec<Value> {
        files.into_iter().map(|file| self.world.slack.add_file(file)).collect()
    }

    pub(crate) fn post(&self, text: &str, files: &[Value]) {
        self.world.slack.post(ROOM, Some(&self.threads[0]), DANA, text, files);
    }

    /// How long one message takes to the pane, when nothing else is under way.
    fn one_by_one(&self, files: &[Value]) -> Duration {
        let before = self.written(0);
        let started = Instant::now();
        self.post("Look at this", files);
        until(|| self.written(0) > before);
        let time = started.elapsed();
        sleep_until(started + APART);
        time
    }

    /// Messages with files, each with files of its own; the first is not counted.
    fn with_files(&self, count: usize, files: impl Fn() -> Vec<FileSpec>) -> Samples {
        let times: Vec<Duration> = (0..count).map(|_| self.one_by_one(&self.stored(files()))).collect();
        Samples::new(times[1..].iter().copied())
    }

    /// How long these texts take to each of the first panes, all posted at once.
    fn all(&self, panes: usize, texts: &[String]) -> Duration {
        let started = Instant::now();
        for text in texts {
            for thread in &self.threads[..panes] {
                self.world.slack.post(ROOM, Some(thread), DANA, text, &[]);
            }
        }
        until(|| (0..panes).all(|pane| self.lines(pane) >= texts.len()));
        started.elapsed()
    }

    /// How many bytes the recorder has noted down.
    fn written(&self, pane: usize) -> u64 {
        std::fs::metadata(self.notes(pane)).map_or(0, |metadata| metadata.len())
    }

    /// How many submissions there were.
    pub(crate) fn lines(&self, pane: usize) -> usize {
        std::fs::read(self.notes(pane)).map_or(0, |notes| notes.iter().filter(|byte| **byte == b'\n').count())
    }

    fn notes(&self, pane: usize) -> PathBuf {
        self.world.dir().join(format!("agent-{}/submitted.jsonl", pane + 1))
    }
}

/// A pane with an agent, bound to a ticket and a thread of its own.
fn bound(world: &World, number: usize) -> (Agent, String) {
    let agent = world.agent("robot");
    let item = if number == 0 { ITEM.to_owned() } else { format!("{REPOSITORY}#{}", 100 + number) };
    world.github.add_issue(&item, "A ticket of the benches");
    let thread = world.slack.earlier(ROOM, None, DANA, "A thread of the benches");
    let link = world.slack.permalink(ROOM, &thread);
    let bound = world.cli(&["bind", &item, "--pane", &agent.pane, "--agent", "generic", "--slack", &link]);
    assert!(bound.status.success(), "{}", String::from_utf8_lossy(&bound.stderr));
    (agent, thread)
}

fn image(count: usize, behaviour: Behaviour) -> Vec<FileSpec> {
    pictures(count, 1024 * 1024, behaviour)
}

/// Files of exactly the largest size.
pub(crate) fn large(count: usize, behaviour: Behaviour) -> Vec<FileSpec> {
    pictures(count, 25 * 1024 * 1024, behaviour)
}

fn pictures(count: usize, size: usize, behaviour: Behaviour) -> Vec<FileSpec> {
    let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x06\x40\0\0\x03\x84\x08\x06\0\0\0\x01\x02\x03\x04".to_vec();
    bytes.resize(size, b'x');
    let bytes = bytes::Bytes::from(bytes);
    let file = |number| FileSpec::new(&format!("shot-{number}.png"), "image/png", bytes.clone()).behaving([behaviour]);
    (0..count).map(file).collect()
}
