//! Large files cost disk, not memory.

use super::Desk;
use crate::world::{Daemon, FileSpec};

const MIB: usize = 1024 * 1024;

/// The most memory that the daemon ever had, in KiB, as the kernel counts it.
fn peak_kib(daemon: &Daemon) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", daemon.pid())).expect("a running process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    line.trim().trim_end_matches(" kB").parse().expect("a number of KiB")
}

#[test]
fn ten_files_of_25_mib_at_once_stay_under_64_mib_of_memory() {
    let desk = Desk::configured("attachments = { parallel = 10, timeout = '30s' }");
    let body = bytes::Bytes::from(vec![7; 25 * MIB]);
    let files =
        (1..=10).map(|number| FileSpec::new(&format!("{number}.bin"), "application/octet-stream", body.clone()));
    let told = desk.told(&desk.post("Ten large ones", files));
    (0..10).for_each(|index| assert_eq!(told.path(index).metadata().expect("a saved file").len(), 25 * MIB as u64));
    let peak = peak_kib(desk.daemon.as_ref().expect("a running daemon"));
    println!("peak: {peak} KiB");
    assert!(peak < 64 * 1024, "{peak} KiB");
}
