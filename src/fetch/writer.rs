//! The blocking half of a transfer: one task that writes the bytes of one file, and one thread that hashes them.
//!
//! Owns the temporary file from its creation until it is kept or removed, and the channel that feeds it, which is short:
//! a slow disk slows the network, and memory stays small. It must not know HTTP.

use std::io::{self, BufReader, BufWriter, Seek as _, Write as _};
use std::sync::mpsc::{self, SyncSender, sync_channel};

use bytes::Bytes;
use sha2::{Digest as _, Sha256};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinHandle;

use super::directory::{BUFFER, Directory, Temp};
use crate::core::attachment::SavedFile;
use crate::core::safe_name::SafeName;
use crate::core::sniff;

/// How many batches wait for the disk.
const QUEUE: usize = 2;

/// How to keep a file whose last byte was written.
#[derive(Debug)]
pub(super) struct Keep {
    pub(super) name: SafeName,
    pub(super) mode: u32,
    /// Whether its header may tell a size in pixels.
    pub(super) is_picture: bool,
}

#[derive(Debug)]
enum Step {
    Write(Vec<Bytes>),
    Keep(Keep),
}

/// A file being written. Dropped before it is kept, it leaves nothing on the disk.
#[derive(Debug)]
pub(super) struct Writer {
    steps: Sender<Step>,
    task: JoinHandle<io::Result<Option<SavedFile>>>,
}

impl Writer {
    /// Begins a file in the directory; that it cannot be created shows at the first step.
    pub(super) fn start(directory: &Directory) -> Self {
        let (steps, received) = channel(QUEUE);
        let directory = directory.clone();
        Self { steps, task: tokio::task::spawn_blocking(move || write_file(&directory, received)) }
    }

    /// Hands over the next bytes, waiting while the disk is behind. After an `Err` the writer is of no more use, and
    /// [`Writer::close`] tells why.
    pub(super) async fn write(&self, batch: Vec<Bytes>) -> Result<(), DiskStopped> {
        self.steps.send(Step::Write(batch)).await.map_err(|_| DiskStopped)
    }

    /// Makes the file durable under its name.
    pub(super) async fn keep(self, keep: Keep) -> io::Result<SavedFile> {
        // A failed send means that the task ended with an error, which it tells itself.
        self.steps.send(Step::Keep(keep)).await.ok();
        self.close().await?.ok_or_else(|| io::Error::other("the writer ended early"))
    }

    /// Gives the file up and waits until it is gone.
    pub(super) async fn close(self) -> io::Result<Option<SavedFile>> {
        drop(self.steps);
        self.task.await.unwrap_or_else(|_| Err(io::Error::other("the writer panicked")))
    }
}

/// The writing task ended before the file did.
#[derive(Debug)]
pub(super) struct DiskStopped;

/// Writes until told to keep the file; when the channel ends without that word, the file goes with the `Temp`.
///
/// The hash takes as long as the writing (16 and 12 ms for 25 MiB, measured; the sync takes 14), so it runs beside it.
fn write_file(directory: &Directory, steps: Receiver<Step>) -> io::Result<Option<SavedFile>> {
    let temp = directory.create_temp()?;
    let (to_hash, hashing) = sync_channel(QUEUE);
    let hasher = std::thread::Builder::new().name("usher-hash".into()).spawn(move || hash(&hashing))?;
    let Some((keep, size)) = write_steps(&temp, steps, &to_hash)? else { return Ok(None) };
    drop(to_hash);
    let pixels = if keep.is_picture { measure(&temp)? } else { None };
    temp.make_durable(keep.mode)?;
    let sha256 = hasher.join().map_err(|_| io::Error::other("the hash panicked"))?;
    let path = temp.keep(&keep.name, size, &sha256)?;
    Ok(Some(SavedFile { path, sha256, pixels }))
}

fn write_steps(
    temp: &Temp,
    mut steps: Receiver<Step>,
    to_hash: &SyncSender<Vec<Bytes>>,
) -> io::Result<Option<(Keep, u64)>> {
    let mut file = BufWriter::with_capacity(BUFFER, temp.file());
    let mut size = 0;
    while let Some(step) = steps.blocking_recv() {
        match step {
            Step::Write(batch) => {
                to_hash.send(batch.clone()).map_err(|_| io::Error::other("the hash ended early"))?;
                for chunk in batch {
                    file.write_all(&chunk)?;
                    size += chunk.len() as u64;
                }
            }
            Step::Keep(keep) => {
                file.flush()?;
                return Ok(Some((keep, size)));
            }
        }
    }
    Ok(None)
}

fn hash(batches: &mpsc::Receiver<Vec<Bytes>>) -> String {
    let mut digest = Sha256::new();
    for chunk in batches.iter().flatten() {
        digest.update(&chunk);
    }
    hex::encode(digest.finalize())
}

fn measure(temp: &Temp) -> io::Result<Option<(u32, u32)>> {
    let mut file = temp.file();
    file.rewind()?;
    Ok(sniff::pixels(BufReader::new(file)))
}
