//! The daemon's lock: one usher a state root.
//!
//! Owns taking it and naming who has it. It must not know what the root is for.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};

use rustix::fs::{FlockOperation, flock};

use super::{Layout, private_file};

/// The right to be the one daemon of a state root; ends with the value, and with the process however that ends.
///
/// The kernel's lock, not the existence of a file: an unclean end leaves nothing to clean up (field report O6). The
/// file is closed on exec, so that no child keeps the lock.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// Why the lock was not taken.
#[derive(Debug, thiserror::Error)]
pub enum NotTaken {
    /// Another daemon has it.
    #[error("another usher{} has the state root {root}: stop it, or give this one another [state] root", process(*.pid))]
    Held {
        /// Its process id, once it has written it.
        pid: Option<u32>,
        /// The root.
        root: String,
    },
    /// It cannot be known.
    #[error("the lock {path} cannot be taken: make the state root writable for usher, on a local disk")]
    Failed {
        /// The lock file.
        path: String,
        /// What the system said.
        source: io::Error,
    },
}

fn process(pid: Option<u32>) -> String {
    pid.map(|pid| format!(" (process {pid})")).unwrap_or_default()
}

impl Lock {
    /// Takes the lock of a prepared root, or says who has it.
    pub fn take(layout: &Layout) -> Result<Self, NotTaken> {
        let path = layout.lock_file();
        let failed = |source: io::Error| NotTaken::Failed { path: path.display().to_string(), source };
        let mut file = private_file().open(&path).map_err(failed)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(NotTaken::Held { pid: written_pid(&mut file), root: layout.root().display().to_string() });
            }
            Err(errno) => return Err(failed(errno.into())),
        }
        write_pid(&mut file).map_err(failed)?;
        Ok(Self { _file: file })
    }
}

fn write_pid(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())
}

fn written_pid(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(20).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn prepared() -> (tempfile::TempDir, Layout) {
        let directory = tempfile::tempdir().unwrap();
        let layout = Layout::new(directory.path());
        layout.prepare().unwrap();
        (directory, layout)
    }

    #[test]
    fn the_second_daemon_is_told_who_has_the_root() {
        let (_directory, layout) = prepared();
        let lock = Lock::take(&layout).unwrap();
        let refused = Lock::take(&layout).unwrap_err();
        let sentence = refused.to_string().replace(&layout.root().display().to_string(), "ROOT");
        let pid = std::process::id();
        assert_eq!(
            sentence,
            format!(
                "another usher (process {pid}) has the state root ROOT: stop it, or give this one another [state] root"
            )
        );
        drop(lock);
        assert!(Lock::take(&layout).is_ok());
    }

    #[test]
    fn a_lock_file_that_was_left_behind_blocks_nobody() {
        let (_directory, layout) = prepared();
        fs::write(layout.lock_file(), "1\nand more that an older one wrote").unwrap();
        let _lock = Lock::take(&layout).unwrap();
        assert_eq!(fs::read_to_string(layout.lock_file()).unwrap(), format!("{}\n", std::process::id()));
    }

    #[test]
    fn a_lock_that_cannot_be_known_is_not_a_held_one() {
        let layout = Layout::new("/nowhere/at/all");
        assert!(matches!(Lock::take(&layout), Err(NotTaken::Failed { .. })));
    }
}
