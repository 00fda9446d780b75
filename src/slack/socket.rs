//! Keeps usher connected to Slack: one supervisor, one connection, two only while one hands over to the next.
//!
//! Owns opening, replacing and retrying connections, and what the rest of usher is told about the link. It must not
//! know the rules inside a connection (`session`), nor what a payload means: that is the store's.

use std::future::Future;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use secrecy::ExposeSecret as _;
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::api::{Api, ApiError};
use super::backoff::{Cause, Reconnect};
use super::drive::{Driver, End, Order, Report, Wire, now, sleep_until};
use super::session::Abandon;
use crate::net::{Net, WebSocket};

/// How long the websocket handshake may take, proxy and TLS included (peers, finding 3: one hung for 11 hours).
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);

/// A connection that served this long was no failure: the next retry is immediate again.
const LIVED: Duration = Duration::from_secs(10);

/// Two while one hands over to the next, never more (field report T5: leaks run into Slack's limit of ten).
const MAX_CONNECTIONS: usize = 2;

/// The state of the link to Slack, for the probe, the ready line and health.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Link {
    /// Not up yet, and nothing has failed so far.
    Connecting,
    /// Events arrive.
    Up {
        /// How many connections of this app Slack counts; more than ours: another consumer takes a share.
        connections: u64,
    },
    /// No connection serves; usher keeps trying.
    Down {
        /// A sentence for people.
        why: String,
        /// Whether trying again will not help until a person mends something.
        needs_attention: bool,
    },
}

/// The Socket Mode client.
#[derive(Debug)]
pub struct Socket {
    net: Net,
    api: Api,
    silence: Duration,
}

impl Socket {
    /// A client; a connection is dead after `silence` without a frame or a ping.
    pub fn new(net: Net, api: Api, silence: Duration) -> Self {
        Self { net, api, silence }
    }

    /// Stays connected until `stop`; then accepts nothing more, acknowledges what is being stored (at most 5 s), closes.
    ///
    /// `store` is called in the order of arrival and must enqueue the payload before it returns; its future resolves
    /// when the payload is durable, and only then, and only when `Ok`, is the envelope acknowledged. The future may be
    /// dropped when its connection dies: the ack is lost then, what was enqueued is not.
    pub async fn run<S, F>(self, store: S, link: watch::Sender<Link>, stop: CancellationToken)
    where
        S: Fn(Value) -> F + Clone,
        F: Future<Output = anyhow::Result<()>>,
    {
        supervise(|| self.open(), self.silence, store, link, stop).await;
    }

    /// A fresh URL for every connection: they are good for one (platform-facts A1, field report T6).
    async fn open(&self) -> Result<WebSocket, OpenError> {
        let url = self.api.open_connection().await?;
        let opened = timeout(HANDSHAKE_LIMIT, self.net.websocket(url.expose_secret())).await;
        opened.map_err(|_elapsed| OpenError::Stalled)?.map_err(OpenError::Handshake)
    }
}

/// Why there is no websocket.
#[derive(Debug, thiserror::Error)]
enum OpenError {
    #[error(transparent)]
    Api(#[from] ApiError),
    #[error("{0:#}")]
    Handshake(anyhow::Error),
    #[error("the websocket did not open within {} seconds", HANDSHAKE_LIMIT.as_secs())]
    Stalled,
}

/// Why a connection is gone, opened or not.
#[derive(Debug, thiserror::Error)]
enum Down {
    #[error(transparent)]
    NotOpened(#[from] OpenError),
    #[error(transparent)]
    Ended(#[from] End),
}

impl Down {
    fn cause(&self) -> Cause {
        match self {
            Self::NotOpened(OpenError::Api(ApiError::RateLimited { retry_after })) => Cause::RateLimited(*retry_after),
            Self::NotOpened(OpenError::Api(error)) if error.is_lasting() => Cause::NeedsAttention,
            Self::Ended(End::Abandoned(Abandon::LinkDisabled)) => Cause::NeedsAttention,
            Self::Ended(End::Abandoned(Abandon::TooManyWebsockets)) => Cause::Crowded,
            Self::NotOpened(_) | Self::Ended(_) => Cause::Lost,
        }
    }
}

/// A connection among those of one supervisor.
type Id = u64;

async fn supervise<O, P, W, S, F>(
    open: O,
    silence: Duration,
    store: S,
    link: watch::Sender<Link>,
    stop: CancellationToken,
) where
    O: Fn() -> P,
    P: Future<Output = Result<W, OpenError>>,
    W: Wire,
    S: Fn(Value) -> F + Clone,
    F: Future<Output = anyhow::Result<()>>,
{
    let (reports, mut reported) = mpsc::unbounded_channel();
    let mut connections = FuturesUnordered::new();
    let mut supervisor = Supervisor::new(link, now());
    loop {
        let attempt = supervisor.next_attempt().filter(|_| connections.len() < MAX_CONNECTIONS);
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            Some((id, report)) = reported.recv() => supervisor.reported(id, report, now()),
            Some((id, down)) = connections.next() => supervisor.ended(id, &down, now()),
            () = sleep_until(attempt) => {
                let (id, orders) = supervisor.start();
                let reports = reports.clone();
                // Never refused: the receiver lives as long as this loop.
                let report = move |report| drop(reports.send((id, report)));
                connections.push(connect(id, open(), silence, store.clone(), orders, report));
            }
        }
    }
    supervisor.stop();
    while connections.next().await.is_some() {}
}

/// One connection from its opening to its end.
async fn connect<W, S, F>(
    id: Id,
    opening: impl Future<Output = Result<W, OpenError>>,
    silence: Duration,
    store: S,
    mut orders: watch::Receiver<Order>,
    report: impl Fn(Report),
) -> (Id, Down)
where
    W: Wire,
    S: Fn(Value) -> F,
    F: Future<Output = anyhow::Result<()>>,
{
    let opened = tokio::select! {
        _ = orders.wait_for(|order| *order == Order::Stop) => return (id, End::Stopped.into()),
        opened = opening => opened,
    };
    match opened {
        Ok(wire) => (id, Driver::new(wire, silence, store, orders, report).run().await.into()),
        Err(error) => (id, error.into()),
    }
}

/// Decides when to open a connection and which one serves.
struct Supervisor {
    link: watch::Sender<Link>,
    reconnect: Reconnect,
    next_id: Id,
    /// When to open the next one, unless `newest` is there.
    attempt_at: Instant,
    /// The one that serves or is about to.
    newest: Option<Connection>,
    /// The one that it replaces.
    older: Option<Connection>,
}

struct Connection {
    id: Id,
    /// Since when it serves; `None` before its hello, and again once it has been replaced.
    up_at: Option<Instant>,
    orders: watch::Sender<Order>,
}

impl Supervisor {
    fn new(link: watch::Sender<Link>, now: Instant) -> Self {
        link.send_replace(Link::Connecting);
        Self { link, reconnect: Reconnect::fresh(), next_id: 0, attempt_at: now, newest: None, older: None }
    }

    fn next_attempt(&self) -> Option<Instant> {
        self.newest.is_none().then_some(self.attempt_at)
    }

    fn start(&mut self) -> (Id, watch::Receiver<Order>) {
        let id = self.next_id;
        self.next_id += 1;
        let (orders, ordered) = watch::channel(Order::Serve);
        self.newest = Some(Connection { id, up_at: None, orders });
        (id, ordered)
    }

    fn reported(&mut self, id: Id, report: Report, now: Instant) {
        match report {
            Report::Up(connections) => self.up(id, connections, now),
            Report::Retire(reason) => {
                if let Some(retired) = self.newest.take_if(|newest| newest.id == id) {
                    tracing::info!(%reason, "slack socket is being replaced");
                    self.schedule(&retired, Cause::Lost, now);
                    stop(self.older.replace(retired));
                }
            }
        }
    }

    fn up(&mut self, id: Id, connections: u64, now: Instant) {
        let Some(newest) = self.newest.as_mut().filter(|newest| newest.id == id) else { return };
        newest.up_at = Some(now);
        if let Some(older) = self.older.as_mut() {
            older.up_at = None;
            older.orders.send_replace(Order::Drain);
        }
        tracing::info!(connections, "slack socket up");
        self.link.send_replace(Link::Up { connections });
    }

    fn ended(&mut self, id: Id, down: &Down, now: Instant) {
        if let Some(ended) = self.newest.take_if(|newest| newest.id == id) {
            let wait = self.schedule(&ended, down.cause(), now);
            tracing::warn!(reason = %down, retry_in_ms = wait.as_millis(), "slack socket down");
            if down.cause() == Cause::Crowded {
                // Close before opening again: the older one counts too (platform-facts A2).
                stop(self.older.take());
            }
            self.tell_if_down(down);
        } else if self.older.take_if(|older| older.id == id).is_some_and(|older| older.up_at.is_some()) {
            self.tell_if_down(down);
        }
    }

    fn tell_if_down(&self, down: &Down) {
        if !self.serves() {
            let needs_attention = down.cause() == Cause::NeedsAttention;
            self.link.send_replace(Link::Down { why: down.to_string(), needs_attention });
        }
    }

    /// Whether a connection has said hello and has not been replaced.
    fn serves(&self) -> bool {
        [&self.newest, &self.older].into_iter().flatten().any(|connection| connection.up_at.is_some())
    }

    fn schedule(&mut self, gone: &Connection, cause: Cause, now: Instant) -> Duration {
        if gone.up_at.is_some_and(|up_at| LIVED <= now.saturating_duration_since(up_at)) {
            self.reconnect = Reconnect::fresh();
        }
        let wait = self.reconnect.delay(cause);
        self.attempt_at = now.checked_add(wait).unwrap_or(now);
        wait
    }

    fn stop(&mut self) {
        stop(self.newest.take());
        stop(self.older.take());
    }
}

fn stop(connection: Option<Connection>) {
    if let Some(connection) = connection {
        connection.orders.send_replace(Order::Stop);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::{Arc, Mutex};

    use tokio::task::JoinHandle;

    use super::super::drive::tests::{Half, Peer, SILENCE, pair};
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// A supervisor whose openings the test answers.
    struct World {
        opened: mpsc::UnboundedReceiver<Peer>,
        refusals: Arc<Mutex<VecDeque<OpenError>>>,
        stored: Arc<Mutex<Vec<Value>>>,
        link: watch::Receiver<Link>,
        stop: CancellationToken,
        supervisor: JoinHandle<()>,
    }

    impl World {
        fn start(refusals: Vec<OpenError>) -> Self {
            let refusals = Arc::new(Mutex::new(VecDeque::from(refusals)));
            let (offer, opened) = mpsc::unbounded_channel();
            let next_refusal = Arc::clone(&refusals);
            let open = move || {
                let (offer, refusal) = (offer.clone(), next_refusal.lock().expect("no panic").pop_front());
                async move {
                    if let Some(error) = refusal {
                        return Err(error);
                    }
                    let (ours, peer) = pair(64 * 1024).await;
                    offer.send(peer).map_err(|_| OpenError::Stalled)?;
                    Ok(ours)
                }
            };
            let stored = Arc::new(Mutex::new(Vec::new()));
            let keep = Arc::clone(&stored);
            let store = move |payload| {
                keep.lock().expect("no panic").push(payload);
                async { Ok(()) }
            };
            let (tell, link) = watch::channel(Link::Connecting);
            let stop = CancellationToken::new();
            let supervisor = tokio::spawn(supervise(open, SILENCE, store, tell, stop.clone()));
            Self { opened, refusals, stored, link, stop, supervisor }
        }

        async fn opened(&mut self) -> Peer {
            self.opened.recv().await.expect("the supervisor opens a connection")
        }

        /// The next connection, after its hello was taken in.
        async fn up(&mut self) -> Peer {
            let mut peer = self.opened().await;
            peer.hello().await;
            self.link.wait_for(|link| matches!(link, Link::Up { .. })).await.expect("a link");
            peer
        }

        async fn down(&mut self) -> (String, bool) {
            match self.link.wait_for(|link| matches!(link, Link::Down { .. })).await.expect("a link").clone() {
                Link::Down { why, needs_attention } => (why, needs_attention),
                other => panic!("{other:?}"),
            }
        }

        fn opens_nothing(&mut self) -> bool {
            self.opened.try_recv().is_err()
        }
    }

    fn revoked() -> OpenError {
        OpenError::Api(ApiError::NeedsAttention { error: "token_revoked".to_owned() })
    }

    #[tokio::test(start_paused = true)]
    async fn a_warned_connection_serves_until_the_next_one_has_said_hello() {
        let mut world = World::start(vec![]);
        let mut old = world.up().await;
        tokio::time::sleep(LIVED).await;
        world.link.mark_unchanged();
        old.disconnect("warning").await;
        let mut new = world.opened().await;
        old.event("before").await;
        old.heard_ack("before").await;
        new.hello().await;
        new.event("new").await;
        new.heard_ack("new").await;
        old.event("after").await;
        old.heard_ack("after").await;
        old.heard_close().await;
        assert_eq!(world.stored.lock().expect("no panic").len(), 3);
        tokio::time::sleep(SECOND).await;
        assert_eq!(*world.link.borrow(), Link::Up { connections: 1 });
        new.event("later").await;
        new.heard_ack("later").await;
        assert!(world.opens_nothing());
    }

    #[tokio::test(start_paused = true)]
    async fn a_retired_connection_serves_on_while_the_next_cannot_be_opened() {
        let mut world = World::start(vec![]);
        let mut old = world.up().await;
        world.refusals.lock().expect("no panic").extend([revoked()]);
        old.disconnect("refresh_requested").await;
        tokio::time::sleep(20 * SECOND).await;
        old.event("e1").await;
        old.heard_ack("e1").await;
        assert_eq!(*world.link.borrow(), Link::Up { connections: 1 });
        drop(old);
        let (why, _) = world.down().await;
        assert!(why.starts_with("the connection broke"), "{why}");
        world.up().await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_third_connection_waits_until_the_first_is_closed() {
        let mut world = World::start(vec![]);
        let mut first = world.up().await;
        tokio::time::sleep(LIVED).await;
        first.disconnect("warning").await;
        let mut second = world.opened().await;
        second.hello().await;
        tokio::time::sleep(SECOND).await;
        second.disconnect("warning").await;
        first.heard_close().await;
        assert!(world.opens_nothing());
        drop(first);
        let mut third = world.opened().await;
        third.hello().await;
        second.event("e1").await;
        second.heard_ack("e1").await;
    }

    #[tokio::test(start_paused = true)]
    async fn too_many_connections_close_first_and_back_off() {
        let mut world = World::start(vec![]);
        let mut peer = world.opened().await;
        let refused_at = now();
        peer.disconnect("too_many_websockets").await;
        peer.heard_close().await;
        drop(peer);
        assert!(!world.down().await.1);
        world.opened().await;
        assert!(SECOND <= now() - refused_at);
    }

    #[tokio::test(start_paused = true)]
    async fn a_refused_replacement_takes_the_old_connection_with_it() {
        let mut world = World::start(vec![]);
        let mut old = world.up().await;
        tokio::time::sleep(LIVED).await;
        old.disconnect("warning").await;
        let mut new = world.opened().await;
        new.disconnect("too_many_websockets").await;
        old.heard_close().await;
        let (why, _) = world.down().await;
        assert!(why.contains("too many open connections"), "{why}");
        world.up().await;
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_person_must_mend_is_said_and_tried_slowly_without_a_restart() {
        let mut world = World::start(vec![revoked()]);
        let started = now();
        let expected = "Slack does not accept the token or the app (token_revoked)".to_owned();
        assert_eq!(world.down().await, (expected, true));
        let mut peer = world.up().await;
        assert!(30 * SECOND <= now() - started);
        let disabled_at = now();
        peer.disconnect("link_disabled").await;
        assert!(world.down().await.1);
        world.up().await;
        assert!(30 * SECOND <= now() - disabled_at);
    }

    #[tokio::test(start_paused = true)]
    async fn a_named_wait_is_obeyed() {
        let limited = ApiError::RateLimited { retry_after: 77 * SECOND };
        let mut world = World::start(vec![limited.into()]);
        let started = now();
        world.up().await;
        assert_eq!((now() - started).as_secs(), 77);
    }

    #[tokio::test(start_paused = true)]
    async fn a_lost_connection_is_replaced_at_once() {
        let mut world = World::start(vec![]);
        for _ in 0..3 {
            let peer = world.up().await;
            tokio::time::sleep(LIVED).await;
            let cut_at = now();
            drop(peer);
            world.down().await;
            assert!(now() - cut_at < SECOND);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_stall_is_replaced_after_the_silence() {
        let mut world = World::start(vec![]);
        let _silent = world.up().await;
        let started = now();
        world.up().await;
        let waited = now() - started;
        assert!(SILENCE <= waited && waited < SILENCE + 2 * SECOND, "{waited:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn connections_that_die_young_are_not_reopened_in_a_tight_loop() {
        let mut world = World::start(vec![]);
        let started = now();
        let mut attempts = 0;
        while now() - started < 60 * SECOND {
            let mut peer = world.opened().await;
            peer.hello().await;
            peer.disconnect("refresh_requested").await;
            tokio::task::yield_now().await;
            attempts += 1;
        }
        assert!((3..=10).contains(&attempts), "{attempts} attempts in a minute");
    }

    #[tokio::test(start_paused = true)]
    async fn on_stop_every_connection_is_closed() {
        let mut world = World::start(vec![]);
        let mut old = world.up().await;
        tokio::time::sleep(LIVED).await;
        old.disconnect("warning").await;
        let mut new = world.opened().await;
        world.stop.cancel();
        old.heard_close().await;
        new.heard_close().await;
        drop((old, new));
        world.supervisor.await.expect("no panic");
    }

    #[tokio::test(start_paused = true)]
    async fn an_opening_that_hangs_does_not_hold_up_the_stop() {
        let (link, _) = watch::channel(Link::Connecting);
        let stop = CancellationToken::new();
        stop.clone().cancel();
        let hang = || std::future::pending::<Result<Half, OpenError>>();
        let supervisor = tokio::spawn(supervise(hang, SILENCE, |_| async { Ok(()) }, link, stop));
        timeout(SECOND, supervisor).await.expect("at once").expect("no panic");
    }

    #[test]
    fn the_client_can_run_on_any_thread() {
        fn is_send<T: Send>(_: &T) {}
        let net = Net::new().expect("a client");
        let api = Api::new(net.clone(), None, None);
        let (link, _) = watch::channel(Link::Connecting);
        let socket = Socket::new(net, api, SILENCE);
        is_send(&socket.run(|_| async { Ok(()) }, link, CancellationToken::new()));
    }
}
