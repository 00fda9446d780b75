//! The transfer of one body: from a stream of bytes to a file that is whole, or a reason.
//!
//! Owns the order of things: look at the first bytes, refuse by what is announced, then write, then compare lengths. The
//! look comes first, because a sign-in page has a length of its own and must be told as what it is. It must not know where
//! the stream comes from.

use std::io;

use anyhow::anyhow;
use bytes::Bytes;
use futures_util::Stream;

use super::body::{Body, over_cap};
use super::described::{Described, is_sign_in_page};
use super::directory::Directory;
use super::failure::Failure;
use super::request::Announced;
use super::writer::{Keep, Writer};
use super::{Policy, Wanted};
use crate::core::attachment::{Kind, Reason, SavedFile};
use crate::core::sniff::{HEAD, sniff};

/// How many bytes go to the disk in one step. Chunks of the network are about 8 KiB; a task switch for each would cost
/// more than the hash.
const BATCH: usize = 256 * 1024;

/// A file that arrived whole.
#[derive(Debug)]
pub(super) struct Received {
    pub(super) file: SavedFile,
    pub(super) size: u64,
    pub(super) media_type: Option<String>,
    pub(super) kind: Kind,
}

/// Receives a body into the directory. Dropped half-way, it leaves nothing there.
pub(super) async fn receive(
    stream: impl Stream<Item = anyhow::Result<Bytes>> + Unpin,
    announced: &Announced,
    wanted: &Wanted<'_>,
    policy: &Policy,
    directory: &Directory,
) -> Result<Received, Failure> {
    let mut body = Body::new(stream, policy.cap, policy.idle);
    let head = body.batch(HEAD).await?;
    let sniffed = sniff(&joined(&head));
    if is_sign_in_page(sniffed, announced, wanted) {
        return Err(Failure::last(policy.html_means.clone(), anyhow!("a page came in place of the file")));
    }
    check_announced(announced, wanted, policy.cap)?;
    let described = Described::new(sniffed, announced, wanted);
    let file = save(&mut body, head, described.keep(wanted, policy), announced, wanted, directory).await?;
    Ok(Received { file, size: body.received(), media_type: described.media_type, kind: described.kind })
}

/// What the headers and the platform say is enough to refuse before the first byte is written.
fn check_announced(announced: &Announced, wanted: &Wanted<'_>, cap: u64) -> Result<(), Failure> {
    if announced.length.max(wanted.declared_size) > Some(cap) {
        return Err(over_cap(cap));
    }
    match (announced.length, wanted.declared_size) {
        (Some(length), Some(declared)) if length != declared => Err(wrong_size(length, declared)),
        _ => Ok(()),
    }
}

async fn save<S>(
    body: &mut Body<S>,
    head: Vec<Bytes>,
    keep: Keep,
    announced: &Announced,
    wanted: &Wanted<'_>,
    directory: &Directory,
) -> Result<SavedFile, Failure>
where
    S: Stream<Item = anyhow::Result<Bytes>> + Unpin,
{
    let writer = Writer::start(directory);
    match pump(body, head, &writer).await.and_then(|()| check_whole(body.received(), announced, wanted)) {
        Ok(()) => writer.keep(keep).await.map_err(disk),
        Err(Stopped::ByDisk) => Err(writer.close().await.err().map_or_else(disk_silent, disk)),
        Err(Stopped::By(failure)) => {
            // Only to wait until the temporary file is gone; the failure is told already.
            writer.close().await.ok();
            Err(failure)
        }
    }
}

/// Why the bytes stopped flowing.
enum Stopped {
    ByDisk,
    By(Failure),
}

async fn pump<S>(body: &mut Body<S>, head: Vec<Bytes>, writer: &Writer) -> Result<(), Stopped>
where
    S: Stream<Item = anyhow::Result<Bytes>> + Unpin,
{
    let mut batch = head;
    while !batch.is_empty() {
        writer.write(batch).await.map_err(|_| Stopped::ByDisk)?;
        batch = body.batch(BATCH).await.map_err(Stopped::By)?;
    }
    Ok(())
}

/// A stream that ends is no success yet (field report F13).
fn check_whole(received: u64, announced: &Announced, wanted: &Wanted<'_>) -> Result<(), Stopped> {
    let failure = match (announced.length, wanted.declared_size) {
        _ if received == 0 => Failure::last(Reason::TransferFailed, anyhow!("the body is empty")),
        (Some(length), _) if length != received => Failure::broken(anyhow!("{received} of {length} bytes came")),
        (_, Some(declared)) if declared != received => wrong_size(received, declared),
        _ => return Ok(()),
    };
    Err(Stopped::By(failure))
}

fn wrong_size(found: u64, declared: u64) -> Failure {
    Failure::last(Reason::TransferFailed, anyhow!("{found} bytes where the platform declares {declared}"))
}

fn disk(error: io::Error) -> Failure {
    let reason = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Reason::DiskFull,
        _ => Reason::TransferFailed,
    };
    Failure::last(reason, anyhow::Error::new(error).context("the file could not be written"))
}

fn disk_silent() -> Failure {
    Failure::last(Reason::TransferFailed, anyhow!("the writer ended early"))
}

/// The first [`HEAD`] bytes of the chunks, in one piece.
fn joined(chunks: &[Bytes]) -> Vec<u8> {
    chunks.iter().flatten().take(HEAD).copied().collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use futures_util::future::join_all;
    use futures_util::{StreamExt as _, stream};
    use proptest::prelude::*;
    use sha2::{Digest as _, Sha256};
    use tempfile::TempDir;
    use tokio::time::timeout;

    use super::*;
    use crate::core::attachment::Kind;
    use crate::core::hop::{self, AllowedUrl, HostTable};
    use crate::fetch::failure::How;

    const CAP: u64 = 4 * 1024 * 1024;

    fn url() -> AllowedUrl {
        hop::first(&HostTable::slack(), "https://files.slack.com/files-pri/T1-F1/a.bin").unwrap()
    }

    fn wanted(url: &AllowedUrl) -> Wanted<'_> {
        Wanted {
            url,
            source_id: "F1",
            shown_name: "a.bin",
            declared_size: None,
            declared_media_type: None,
            may_be_html: false,
            kind: Kind::File,
        }
    }

    fn policy(cap: u64) -> Policy {
        Policy {
            table: HostTable::slack(),
            bearer: None,
            cap,
            idle: Duration::from_millis(40),
            mode: 0o400,
            html_means: Reason::NoScope,
            not_found_means: Reason::TransferFailed,
        }
    }

    fn directory() -> (TempDir, Directory) {
        let root = tempfile::tempdir().unwrap();
        let directory = Directory::open(root.path(), "owner--repo--12").unwrap();
        (root, directory)
    }

    fn count(path: &Path) -> usize {
        std::fs::read_dir(path).unwrap().count()
    }

    fn chunks(bytes: &[u8], size: usize) -> Vec<anyhow::Result<Bytes>> {
        bytes.chunks(size).map(|chunk| Ok(Bytes::copy_from_slice(chunk))).collect()
    }

    /// A body that comes in these pieces, with what was announced and declared, under a cap of 100 bytes.
    async fn outcome(
        pieces: Vec<anyhow::Result<Bytes>>,
        length: Option<u64>,
        declared: Option<u64>,
    ) -> Result<u64, How> {
        let (_root, directory) = directory();
        let (url, announced) = (url(), Announced { length, media_type: None });
        let wanted = Wanted { declared_size: declared, ..wanted(&url) };
        let received = receive(stream::iter(pieces), &announced, &wanted, &policy(100), &directory).await;
        let saved = count(directory.path());
        assert_eq!(saved, usize::from(received.is_ok()), "a failed transfer left something behind");
        received.map(|received| received.size).map_err(|failure| failure.how)
    }

    #[tokio::test]
    async fn a_file_is_whole_or_not_there() {
        let last = |reason| Err(How::Final(reason));
        let over_cap = || last(Reason::OverCap { cap: 100 });
        let bytes = |size| chunks(&vec![7; size], 30);
        let broken = || [bytes(30), vec![Err(anyhow!("connection reset"))]].into_iter().flatten().collect();
        assert_eq!(outcome(bytes(99), None, None).await, Ok(99));
        assert_eq!(outcome(bytes(100), Some(100), Some(100)).await, Ok(100));
        assert_eq!(outcome(bytes(101), None, None).await, over_cap());
        assert_eq!(outcome(vec![], Some(101), None).await, over_cap());
        assert_eq!(outcome(vec![], None, Some(101)).await, over_cap());
        assert_eq!(outcome(vec![], None, None).await, last(Reason::TransferFailed));
        assert_eq!(outcome(bytes(50), Some(60), None).await, Err(How::Broken));
        assert_eq!(outcome(bytes(50), None, Some(60)).await, last(Reason::TransferFailed));
        assert_eq!(outcome(bytes(50), Some(50), Some(60)).await, last(Reason::TransferFailed));
        assert_eq!(outcome(broken(), None, None).await, Err(How::Broken));
        for (length, declared) in [(None, None), (Some(15), Some(60)), (Some(101), None)] {
            assert_eq!(outcome(chunks(b"<!doctype html>", 4), length, declared).await, last(Reason::NoScope));
        }
    }

    #[tokio::test]
    async fn an_excess_after_the_first_write_leaves_nothing() {
        let (_root, directory) = directory();
        let pieces = stream::iter(chunks(&vec![7; 3 * BATCH], 10_000));
        let limits = policy(2 * BATCH as u64);
        let received = receive(pieces, &Announced::default(), &wanted(&url()), &limits, &directory).await;
        assert_eq!(received.unwrap_err().reason(), Reason::OverCap { cap: limits.cap });
        assert_eq!(count(directory.path()), 0);
    }

    #[tokio::test]
    async fn silence_ends_a_transfer() {
        let (_root, directory) = directory();
        let pieces = stream::iter(chunks(&vec![7; 2 * BATCH], 10_000)).chain(stream::pending());
        let received = receive(pieces, &Announced::default(), &wanted(&url()), &policy(CAP), &directory).await;
        assert_eq!(received.unwrap_err().how, How::Final(Reason::TransferFailed));
        assert_eq!(count(directory.path()), 0);
    }

    #[tokio::test]
    async fn a_dropped_transfer_leaves_nothing() {
        let (_root, directory) = directory();
        let (url, announced) = (url(), Announced::default());
        let pieces = stream::iter(chunks(&vec![7; 2 * BATCH], 10_000)).chain(stream::pending());
        let limits = Policy { idle: Duration::from_secs(60), ..policy(CAP) };
        let wanted = wanted(&url);
        let mut transfer = Box::pin(receive(pieces, &announced, &wanted, &limits, &directory));
        eventually(|| count(directory.path()) == 1, &mut transfer).await;
        drop(transfer);
        eventually(|| count(directory.path()) == 0, &mut std::future::pending::<()>()).await;
    }

    /// Waits until something is so, while another future runs.
    async fn eventually(is_so: impl Fn() -> bool, meanwhile: &mut (impl Future + Unpin)) {
        let waiting = async {
            while !is_so() {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        let waited = async {
            tokio::select! {
                () = waiting => {}
                _ = meanwhile => panic!("the transfer ended"),
            }
        };
        timeout(Duration::from_secs(10), waited).await.unwrap();
    }

    #[tokio::test]
    async fn a_picture_is_measured_and_named_by_its_bytes() {
        let (_root, directory) = directory();
        let mut picture = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x05\0\0\0\x02\xd0\x08\x06\0\0\0".to_vec();
        picture.resize(3 * HEAD, 0);
        let url = url();
        let wanted = Wanted { shown_name: "shot.jpg", declared_media_type: Some("image/jpeg"), ..wanted(&url) };
        let pieces = stream::iter(chunks(&picture, 700));
        let received = receive(pieces, &Announced::default(), &wanted, &policy(CAP), &directory).await.unwrap();
        assert_eq!(received.file.path, directory.path().join("F1-shot.png"));
        assert_eq!(received.file.pixels, Some((1280, 720)));
        assert_eq!((received.media_type.as_deref(), received.kind), (Some("image/png"), Kind::Image));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn ten_files_of_one_name_arrive_side_by_side() {
        let (_root, directory) = directory();
        let (url, announced, limits) = (url(), Announced::default(), policy(CAP));
        let wanted = wanted(&url);
        let bodies: Vec<Vec<u8>> = (0..10).map(|file| vec![file; 300_000]).collect();
        let transfers = bodies.iter().map(|body| {
            let pieces = stream::iter(chunks(body, 16_384));
            receive(pieces, &announced, &wanted, &limits, &directory)
        });
        for (received, body) in join_all(transfers).await.into_iter().zip(&bodies) {
            assert_eq!(&std::fs::read(received.unwrap().file.path).unwrap(), body);
        }
        assert_eq!(count(directory.path()), 10);
    }

    #[test]
    fn a_full_disk_has_its_own_reason() {
        for (error, reason) in [
            (rustix::io::Errno::NOSPC, Reason::DiskFull),
            (rustix::io::Errno::DQUOT, Reason::DiskFull),
            (rustix::io::Errno::IO, Reason::TransferFailed),
        ] {
            assert_eq!(disk(error.into()).reason(), reason);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn what_is_saved_is_what_came(
            bytes in prop::collection::vec(1_u8.., 1..20_000), size in 1_usize..9_000, repeat in 1_usize..40
        ) {
            let bytes = bytes.repeat(repeat);
            let (_root, directory) = directory();
            let (url, pieces) = (url(), stream::iter(chunks(&bytes, size)));
            let wanted = Wanted { may_be_html: true, ..wanted(&url) };
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            let received = runtime.block_on(receive(pieces, &Announced::default(), &wanted, &policy(CAP), &directory)).unwrap();
            prop_assert_eq!(&std::fs::read(&received.file.path).unwrap(), &bytes);
            prop_assert_eq!(received.file.sha256, hex::encode(Sha256::digest(&bytes)));
            prop_assert_eq!(received.size, bytes.len() as u64);
        }
    }
}
