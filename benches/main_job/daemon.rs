//! The daemon itself: its start, its memory, its file.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::Row;
use super::samples::{Samples, ms};
use super::world::World;

pub(crate) const USHER: &str = env!("CARGO_BIN_EXE_usher");

/// From the start of the process to the moment in which Slack may send events.
pub(crate) fn start() -> Row {
    let started = (0..10).map(|_| {
        let world = World::new(USHER);
        let start = Instant::now();
        let _daemon = world.daemon();
        until(|| world.slack.sockets() == 1);
        start.elapsed()
    });
    Row { work: "start to accepting", target: "< 100 ms", measured: Samples::new(started).median_and_p90() }
}

/// Two seconds after it was ready.
pub(crate) fn idle() -> Row {
    let world = World::new(USHER);
    let daemon = world.daemon();
    daemon.wait_line("slack=up github=");
    sleep(Duration::from_secs(2));
    let measured = format!("{:.1} MB (peak {:.1} MB)", memory(daemon.pid(), "VmRSS"), memory(daemon.pid(), "VmHWM"));
    Row { work: "idle memory", target: "< 16 MB", measured }
}

pub(crate) fn binary() -> Row {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let stripped = folder.path().join("usher");
    Command::new("strip")
        .arg("-o")
        .arg(&stripped)
        .arg(USHER)
        .status()
        .expect("strip is there: it comes with a compiler");
    let [stripped, whole] =
        [stripped.as_path(), Path::new(USHER)].map(|path| fs::metadata(path).map_or(0.0, |it| it.len() as f64 / 1e6));
    let measured = format!("{stripped:.1} MB ({whole:.0} MB with line tables)");
    Row { work: "binary, stripped", target: "< 15 MB", measured }
}

/// A process's memory in MB, by the name of a line in its `/proc/PID/status`.
pub(crate) fn memory(pid: u32, line: &str) -> f64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the process runs");
    let found = status.lines().find(|it| it.starts_with(line)).and_then(|it| it.split_whitespace().nth(1));
    found.and_then(|kib| kib.parse::<f64>().ok()).expect("a size in KiB") * 1024.0 / 1e6
}

/// Looks every 50 µs, which is finer than what is measured.
pub(crate) fn until(mut holds: impl FnMut() -> bool) {
    let limit = Instant::now() + Duration::from_secs(120);
    while !holds() {
        assert!(Instant::now() < limit, "what is measured did not end within two minutes");
        sleep(Duration::from_micros(50));
    }
}

/// Sleeps until then.
pub(crate) fn sleep_until(moment: Instant) {
    sleep(moment.saturating_duration_since(Instant::now()));
}

pub(crate) fn rate(count: usize, time: Duration) -> String {
    format!("{:.0}/s ({count} in {})", count as f64 / time.as_secs_f64(), ms(time))
}
