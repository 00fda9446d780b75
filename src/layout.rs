//! Every path that usher writes, declared once: what it is, whether it may travel to another machine, and why.
//!
//! Owns the state root's shape, the modes of what is in it, and the daemon's lock on it. It must not know what stands
//! in a file. `docs/state.md` is tested against the table.

mod lock;

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};
use rustix::fs::OFlags;

pub use lock::{Lock, NotTaken};

use crate::core::work_item::WorkItem;

/// One path, or one shape of paths, below the state root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GeneratedPath {
    /// Relative to the root; `<slug>` is that of a work item.
    pub path: &'static str,
    /// What stands there.
    pub kind: PathKind,
    /// Whether it may be copied to another machine.
    pub portable: bool,
    /// What it is for, and why it may travel or not.
    pub why: &'static str,
}

/// What stands at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathKind {
    /// A directory, 0700.
    Directory,
    /// A file, 0600.
    File,
}

impl PathKind {
    /// The word in the table.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Directory => "directory",
            Self::File => "file",
        }
    }
}

const LOCAL: &str = "local";
const DATABASE: &str = "local/usher.db";
const LOCK: &str = "local/usher.lock";
const RECORD_KEY: &str = "local/record.key";
const ATTACHMENTS: &str = "local/attachments";
const PORTABLE: &str = "portable";

/// Everything that usher writes. What is not here is not written.
pub const GENERATED_PATHS: &[GeneratedPath] = &[
    GeneratedPath { path: LOCAL, kind: PathKind::Directory, portable: false, why: "what belongs to this machine" },
    GeneratedPath {
        path: DATABASE,
        kind: PathKind::File,
        portable: false,
        why: "the inbox: every message, its stage, bindings, outbox (SQLite). Names panes and processes of this machine",
    },
    GeneratedPath {
        path: "local/usher.db-wal",
        kind: PathKind::File,
        portable: false,
        why: "SQLite's log of the database: a part of it, lost with it",
    },
    GeneratedPath {
        path: "local/usher.db-shm",
        kind: PathKind::File,
        portable: false,
        why: "SQLite's index of that log: made anew at every start",
    },
    GeneratedPath {
        path: LOCK,
        kind: PathKind::File,
        portable: false,
        why: "one daemon a root: the kernel's lock is on this file and ends with the process; the file may stay",
    },
    GeneratedPath {
        path: RECORD_KEY,
        kind: PathKind::File,
        portable: false,
        why: "signs the records on the ledger, so that usher believes only its own: a secret, made at the first start",
    },
    GeneratedPath {
        path: ATTACHMENTS,
        kind: PathKind::Directory,
        portable: false,
        why: "the files that people attached, a directory a work item",
    },
    GeneratedPath {
        path: "local/attachments/<slug>",
        kind: PathKind::Directory,
        portable: false,
        why: "the files of one work item, opaque, with the mode of attachments.mode. The database knows them; copied alone they mean nothing",
    },
    GeneratedPath {
        path: PORTABLE,
        kind: PathKind::Directory,
        portable: true,
        why: "what moves a work item to another machine when it is copied there",
    },
    GeneratedPath {
        path: "portable/<slug>.json",
        kind: PathKind::File,
        portable: true,
        why: "one work item's Slack conversations and roster; adopted at the start where the database does not know it",
    },
];

/// The state root and the paths in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    root: PathBuf,
}

impl Layout {
    /// The layout below a root; nothing is touched.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The state root.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The database.
    pub fn database(&self) -> PathBuf {
        self.root.join(DATABASE)
    }

    /// The file that the daemon's lock is on.
    pub fn lock_file(&self) -> PathBuf {
        self.root.join(LOCK)
    }

    /// The key that signs records.
    pub fn record_key(&self) -> PathBuf {
        self.root.join(RECORD_KEY)
    }

    /// The directory of all fetched files.
    pub fn attachments(&self) -> PathBuf {
        self.root.join(ATTACHMENTS)
    }

    /// The directory of one work item's fetched files.
    pub fn attachments_of(&self, item: &WorkItem) -> PathBuf {
        self.attachments().join(item.slug())
    }

    /// The directory of what may travel.
    pub fn portable(&self) -> PathBuf {
        self.root.join(PORTABLE)
    }

    /// What may travel of one work item.
    pub fn portable_of(&self, item: &WorkItem) -> PathBuf {
        self.portable().join(format!("{}.json", item.slug()))
    }

    /// Makes the directories that are missing, and the database's file, so that SQLite's own umask decides nothing.
    ///
    /// A directory that others may write to is refused: they could put another database or key in its place.
    pub fn prepare(&self) -> anyhow::Result<()> {
        private_directory(&self.root)?;
        for path in [LOCAL, ATTACHMENTS, PORTABLE] {
            private_directory(&self.root.join(path))?;
        }
        let database = self.database();
        private_file().open(&database).with_context(|| format!("{} cannot be written", database.display()))?;
        Ok(())
    }

    /// The key that signs records: drawn once, then the same for ever, so that old records stay known.
    pub fn key(&self) -> anyhow::Result<[u8; 32]> {
        let path = self.record_key();
        match fs::read(&path) {
            Ok(bytes) => bytes.try_into().map_err(|_| {
                anyhow!("{} is damaged: put its backup back, or remove it (records so far are then no longer known as usher's)", path.display())
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let mut key = [0; 32];
                getrandom::fill(&mut key).context("the system gives no random numbers")?;
                write_private(&path, &key)?;
                Ok(key)
            }
            Err(error) => Err(error).with_context(|| format!("{} cannot be read", path.display())),
        }
    }

    /// The table of every generated path, for people.
    pub fn table(&self) -> String {
        let mut table = format!("state root: {}\n\n", self.root.display());
        let width = GENERATED_PATHS.iter().map(|generated| generated.path.len()).max().unwrap_or_default();
        for GeneratedPath { path, kind, portable, why } in GENERATED_PATHS {
            let (kind, travels) = (kind.word(), travels(*portable));
            table.push_str(&format!("{path:width$}  {kind:9}  {travels:8}  {why}\n"));
        }
        table
    }
}

const fn travels(portable: bool) -> &'static str {
    if portable { "portable" } else { "local" }
}

fn private_directory(path: &Path) -> anyhow::Result<()> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.with_context(|| format!("the state directory {} cannot be made", path.display()))?;
    let metadata =
        fs::metadata(path).with_context(|| format!("the state directory {} cannot be read", path.display()))?;
    if metadata.mode() & 0o002 != 0 {
        bail!("others may write to the state directory {}: take that away (chmod o-w) and start again", path.display());
    }
    Ok(())
}

/// How a private file of usher is opened: made with 0600 if missing, never through a link.
fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    options
}

/// Writes a private file, whole or not at all: a new one beside it, synced, then renamed over it.
pub fn write_private(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    replace(path, content).with_context(|| format!("{} cannot be written", path.display()))
}

fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let directory = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy();
    let fresh = directory.join(format!(".{name}.new"));
    let mut file = private_file().open(&fresh)?;
    file.set_len(0)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&fresh, path)?;
    File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    const DOCUMENT: &str = include_str!("../docs/state.md");

    fn prepared() -> (tempfile::TempDir, Layout) {
        let directory = tempfile::tempdir().unwrap();
        let layout = Layout::new(directory.path().join("a/state"));
        layout.prepare().unwrap();
        (directory, layout)
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn the_documentation_has_the_table() {
        let rows = GENERATED_PATHS.iter().map(|GeneratedPath { path, kind, portable, why }| {
            format!("| `{path}` | {} | {} | {why} |", kind.word(), travels(*portable))
        });
        let documented: Vec<&str> = DOCUMENT.lines().filter(|line| line.starts_with("| `")).collect();
        assert_eq!(documented, rows.collect::<Vec<_>>());
    }

    #[test]
    fn every_path_is_a_declared_one() {
        let item: WorkItem = "o/r#1".parse().unwrap();
        let layout = Layout::new("/s");
        let slug = item.slug();
        for path in [
            layout.database(),
            layout.lock_file(),
            layout.record_key(),
            layout.attachments(),
            layout.attachments_of(&item),
            layout.portable(),
            layout.portable_of(&item),
        ] {
            let below = path.strip_prefix("/s").unwrap().to_str().unwrap().replace(&slug, "<slug>");
            assert!(GENERATED_PATHS.iter().any(|generated| generated.path == below), "{below}");
        }
    }

    #[test]
    fn what_it_makes_is_private_and_declared() {
        let (_directory, layout) = prepared();
        for GeneratedPath { path, kind, .. } in GENERATED_PATHS {
            let path = layout.root().join(path);
            if path.exists() {
                assert_eq!(mode(&path), if *kind == PathKind::Directory { 0o700 } else { 0o600 }, "{}", path.display());
            }
        }
        assert!(layout.database().is_file() && layout.attachments().is_dir() && layout.portable().is_dir());
        assert_eq!(mode(layout.root()), 0o700);
        fs::write(layout.database(), b"rows").unwrap();
        layout.prepare().unwrap();
        assert_eq!(fs::read(layout.database()).unwrap(), b"rows");
    }

    #[test]
    fn a_directory_open_to_others_is_refused() {
        let (_directory, layout) = prepared();
        fs::set_permissions(layout.root(), fs::Permissions::from_mode(0o777)).unwrap();
        let sentence = layout.prepare().unwrap_err().to_string();
        assert!(sentence.starts_with("others may write to the state directory"), "{sentence}");
    }

    #[test]
    fn a_private_file_is_replaced_whole_and_never_through_a_link() {
        let (_directory, layout) = prepared();
        let item: WorkItem = "o/r#1".parse().unwrap();
        let (path, elsewhere) = (layout.portable_of(&item), layout.root().join("elsewhere"));
        fs::write(&elsewhere, b"untouched").unwrap();
        symlink(&elsewhere, &path).unwrap();
        write_private(&path, b"a longer first text").unwrap();
        write_private(&path, b"second").unwrap();
        assert_eq!((fs::read(&path).unwrap().as_slice(), mode(&path)), (b"second".as_slice(), 0o600));
        assert_eq!(fs::read(&elsewhere).unwrap(), b"untouched");
        assert_eq!(fs::read_dir(layout.portable()).unwrap().count(), 1);
    }

    #[test]
    fn the_table_is_for_people() {
        insta::assert_snapshot!(Layout::new("/var/lib/usher").table(), @r"
        state root: /var/lib/usher

        local                     directory  local     what belongs to this machine
        local/usher.db            file       local     the inbox: every message, its stage, bindings, outbox (SQLite). Names panes and processes of this machine
        local/usher.db-wal        file       local     SQLite's log of the database: a part of it, lost with it
        local/usher.db-shm        file       local     SQLite's index of that log: made anew at every start
        local/usher.lock          file       local     one daemon a root: the kernel's lock is on this file and ends with the process; the file may stay
        local/record.key          file       local     signs the records on the ledger, so that usher believes only its own: a secret, made at the first start
        local/attachments         directory  local     the files that people attached, a directory a work item
        local/attachments/<slug>  directory  local     the files of one work item, opaque, with the mode of attachments.mode. The database knows them; copied alone they mean nothing
        portable                  directory  portable  what moves a work item to another machine when it is copied there
        portable/<slug>.json      file       portable  one work item's Slack conversations and roster; adopted at the start where the database does not know it
        ");
    }
}
