//! Drives one websocket by its session: reads frames, starts stores, writes acks and pongs, watches the clock.
//!
//! Owns the reading loop, the stores in flight and every write with its timeout. It must not know how a connection is
//! opened, that there may be another one, or what a payload means.

use std::future::Future;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use futures_util::future::{Join, Ready, join, ready};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, Sink, SinkExt as _, Stream, StreamExt as _};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::{Error as WireError, Message};

use super::session::{Abandon, Ack, EnvelopeId, Input, Output, Retire, Session};

/// How many payloads may be on their way to the disk; only at this bound does reading wait.
const MAX_STORING: usize = 256;

/// How long a write may take. A peer that takes no bytes is dead, however alive its side looks (peers, finding 3).
const WRITE_LIMIT: Duration = Duration::from_secs(10);

/// How long a deliberate end waits for the stores in flight, so that their acks go out.
const STORE_LIMIT: Duration = Duration::from_secs(5);

/// How long the close handshake may take: Slack leaves the TCP connection open after it (platform-facts A2).
const CLOSE_LIMIT: Duration = Duration::from_secs(1);

/// What the supervisor wants of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// Serve.
    Serve,
    /// Another one has taken over: read a little longer, then end.
    Drain,
    /// Accept nothing more, acknowledge what is being stored, close.
    Stop,
}

/// What a connection tells its supervisor while it lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Report {
    /// It serves; Slack counts this many connections.
    Up(u64),
    /// It needs a replacement.
    Retire(Retire),
}

/// How a driven connection ended.
#[derive(Debug, thiserror::Error)]
pub(super) enum End {
    /// By Slack's rules.
    #[error(transparent)]
    Abandoned(#[from] Abandon),
    /// The wire failed.
    #[error("the connection broke: {0}")]
    Broken(WireError),
    /// The peer takes no bytes.
    #[error("Slack took no data for {} seconds", WRITE_LIMIT.as_secs())]
    WriteStalled,
    /// As ordered.
    #[error("usher is stopping")]
    Stopped,
}

/// A websocket, or anything that behaves like one.
pub(super) trait Wire:
    Stream<Item = Result<Message, WireError>> + Sink<Message, Error = WireError> + Unpin
{
}

impl<T: Stream<Item = Result<Message, WireError>> + Sink<Message, Error = WireError> + Unpin> Wire for T {}

/// A payload on its way to the disk, with the envelope that is acknowledged after it.
type Storing<F> = Join<Ready<EnvelopeId>, F>;

/// One connection at work.
pub(super) struct Driver<W, S, F: Future, R> {
    wire: W,
    session: Session,
    store: S,
    storing: FuturesUnordered<Storing<F>>,
    store_fails: bool,
    orders: watch::Receiver<Order>,
    report: R,
}

impl<W, S, F, R> Driver<W, S, F, R>
where
    W: Wire,
    S: Fn(Value) -> F,
    F: Future<Output = anyhow::Result<()>>,
    R: Fn(Report),
{
    /// A driver for a websocket that has just opened.
    pub(super) fn new(wire: W, silence: Duration, store: S, orders: watch::Receiver<Order>, report: R) -> Self {
        let session = Session::new(silence, now());
        Self { wire, session, store, storing: FuturesUnordered::new(), store_fails: false, orders, report }
    }

    /// Runs the connection to its end and closes it. What was delivered and not acknowledged by then comes again.
    pub(super) async fn run(mut self) -> End {
        let end = self.serve().await;
        if matches!(end, End::Stopped | End::Abandoned(Abandon::Replaced)) {
            self.finish_storing().await;
        }
        self.close(&end).await;
        tracing::debug!(passed_over = self.session.passed_over(), reason = %end, "slack socket closed");
        end
    }

    async fn serve(&mut self) -> End {
        loop {
            let next = tokio::select! {
                order = next_order(&mut self.orders) => self.obey(order),
                Some((envelope, stored)) = self.storing.next() => self.acknowledge(envelope, stored).await,
                frame = self.wire.next(), if self.storing.len() < MAX_STORING => self.receive(frame).await,
                () = sleep_until(self.session.deadline()) => self.tick().await,
            };
            if let ControlFlow::Break(end) = next {
                return end;
            }
        }
    }

    fn obey(&mut self, order: Order) -> ControlFlow<End> {
        match order {
            Order::Serve => {}
            Order::Drain => self.session.replaced(now()),
            Order::Stop => return ControlFlow::Break(End::Stopped),
        }
        ControlFlow::Continue(())
    }

    async fn receive(&mut self, frame: Option<Result<Message, WireError>>) -> ControlFlow<End> {
        let frame = match frame {
            None => Message::Close(None),
            Some(Ok(frame)) => frame,
            Some(Err(error)) => return ControlFlow::Break(End::Broken(error)),
        };
        let input = match &frame {
            Message::Text(text) => Input::Text(text),
            Message::Ping(payload) => Input::Ping(payload.clone()),
            Message::Pong(_) => Input::Pong,
            Message::Close(_) => Input::Close,
            Message::Binary(_) | Message::Frame(_) => Input::Binary,
        };
        match self.session.handle(input, now()) {
            Some(output) => self.perform(output).await,
            None => ControlFlow::Continue(()),
        }
    }

    async fn tick(&mut self) -> ControlFlow<End> {
        match self.session.tick(now()) {
            Some(output) => self.perform(output).await,
            None => ControlFlow::Continue(()),
        }
    }

    async fn perform(&mut self, output: Output) -> ControlFlow<End> {
        match output {
            Output::Up { connections } => (self.report)(Report::Up(connections)),
            Output::Retire(reason) => (self.report)(Report::Retire(reason)),
            Output::Deliver { envelope, payload } => self.deliver(envelope, payload),
            // The library has queued the same pong; this one takes its place and is flushed at once.
            Output::Pong(payload) => return within_limit(self.wire.send(Message::Pong(payload))).await,
            Output::Abandon(reason) => return ControlFlow::Break(End::Abandoned(reason)),
            Output::PassedOver { kind, ack } => {
                tracing::debug!(?kind, "slack frame passed over");
                if let Some(ack) = ack {
                    return within_limit(self.wire.send(ack_frame(ack))).await;
                }
            }
        }
        ControlFlow::Continue(())
    }

    fn deliver(&mut self, envelope: EnvelopeId, payload: Value) {
        self.storing.push(join(ready(envelope), (self.store)(payload)));
        if self.storing.len() >= MAX_STORING {
            self.session.pause();
        }
    }

    /// Acknowledges this one and all others that are durable by now, with one flush.
    async fn acknowledge(&mut self, envelope: EnvelopeId, stored: anyhow::Result<()>) -> ControlFlow<End> {
        let mut acks: Vec<Ack> = self.ack_if_stored(envelope, stored).into_iter().collect();
        while let Some(Some((envelope, stored))) = self.storing.next().now_or_never() {
            acks.extend(self.ack_if_stored(envelope, stored));
        }
        self.session.resume(now());
        within_limit(async {
            for ack in acks {
                self.wire.feed(ack_frame(ack)).await?;
            }
            self.wire.flush().await
        })
        .await
    }

    fn ack_if_stored(&mut self, envelope: EnvelopeId, stored: anyhow::Result<()>) -> Option<Ack> {
        let failing_already = std::mem::replace(&mut self.store_fails, stored.is_err());
        match stored {
            Ok(()) => Some(self.session.stored(envelope)),
            Err(error) => {
                if !failing_already {
                    tracing::warn!(reason = %format_args!("{error:#}"), "a slack event could not be stored, slack will send it again");
                }
                None
            }
        }
    }

    async fn finish_storing(&mut self) {
        let all = async {
            while let Some((envelope, stored)) = self.storing.next().await {
                if self.acknowledge(envelope, stored).await.is_break() {
                    break;
                }
            }
        };
        if timeout(STORE_LIMIT, all).await.is_err() {
            tracing::warn!(events = self.storing.len(), "slack events are not stored yet, slack will send them again");
        }
    }

    /// Says goodbye, so that Slack does not keep a ghost of this connection for hours (platform-facts A3).
    async fn close(&mut self, end: &End) {
        if matches!(end, End::Broken(_) | End::WriteStalled) {
            return;
        }
        let peer_may_answer = !matches!(end, End::Abandoned(Abandon::Closed | Abandon::Silent));
        let goodbye = async {
            self.wire.close().await?;
            while peer_may_answer && self.wire.next().await.transpose()?.is_some() {}
            Ok::<(), WireError>(())
        };
        match timeout(CLOSE_LIMIT, goodbye).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "the slack socket did not close cleanly"),
            Err(_elapsed) => tracing::debug!("slack did not answer the close frame"),
        }
    }
}

/// The next order; once the supervisor is gone, to stop.
async fn next_order(orders: &mut watch::Receiver<Order>) -> Order {
    match orders.changed().await {
        Ok(()) => *orders.borrow_and_update(),
        Err(_supervisor_is_gone) => Order::Stop,
    }
}

fn ack_frame(ack: Ack) -> Message {
    Message::text(ack.into_text())
}

async fn within_limit(write: impl Future<Output = Result<(), WireError>>) -> ControlFlow<End> {
    match timeout(WRITE_LIMIT, write).await {
        Ok(Ok(())) => ControlFlow::Continue(()),
        Ok(Err(error)) => ControlFlow::Break(End::Broken(error)),
        Err(_elapsed) => ControlFlow::Break(End::WriteStalled),
    }
}

/// Waits for a moment; for ever, if there is none.
pub(super) async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
        None => std::future::pending().await,
    }
}

/// The runtime's clock, which tests turn by hand.
pub(super) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::{Arc, Mutex};

    use anyhow::anyhow;
    use serde_json::json;
    use tokio::io::DuplexStream;
    use tokio::sync::{mpsc, oneshot};
    use tokio::task::JoinHandle;
    use tokio_tungstenite::WebSocketStream;
    use tokio_tungstenite::tungstenite::protocol::Role;

    use super::*;

    pub(in crate::slack) const SILENCE: Duration = Duration::from_secs(30);

    pub(in crate::slack) type Half = WebSocketStream<DuplexStream>;

    /// Slack's end of a connection.
    pub(in crate::slack) struct Peer(Half);

    /// Two ends of one websocket, with so many bytes of room between them.
    pub(in crate::slack) async fn pair(room: usize) -> (Half, Peer) {
        let (ours, theirs) = tokio::io::duplex(room);
        let ours = WebSocketStream::from_raw_socket(ours, Role::Client, None).await;
        (ours, Peer(WebSocketStream::from_raw_socket(theirs, Role::Server, None).await))
    }

    impl Peer {
        pub(in crate::slack) async fn say(&mut self, frame: &Value) {
            self.send(Message::text(frame.to_string())).await;
        }

        async fn send(&mut self, message: Message) {
            self.0.send(message).await.expect("the client listens");
        }

        pub(in crate::slack) async fn hello(&mut self) {
            self.say(&json!({"type": "hello", "num_connections": 1})).await;
        }

        pub(in crate::slack) async fn disconnect(&mut self, reason: &str) {
            self.say(&json!({"type": "disconnect", "reason": reason})).await;
        }

        pub(in crate::slack) async fn event(&mut self, id: &str) {
            self.say(&json!({"type": "events_api", "envelope_id": id, "payload": {"id": id}})).await;
        }

        /// What the client sends next, within a while.
        pub(in crate::slack) async fn heard(&mut self) -> Option<Message> {
            timeout(Duration::from_secs(20), self.0.next()).await.expect("the client says something")?.ok()
        }

        pub(in crate::slack) async fn heard_ack(&mut self, id: &str) {
            assert_eq!(self.heard().await, Some(Message::text(json!({"envelope_id": id}).to_string())));
        }

        pub(in crate::slack) async fn heard_close(&mut self) {
            let heard = self.heard().await;
            assert!(matches!(heard, Some(Message::Close(_))), "{heard:?}");
        }

        pub(in crate::slack) async fn hears_nothing_for(&mut self, seconds: u64) {
            let heard = timeout(Duration::from_secs(seconds), self.0.next()).await;
            assert!(heard.is_err(), "{heard:?}");
        }
    }

    /// A payload's id with what decides its fate.
    type Begun = (String, oneshot::Sender<anyhow::Result<()>>);

    /// One driven connection, its peer, and the stores that it has begun, in their order.
    struct World {
        peer: Peer,
        begun: mpsc::UnboundedReceiver<Begun>,
        reports: Arc<Mutex<Vec<Report>>>,
        orders: watch::Sender<Order>,
        driver: JoinHandle<End>,
    }

    impl World {
        async fn open(room: usize) -> Self {
            let (ours, peer) = pair(room).await;
            let (begin, begun) = mpsc::unbounded_channel();
            let store = move |payload: Value| {
                let (decide, decided) = oneshot::channel();
                let id = payload["id"].as_str().expect("an id").to_owned();
                begin.send((id, decide)).expect("the test listens");
                async move { decided.await? }
            };
            let (orders, ordered) = watch::channel(Order::Serve);
            let reports = Arc::new(Mutex::new(Vec::new()));
            let heard = Arc::clone(&reports);
            let report = move |report| heard.lock().expect("no panic").push(report);
            let driver = tokio::spawn(Driver::new(ours, SILENCE, store, ordered, report).run());
            Self { peer, begun, reports, orders, driver }
        }

        async fn up() -> Self {
            let mut world = Self::open(64 * 1024).await;
            world.peer.hello().await;
            world
        }

        /// The next store that the driver begins.
        async fn begun(&mut self, id: &str) -> oneshot::Sender<anyhow::Result<()>> {
            let (begun, decide) = self.begun.recv().await.expect("a store begins");
            assert_eq!(begun, id);
            decide
        }

        async fn ended(self) -> String {
            format!("{}", self.driver.await.expect("no panic"))
        }
    }

    fn decide(store: oneshot::Sender<anyhow::Result<()>>, outcome: anyhow::Result<()>) {
        store.send(outcome).expect("the driver waits");
    }

    #[tokio::test(start_paused = true)]
    async fn an_ack_follows_the_store_and_never_precedes_it() {
        let mut world = World::up().await;
        world.peer.event("e1").await;
        let store = world.begun("e1").await;
        world.peer.hears_nothing_for(20).await;
        decide(store, Ok(()));
        world.peer.heard_ack("e1").await;
        assert_eq!(*world.reports.lock().expect("no panic"), [Report::Up(1)]);
    }

    #[tokio::test(start_paused = true)]
    async fn stores_begin_in_frame_order_and_are_acknowledged_as_they_end() {
        let mut world = World::up().await;
        for id in ["e1", "e2", "e3"] {
            world.peer.event(id).await;
        }
        let (first, second, third) = (world.begun("e1").await, world.begun("e2").await, world.begun("e3").await);
        for (store, id) in [(third, "e3"), (first, "e1"), (second, "e2")] {
            decide(store, Ok(()));
            world.peer.heard_ack(id).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_could_not_be_stored_is_not_acknowledged() {
        let mut world = World::up().await;
        world.peer.event("e1").await;
        world.peer.event("e2").await;
        let (first, second) = (world.begun("e1").await, world.begun("e2").await);
        decide(first, Err(anyhow!("disk full")));
        world.peer.hears_nothing_for(5).await;
        decide(second, Ok(()));
        world.peer.heard_ack("e2").await;
    }

    #[tokio::test(start_paused = true)]
    async fn reading_waits_only_at_the_bound_and_is_not_taken_for_silence() {
        let mut world = World::up().await;
        for number in 0..=MAX_STORING {
            world.peer.event(&format!("e{number}")).await;
        }
        let mut stores = Vec::new();
        for number in 0..MAX_STORING {
            stores.push(world.begun(&format!("e{number}")).await);
        }
        tokio::time::sleep(SILENCE * 3).await;
        assert!(world.begun.try_recv().is_err(), "reading goes on past the bound");
        decide(stores.pop().expect("a store"), Ok(()));
        world.peer.heard_ack(&format!("e{}", MAX_STORING - 1)).await;
        world.begun(&format!("e{MAX_STORING}")).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_ping_is_answered_once_and_a_silent_stall_ends_the_connection() {
        let mut world = World::up().await;
        tokio::time::sleep(Duration::from_secs(20)).await;
        world.peer.send(Message::Ping("are you there".into())).await;
        assert_eq!(world.peer.heard().await, Some(Message::Pong("are you there".into())));
        let started = now();
        world.peer.hears_nothing_for(29).await;
        world.peer.heard_close().await;
        assert!(now() - started <= SILENCE + Duration::from_secs(1));
        assert_eq!(world.ended().await, "Slack was silent for too long");
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_takes_no_bytes_is_dead() {
        let world = World::open(256).await;
        let World { mut peer, driver, .. } = world;
        let flood = tokio::spawn(async move {
            let frame = json!({"type": "interactive", "envelope_id": "i".repeat(100)}).to_string();
            while peer.0.send(Message::text(frame.clone())).await.is_ok() {}
        });
        let started = now();
        assert_eq!(driver.await.expect("no panic").to_string(), "Slack took no data for 10 seconds");
        assert!(now() - started < WRITE_LIMIT + Duration::from_secs(1));
        flood.await.expect("no panic");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_no_event_is_passed_over() {
        let mut world = World::up().await;
        world.peer.send(Message::text("")).await;
        world.peer.send(Message::binary(vec![0, 159])).await;
        world.peer.send(Message::text("{\"type\":\"weather\"}")).await;
        world.peer.say(&json!({"type": "interactive", "envelope_id": "i1", "payload": {}})).await;
        world.peer.heard_ack("i1").await;
        world.peer.event("e1").await;
        world.begun("e1").await;
    }

    #[tokio::test(start_paused = true)]
    async fn on_stop_the_stores_in_flight_are_acknowledged_and_the_socket_is_closed() {
        let mut world = World::up().await;
        world.peer.event("e1").await;
        let store = world.begun("e1").await;
        world.orders.send_replace(Order::Stop);
        tokio::time::sleep(Duration::from_secs(1)).await;
        world.peer.event("e2").await;
        decide(store, Ok(()));
        world.peer.heard_ack("e1").await;
        world.peer.heard_close().await;
        assert!(world.begun.try_recv().is_err(), "an event was accepted after the stop");
        assert_eq!(world.ended().await, "usher is stopping");
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_never_ends_delays_the_stop_by_five_seconds() {
        let mut world = World::up().await;
        world.peer.event("e1").await;
        let _store = world.begun("e1").await;
        world.orders.send_replace(Order::Stop);
        world.peer.hears_nothing_for(4).await;
        world.peer.heard_close().await;
        assert_eq!(world.ended().await, "usher is stopping");
    }

    #[tokio::test(start_paused = true)]
    async fn a_supervisor_that_is_gone_means_stop() {
        let World { mut peer, orders, driver, .. } = World::up().await;
        drop(orders);
        peer.heard_close().await;
        assert!(matches!(driver.await.expect("no panic"), End::Stopped));
    }

    #[tokio::test(start_paused = true)]
    async fn a_cut_and_a_close_end_the_connection_at_once() {
        let started = now();
        let cut = World::up().await;
        drop(cut.peer);
        assert!(matches!(cut.driver.await.expect("no panic"), End::Broken(_)));
        let mut closed = World::up().await;
        closed.peer.0.close(None).await.expect("a close");
        assert_eq!(closed.ended().await, "Slack closed the connection");
        assert!(now() - started < Duration::from_secs(1));
    }
}
