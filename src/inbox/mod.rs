//! The inbox: the durable truth about every message, binding, record and notice (SQLite, one thread of its own).
//!
//! Owns storing, deduplication, the stages and their order. It must not know what a stage does, who may speak, or how
//! anything reaches Slack, GitHub or tmux.
//!
//! All access goes through one thread with one connection. Jobs that wait together are committed together, so that a
//! burst of messages costs one fsync and not one each. A commit that must survive a power cut is durable
//! (`synchronous = FULL`); the others survive any death of the process, and after a power cut the message resumes from an
//! earlier stage, which the pipeline can repeat without doing anything twice (docs/decisions/0001).

pub mod bindings;
pub mod files;
pub mod messages;
pub mod notices;
pub mod operator;
pub mod portable;
pub mod records;
pub mod repositories;
mod schema;
pub mod supplements;
#[cfg(test)]
mod tests;
pub mod transcripts;

use std::path::Path;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use jiff::Timestamp;
use rusqlite::Connection;
use tokio::sync::{oneshot, watch};
use tokio::time::sleep;
use tracing::error;

pub use messages::{Paste, Put, Row, Stage, Verdict};

/// How often the thread looks whether another process (`usher bind`, `usher inbox drop`) changed the database.
const LOOK_FOR_OTHERS: Duration = Duration::from_millis(200);

/// How long another process may hold the database. Twice this is what a webhook delivery may have to wait for its 503,
/// behind a batch that waited as well; GitHub takes an answer within ten seconds (platform-facts D).
const BUSY: Duration = Duration::from_secs(4);

/// How many jobs are committed together at most.
const BATCH: usize = 256;

/// A handle to the inbox. Cheap to clone; the thread ends when the last handle is gone.
#[derive(Debug, Clone)]
pub struct Inbox {
    jobs: Sender<Job>,
    changes: watch::Receiver<u64>,
    news: watch::Receiver<u64>,
}

/// The two bells: something may have to be done, and something came in from outside.
struct Bells {
    changes: watch::Sender<u64>,
    news: watch::Sender<u64>,
}

/// Which bell a job rings once it is committed; the later ones ring the earlier ones too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Ring {
    Nothing,
    Changes,
    News,
}

/// What a job needs of its commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Need {
    /// Nothing is written.
    Read,
    /// Survives the process.
    Write,
    /// Survives the machine.
    Durable,
}

struct Job {
    need: Need,
    ring: Ring,
    run: Run,
}

/// Runs the job inside its batch's transaction.
type Run = Box<dyn FnOnce(&Connection, &Begun) -> Answer + Send>;

/// Whether the transaction could be begun. Outside of one a job would commit by itself, so it is not run then.
type Begun = Result<(), String>;

/// Sends the job's result once the commit's outcome is known.
type Answer = Box<dyn FnOnce(Result<(), String>) + Send>;

impl Inbox {
    /// Opens or creates the database and starts the thread. Refuses a database that a newer usher wrote.
    pub fn open(path: &Path) -> anyhow::Result<(Self, JoinHandle<()>)> {
        let connection = connect(path)?;
        let (jobs, waiting) = mpsc::channel();
        let (changes_bell, changes) = watch::channel(0);
        let (news_bell, news) = watch::channel(0);
        let bells = Bells { changes: changes_bell, news: news_bell };
        let thread = std::thread::Builder::new()
            .name("inbox".to_owned())
            .spawn(move || serve(&connection, &waiting, &bells))
            .context("the inbox thread could not be started")?;
        Ok((Self { jobs, changes, news }, thread))
    }

    /// Rings whenever there may be something to do, whoever caused it.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.clone()
    }

    /// Rings when somebody outside the daemon changed something: a binding, an operator's word.
    pub fn news(&self) -> watch::Receiver<u64> {
        self.news.clone()
    }

    fn read<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Pending<T> {
        self.enqueue(Need::Read, Ring::Nothing, job)
    }

    fn write<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Pending<T> {
        self.enqueue(Need::Write, Ring::Nothing, job)
    }

    /// A write that gives somebody work.
    fn write_and_wake<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Pending<T> {
        self.enqueue(Need::Write, Ring::Changes, job)
    }

    /// A durable write of something that came in from outside.
    fn news_from<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Pending<T> {
        self.enqueue(Need::Durable, Ring::News, job)
    }

    /// Enqueues at once, in the caller's order; the result is there after the commit.
    fn enqueue<T: Send + 'static>(
        &self,
        need: Need,
        ring: Ring,
        job: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Pending<T> {
        let (sender, receiver) = oneshot::channel();
        let run = Box::new(move |connection: &Connection, begun: &Begun| -> Answer {
            let result = begun.is_ok().then(|| in_savepoint(connection, job));
            Box::new(move |committed| {
                let result = match (result, committed) {
                    (Some(Ok(value)), Ok(())) => Ok(value),
                    (Some(Err(error)), _) => Err(anyhow!(error).context("the inbox refused a change")),
                    (_, Err(error)) => Err(anyhow!("the inbox could not be written: {error}")),
                    (None, Ok(())) => Err(anyhow!("the inbox could not be written")),
                };
                // The asker may be gone (a shutdown, a deadline); what was committed stays committed.
                drop(sender.send(result));
            })
        });
        // A closed thread drops the job and with it the sender; the asker then gets the error below.
        drop(self.jobs.send(Job { need, ring, run }));
        Pending { receiver }
    }
}

/// A result that is there after the commit.
#[must_use = "a job's outcome is known only after its commit"]
pub struct Pending<T> {
    receiver: oneshot::Receiver<anyhow::Result<T>>,
}

impl<T> Pending<T> {
    /// Waits for the commit from a thread that runs no async code (the command line).
    pub fn wait(self) -> anyhow::Result<T> {
        self.receiver.blocking_recv().context("the inbox has stopped")?
    }
}

impl<T: Send + 'static> IntoFuture for Pending<T> {
    type Output = anyhow::Result<T>;
    type IntoFuture = std::pin::Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.receiver.await.context("the inbox has stopped")? })
    }
}

/// Waits for the moment that a reading named as the next one with work; for ever when it named none.
pub async fn until(moment: Option<Timestamp>) {
    match moment {
        Some(moment) => sleep(Duration::try_from(moment.duration_since(Timestamp::now())).unwrap_or_default()).await,
        None => std::future::pending().await,
    }
}

fn connect(path: &Path) -> anyhow::Result<Connection> {
    let connection =
        Connection::open(path).with_context(|| format!("the database {} could not be opened", path.display()))?;
    connection.busy_timeout(BUSY)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.set_prepared_statement_cache_capacity(64);
    schema::migrate(&connection)?;
    Ok(connection)
}

fn serve(connection: &Connection, waiting: &Receiver<Job>, bells: &Bells) {
    let mut version = data_version(connection);
    loop {
        let first = match waiting.recv_timeout(LOOK_FOR_OTHERS) {
            Ok(job) => Some(job),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let batch: Vec<Job> = first.into_iter().chain(waiting.try_iter().take(BATCH)).collect();
        let own = commit(connection, batch);
        let now = data_version(connection);
        let ring = if now == version { own } else { Ring::News };
        version = now;
        if ring >= Ring::Changes {
            bells.changes.send_modify(|count| *count += 1);
        }
        if ring == Ring::News {
            bells.news.send_modify(|count| *count += 1);
        }
    }
}

/// Changes only when another connection committed.
fn data_version(connection: &Connection) -> i64 {
    connection.pragma_query_value(None, "data_version", |row| row.get(0)).unwrap_or_default()
}

/// Commits the jobs together; answers the loudest bell of what was committed. What was not wakes nobody.
fn commit(connection: &Connection, batch: Vec<Job>) -> Ring {
    let Some(need) = batch.iter().map(|job| job.need).max() else { return Ring::Nothing };
    let ring = batch.iter().map(|job| job.ring).max().unwrap_or(Ring::Nothing);
    if let Err(error) = begin(connection, need) {
        error!(%error, "the inbox could not be written");
        // Whoever only reads does not fail with the others: a part of usher that has nothing to write goes on.
        let (reads, writes): (Vec<Job>, Vec<Job>) =
            batch.into_iter().partition(|job| job.need == Need::Read && need != Need::Read);
        refuse(connection, writes, &error.to_string());
        return commit(connection, reads);
    }
    let answers: Vec<Answer> = batch.into_iter().map(|job| (job.run)(connection, &Ok(()))).collect();
    let outcome = connection.execute_batch("COMMIT");
    if let Err(error) = &outcome {
        error!(%error, "the inbox could not be written");
        if !connection.is_autocommit() {
            drop(connection.execute_batch("ROLLBACK"));
        }
    }
    let outcome = outcome.map_err(|error| error.to_string());
    for answer in answers {
        answer(outcome.clone());
    }
    if outcome.is_ok() { ring } else { Ring::Nothing }
}

/// Answers jobs that are not run.
fn refuse(connection: &Connection, writes: Vec<Job>, error: &str) {
    for job in writes {
        (job.run)(connection, &Err(error.to_owned()))(Err(error.to_owned()));
    }
}

fn begin(connection: &Connection, need: Need) -> rusqlite::Result<()> {
    match need {
        Need::Read => connection.execute_batch("BEGIN"),
        Need::Write => connection.execute_batch("PRAGMA synchronous = NORMAL; BEGIN IMMEDIATE"),
        Need::Durable => connection.execute_batch("PRAGMA synchronous = FULL; BEGIN IMMEDIATE"),
    }
}

/// Runs one job so that its failure takes nothing of its neighbours back.
fn in_savepoint<T>(
    connection: &Connection,
    job: impl FnOnce(&Connection) -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    connection.execute_batch("SAVEPOINT job")?;
    let result = job(connection);
    if result.is_err() {
        connection.execute_batch("ROLLBACK TO job")?;
    }
    connection.execute_batch("RELEASE job")?;
    result
}

/// A value that SQLite holds as JSON text.
fn to_json(value: &impl serde::Serialize) -> rusqlite::Result<String> {
    serde_json::to_string(value).map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
}

fn from_json<T: serde::de::DeserializeOwned>(column: usize, text: &str) -> rusqlite::Result<T> {
    // serde's own sentence may quote the value, which may be somebody's words; where it stands is enough.
    let unreadable = |error: serde_json::Error| {
        let sentence = format!("it is not the JSON that was stored, from character {} on", error.column());
        rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, sentence.into())
    };
    serde_json::from_str(text).map_err(unreadable)
}
