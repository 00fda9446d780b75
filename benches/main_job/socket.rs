//! From the event to its ack: the message is durable by then.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::Row;
use super::daemon::{rate, sleep_until, until};
use super::pane::{Stage, large};
use super::samples::{Samples, ms};
use super::world::{Behaviour, DANA, PRIVATE_ROOM, World};

/// The downloads last longer than the events: ten files at 4 MiB a second each take six seconds.
pub(crate) fn acks_while_files_download() -> Row {
    let stage = Stage::new("attachments.parallel = 10");
    let files = stage.stored(large(10, Behaviour::Slow(4 * 1024 * 1024)));
    stage.post("Look at these", &files);
    until(|| stage.world.slack.file_requests().len() == 10);
    let times = acks(&stage.world, 2_500, Duration::from_millis(2));
    assert_eq!(stage.lines(0), 0, "the files still download");
    let measured = format!("p50 {}, p99 {}", ms(times.median()), ms(times.at(0.99)));
    Row { work: "durable ack at 500/s while ten 25 MiB files download", target: "p99 < 20 ms", measured }
}

/// At most fifty events wait for their ack.
pub(crate) fn acks_a_second() -> Row {
    let stage = Stage::new("");
    let slack = &stage.world.slack;
    let (before, count) = (slack.ack_count(), 8_000);
    let started = Instant::now();
    for sent in 0..count {
        while sent >= slack.ack_count() - before + 50 {
            std::thread::yield_now();
        }
        say_something(&stage.world);
    }
    until(|| slack.ack_count() - before == count);
    Row { work: "durable acks a second, window 50", target: "> 5,000", measured: rate(count, started.elapsed()) }
}

/// Sends events at a steady pace; how long each took to its ack.
fn acks(world: &World, count: u32, apart: Duration) -> Samples {
    let started = Instant::now();
    let sent: HashMap<String, Instant> = (0..count)
        .map(|number| {
            sleep_until(started + apart * number);
            let now = Instant::now();
            (say_something(world), now)
        })
        .collect();
    until(|| world.slack.acks().iter().filter(|ack| sent.contains_key(&ack.envelope_id)).count() == sent.len());
    let acks = world.slack.acks();
    Samples::new(acks.iter().filter_map(|ack| Some(ack.at.duration_since(*sent.get(&ack.envelope_id)?))))
}

/// Dana speaks in a room that belongs to no work item: the message is stored, acked and then refused.
fn say_something(world: &World) -> String {
    let posted = world.slack.post(PRIVATE_ROOM, None, DANA, "The widgets squeak since Friday, after lunch", &[]);
    posted.envelopes[0].id.clone()
}
