//! The directory of one work item's files, held open as a handle.
//!
//! Owns temporary files, keeping them without replacing anything, and looking at them again. Every path is resolved
//! below the handle and through no symlink: the agent that reads the files runs as the same user and may plant one
//! (field report X3). It must not know what the files are nor where they come from. Its calls block.

use std::fs::{DirBuilder, File};
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use rustix::fs::{self, AtFlags, CWD, Dir, Mode, OFlags, RenameFlags, ResolveFlags};
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};
use tracing::{info, warn};

use crate::core::safe_name::SafeName;

/// How many files may want one name; the source id in it makes a second one rare already.
const MAX_NAMESAKES: u32 = 99;

const TEMP_PREFIX: &str = ".usher-";
const TEMP_SUFFIX: &str = ".part";

/// The buffer of every read and write.
pub(super) const BUFFER: usize = 64 * 1024;

/// A handle of one work item's directory. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Directory {
    handle: Arc<OwnedFd>,
    path: PathBuf,
}

impl Directory {
    /// Opens `root`/`slug`, creating both with mode 0700 where they are missing. The slug is one path component.
    ///
    /// # Errors
    /// When either is a symlink or no directory, when the slug is not one component, or when the disk refuses.
    pub fn open(root: &Path, slug: &str) -> anyhow::Result<Self> {
        let root = std::path::absolute(root).context("the attachments directory has no absolute path")?;
        let handle = open_below(&root, slug).with_context(|| {
            format!("the directory {slug} below {} could not be opened; no file is saved there", root.display())
        })?;
        Ok(Self { handle: Arc::new(handle), path: root.join(slug) })
    }

    /// Its absolute path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates an empty file of mode 0600 under a random name. It goes away unless it is kept.
    pub(super) fn create_temp(&self) -> io::Result<Temp> {
        let mut random = [0_u8; 16];
        getrandom::fill(&mut random).map_err(|_| io::Error::other("the system gave no random bytes"))?;
        let name = format!("{TEMP_PREFIX}{}{TEMP_SUFFIX}", hex::encode(random));
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = fs::openat(&self.handle, &name, flags, Mode::RUSR | Mode::WUSR)?;
        Ok(Temp { directory: self.clone(), file: file.into(), name, renamed: false })
    }

    /// Whether `name` is a regular file of this size (bytes) and SHA-256 (hexadecimal): the bytes are read again.
    pub fn verify(&self, name: &str, size: u64, sha256: &str) -> bool {
        self.open_regular(name, size).and_then(hash).is_ok_and(|found| found == sha256)
    }

    fn open_regular(&self, name: &str, size: u64) -> io::Result<File> {
        // Non-blocking, or opening a planted FIFO would wait for a writer.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(open_beneath(self.handle.as_fd(), name, flags)?);
        let metadata = file.metadata()?;
        if !metadata.is_file() || metadata.len() != size {
            return Err(io::Error::from(io::ErrorKind::InvalidData));
        }
        Ok(file)
    }

    /// Removes temporary files that a crash left behind, and says how many. Only before the first transfer: it cannot
    /// tell them from those of a transfer that is under way.
    ///
    /// # Errors
    /// When the directory cannot be read or a file not be removed.
    pub fn sweep_temps(&self) -> io::Result<usize> {
        let mut removed = 0;
        for entry in Dir::read_from(&self.handle)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name.starts_with(TEMP_PREFIX.as_bytes()) && name.ends_with(TEMP_SUFFIX.as_bytes()) {
                fs::unlinkat(&self.handle, entry.file_name(), AtFlags::empty())?;
                removed += 1;
            }
        }
        Ok(removed)
    }

    /// Does the same in every directory below `root`. What cannot be swept costs room and nothing else, so it is logged.
    pub fn sweep_all(root: &Path) {
        for entry in std::fs::read_dir(root).into_iter().flatten().flatten() {
            let slug = entry.file_name().to_string_lossy().into_owned();
            match Self::open(root, &slug).and_then(|directory| Ok(directory.sweep_temps()?)) {
                Ok(0) => {}
                Ok(removed) => info!(work_item = slug, removed, "half-fetched files of an interrupted run are removed"),
                Err(error) => warn!(work_item = slug, error = format!("{error:#}"), "half-fetched files may be left"),
            }
        }
    }

    /// Gives a file a new name that nothing has yet.
    fn rename_new(&self, from: &str, to: &str) -> Result<(), Errno> {
        match fs::renameat_with(&self.handle, from, &self.handle, to, RenameFlags::NOREPLACE) {
            // Some file systems (NFS, 9p) know no such rename; a hard link replaces nothing either.
            Err(Errno::INVAL | Errno::NOSYS) => {
                fs::linkat(&self.handle, from, &self.handle, to, AtFlags::empty())?;
                fs::unlinkat(&self.handle, from, AtFlags::empty())
            }
            outcome => outcome,
        }
    }
}

/// A file that is being written. Dropped before it is kept, it is removed.
#[derive(Debug)]
pub(super) struct Temp {
    directory: Directory,
    file: File,
    name: String,
    renamed: bool,
}

impl Temp {
    /// The file, for reading and writing.
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Makes the bytes durable, with these permissions.
    pub(super) fn make_durable(&self, mode: u32) -> io::Result<()> {
        fs::fchmod(&self.file, Mode::from_raw_mode(mode & 0o777))?;
        self.file.sync_all()
    }

    /// Gives the durable file the name `wanted`, or a numbered form of it; returns the path. A file that is there
    /// already with the very same bytes is that file: a transfer repeated after a crash ends there.
    pub(super) fn keep(mut self, wanted: &SafeName, size: u64, sha256: &str) -> io::Result<PathBuf> {
        for number in 1..=MAX_NAMESAKES {
            let name = wanted.numbered(number);
            match self.directory.rename_new(&self.name, name.as_str()) {
                Ok(()) => {
                    self.renamed = true;
                    fs::fsync(&self.directory.handle)?;
                    return Ok(self.directory.path.join(name.as_str()));
                }
                Err(Errno::EXIST) if self.directory.verify(name.as_str(), size, sha256) => {
                    return Ok(self.directory.path.join(name.as_str()));
                }
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(io::Error::from(io::ErrorKind::AlreadyExists))
    }
}

impl Drop for Temp {
    fn drop(&mut self) {
        if !self.renamed {
            // Best effort: what stays behind is swept at the next start.
            fs::unlinkat(&self.directory.handle, &self.name, AtFlags::empty()).ok();
        }
    }
}

fn open_below(root: &Path, slug: &str) -> io::Result<OwnedFd> {
    if slug.is_empty() || slug == "." || slug == ".." || slug.contains(['/', '\0']) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the name is not one path component"));
    }
    let directory = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    DirBuilder::new().recursive(true).mode(0o700).create(root)?;
    let root = fs::openat(CWD, root, directory, Mode::empty())?;
    match fs::mkdirat(&root, slug, Mode::RWXU) {
        Ok(()) => fs::fsync(&root)?,
        Err(Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(open_beneath(root.as_fd(), slug, directory)?)
}

/// Opens below a handle, through no symlink. A kernel before 5.6 has no `openat2`: one component opened with
/// `O_NOFOLLOW` is the same there, and more than one is refused.
fn open_beneath(handle: BorrowedFd<'_>, name: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match fs::openat2(handle, name, flags, Mode::empty(), resolve) {
        Err(Errno::NOSYS) if !name.contains('/') && name != ".." => fs::openat(handle, name, flags, Mode::empty()),
        outcome => outcome,
    }
}

fn hash(mut file: File) -> io::Result<String> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0_u8; BUFFER];
    loop {
        let read = file.read(&mut buffer)?;
        match buffer.get(..read) {
            Some(bytes) if read > 0 => hasher.update(bytes),
            _ => return Ok(hex::encode(hasher.finalize())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use tempfile::TempDir;

    use super::*;

    fn open() -> (TempDir, Directory) {
        let root = tempfile::tempdir().unwrap();
        let directory = Directory::open(&root.path().join("attachments"), "owner--repo--12").unwrap();
        (root, directory)
    }

    fn keep(directory: &Directory, shown_name: &str, bytes: &[u8]) -> PathBuf {
        let temp = directory.create_temp().unwrap();
        temp.file().write_all(bytes).unwrap();
        temp.make_durable(0o400).unwrap();
        temp.keep(&SafeName::new("F1", shown_name, None), bytes.len() as u64, &sha256(bytes)).unwrap()
    }

    fn sha256(bytes: &[u8]) -> String {
        hex::encode(Sha256::digest(bytes))
    }

    fn mode(path: &Path) -> u32 {
        std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
    }

    fn names(directory: &Directory) -> Vec<String> {
        let entries = std::fs::read_dir(directory.path()).unwrap();
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn directories_are_private_and_kept_files_read_only() {
        let (_root, directory) = open();
        let path = keep(&directory, "shot.png", b"bytes");
        assert_eq!(path, directory.path().join("F1-shot.png"));
        assert_eq!(std::fs::read(&path).unwrap(), b"bytes");
        assert_eq!(
            (mode(&path), mode(directory.path()), mode(directory.path().parent().unwrap())),
            (0o400, 0o700, 0o700)
        );
    }

    #[test]
    fn a_planted_symlink_is_no_directory() {
        let root = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        symlink(elsewhere.path(), root.path().join("slug")).unwrap();
        symlink(elsewhere.path(), root.path().join("attachments")).unwrap();
        assert!(Directory::open(root.path(), "slug").is_err());
        assert!(Directory::open(&root.path().join("attachments"), "slug").is_err());
        assert_eq!(std::fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_slug_is_one_component() {
        let root = tempfile::tempdir().unwrap();
        for slug in ["", ".", "..", "a/b", "../a", "/tmp", "a\0b"] {
            assert!(Directory::open(root.path(), slug).is_err(), "{slug:?}");
        }
    }

    #[test]
    fn files_stay_in_the_opened_directory_when_its_name_is_moved_away() {
        let (root, directory) = open();
        let elsewhere = tempfile::tempdir().unwrap();
        let moved = root.path().join("moved");
        std::fs::rename(directory.path(), &moved).unwrap();
        symlink(elsewhere.path(), directory.path()).unwrap();
        keep(&directory, "a", b"bytes");
        assert_eq!(std::fs::read(moved.join("F1-a")).unwrap(), b"bytes");
        assert_eq!(std::fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    }

    #[test]
    fn nothing_is_replaced_and_the_same_bytes_are_the_same_file() {
        let (_root, directory) = open();
        let one = keep(&directory, "shot.png", b"one");
        let two = keep(&directory, "shot.png", b"two");
        assert_eq!(keep(&directory, "shot.png", b"one"), one);
        assert_eq!(keep(&directory, "shot.png", b"two"), two);
        assert_eq!(std::fs::read(one).unwrap(), b"one");
        assert_eq!(names(&directory), ["F1-shot-2.png", "F1-shot.png"]);
    }

    #[test]
    fn a_symlink_under_the_wanted_name_is_neither_followed_nor_replaced() {
        let (root, directory) = open();
        let victim = root.path().join("victim");
        std::fs::write(&victim, b"one").unwrap();
        symlink(&victim, directory.path().join("F1-shot.png")).unwrap();
        assert_eq!(keep(&directory, "shot.png", b"one"), directory.path().join("F1-shot-2.png"));
        assert_eq!((std::fs::read(&victim).unwrap().as_slice(), mode(&victim) & 0o200), (b"one".as_slice(), 0o200));
    }

    #[test]
    fn only_the_very_same_bytes_verify() {
        let (root, directory) = open();
        keep(&directory, "a", b"bytes");
        std::fs::write(root.path().join("attachments/outside"), b"bytes").unwrap();
        symlink("F1-a", directory.path().join("link")).unwrap();
        fs::mknodat(CWD, directory.path().join("fifo"), fs::FileType::Fifo, Mode::RWXU, 0).unwrap();
        for (name, size, bytes, expected) in [
            ("F1-a", 5, b"bytes", true),
            ("F1-a", 6, b"bytes", false),
            ("F1-a", 5, b"bytez", false),
            ("link", 5, b"bytes", false),
            ("fifo", 0, b"bytes", false),
            ("../outside", 5, b"bytes", false),
            ("missing", 5, b"bytes", false),
        ] {
            assert_eq!(directory.verify(name, size, &sha256(bytes)), expected, "{name} {size}");
        }
    }

    #[test]
    fn a_temporary_file_goes_when_dropped_and_a_forgotten_one_when_swept() {
        let (_root, directory) = open();
        drop(directory.create_temp().unwrap());
        assert!(names(&directory).is_empty());
        std::mem::forget(directory.create_temp().unwrap());
        keep(&directory, "a", b"bytes");
        assert_eq!(directory.sweep_temps().unwrap(), 1);
        assert_eq!(names(&directory), ["F1-a"]);
    }
}
