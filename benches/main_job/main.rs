//! `make bench`: what the main job costs, measured at the release binary in the fake world of the tests, beside what
//! design.md section 11 asks for.
//!
//! The fakes run in this process and share the processors with usher: their share is in every number. For the panes the
//! recorder plays an agent that usher has no profile for: no settle delay of a real one, and "submitted" is the moment
//! in which it writes the submission down. A name as an argument measures only the rows whose name contains it.
#![allow(
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a program for people: it prints, and a wrong step must end it"
)]

mod daemon;
mod pane;
mod samples;
mod socket;
#[path = "../../tests/it/world/mod.rs"]
mod world;

use std::fs;
use std::time::Instant;

use usher::core::vtt;

/// One line of the table.
struct Row {
    work: &'static str,
    target: &'static str,
    measured: String,
}

/// A row's short name, and how it is measured.
type Measure = (&'static str, fn() -> Row);

fn main() {
    let measures: [Measure; 14] = [
        ("start", daemon::start),
        ("idle", daemon::idle),
        ("binary", daemon::binary),
        ("text", pane::text),
        ("image", pane::one_image),
        ("ten images", pane::ten_images),
        ("ten slow images", pane::ten_images_from_a_slow_host),
        ("thirty", pane::thirty_at_once),
        ("one pane", pane::one_pane),
        ("sixteen panes", pane::sixteen_panes),
        ("large files", pane::ten_large_files),
        ("acks under load", socket::acks_while_files_download),
        ("acks", socket::acks_a_second),
        ("captions", captions),
    ];
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    println!("{}\n\n| work | to hold | measured |\n|---|---|---|", machine());
    for (name, measure) in measures {
        if name.contains(&only) {
            let Row { work, target, measured } = measure();
            println!("| {work} | {target} | {measured} |");
        }
    }
}

/// Ten megabytes of captions of a talk, three times; the best, as the machine may be busy.
fn captions() -> Row {
    let cue = "00:00:01.000 --> 00:00:03.000\n- <v Dana>the left one squeaks &amp; only after lunch\n\n";
    let file = format!("WEBVTT\n\n{}", cue.repeat(10_000_000 / cue.len()));
    let rates = (0..5).map(|_| {
        let started = Instant::now();
        let words = vtt::words(&file).map_or(0, |words| words.len());
        assert!(words > 1_000_000, "the captions have words");
        file.len() as f64 / 1e6 / started.elapsed().as_secs_f64()
    });
    let best = rates.fold(0.0, f64::max);
    Row { work: "captions", target: "> 500 MB/s", measured: format!("{best:.0} MB/s") }
}

/// The date and the machine.
fn machine() -> String {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let (processors, load, kernel) = (read("/proc/cpuinfo"), read("/proc/loadavg"), read("/proc/sys/kernel/osrelease"));
    let model = processors.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or(" : unknown processor");
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let (date, load) = (jiff::Timestamp::now().strftime("%F"), load.split(' ').next().unwrap_or_default());
    format!(
        "{date}, {cores} × {}, Linux {}, load before {load}",
        model.trim_start_matches([' ', '\t', ':']),
        kernel.trim()
    )
}
