//! Socket Mode from Slack's side: tickets, several sockets at once, envelopes and acks, and every way to go wrong.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use hyper::body::Incoming;
use hyper::header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, UPGRADE};
use hyper::upgrade::Upgraded;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role};

use super::super::http::{self, Reply};
use super::super::proxy::Tunnel;
use super::{APP, Envelope, FakeSlack};

type WebSocket = WebSocketStream<TokioIo<Upgraded>>;

/// An ack as it came.
#[derive(Debug, Clone)]
pub struct Ack {
    pub envelope_id: String,
    pub at: Instant,
}

/// The control frames that came from the app, over all sockets.
#[derive(Debug, Clone, Default)]
pub struct Frames {
    pub pings: Vec<Bytes>,
    pub pongs: Vec<Bytes>,
    pub closes: usize,
}

/// The sockets of the workspace's one app.
pub struct Sockets {
    open: Vec<Socket>,
    opened: usize,
    turn: usize,
    /// Which socket brought an envelope: its ack must come back there (platform-facts A4).
    brought_by: HashMap<String, usize>,
    acks: Vec<Ack>,
    dropped_acks: Vec<Ack>,
    dropping_acks: bool,
    frames: Frames,
    ping_every: Duration,
    greetings: VecDeque<Vec<Value>>,
}

struct Socket {
    number: usize,
    greeted: bool,
    orders: UnboundedSender<Order>,
}

#[derive(Debug, Clone)]
enum Order {
    Send(String),
    SendBinary(&'static [u8]),
    Close(u16),
    Abort,
    AbortInFrame,
    Stall,
}

impl Default for Sockets {
    fn default() -> Self {
        Self {
            open: Vec::new(),
            opened: 0,
            turn: 0,
            brought_by: HashMap::new(),
            acks: Vec::new(),
            dropped_acks: Vec::new(),
            dropping_acks: false,
            frames: Frames::default(),
            ping_every: Duration::from_millis(200),
            greetings: VecDeque::new(),
        }
    }
}

impl FakeSlack {
    /// The sockets that are open and have been greeted.
    pub fn sockets(&self) -> usize {
        self.sockets_with(|sockets| sockets.open.iter().filter(|socket| socket.greeted).count())
    }

    /// How many sockets were ever opened.
    pub fn sockets_opened(&self) -> usize {
        self.sockets_with(|sockets| sockets.opened)
    }

    /// Sends any frame as it is, on every open socket.
    pub fn send_raw(&self, text: &str) {
        self.order(&Order::Send(text.to_owned()));
    }

    /// Sends a binary frame, which Slack never does, on every open socket.
    pub fn send_binary(&self, bytes: &'static [u8]) {
        self.order(&Order::SendBinary(bytes));
    }

    /// Announces the end of every open socket: `warning`, `refresh_requested`, `link_disabled`, `too_many_websockets`.
    pub fn disconnect(&self, reason: &str) {
        self.send_raw(&disconnect_frame(reason).to_string());
    }

    /// Closes every open socket's TCP connection without a close frame.
    pub fn abort_tcp(&self) {
        self.order(&Order::Abort);
    }

    /// Closes every open socket's TCP connection in the middle of a frame.
    pub fn abort_in_frame(&self) {
        self.order(&Order::AbortInFrame);
    }

    /// Closes every open socket as the protocol says, with this code.
    pub fn close(&self, code: u16) {
        self.order(&Order::Close(code));
    }

    /// Every socket open now falls silent for ever: no frame, no ping, no answer; its share of the envelopes is lost.
    pub fn stall(&self) {
        self.order(&Order::Stall);
    }

    /// The next socket is greeted with these frames instead of `hello`; none: it hears nothing.
    pub fn greet_next(&self, frames: Vec<Value>) {
        self.sockets_with(|sockets| sockets.greetings.push_back(frames));
    }

    /// How often Slack pings; sockets opened from now on.
    pub fn ping_every(&self, interval: Duration) {
        self.sockets_with(|sockets| sockets.ping_every = interval);
    }

    /// Acks get lost on their way from now on, or arrive again.
    pub fn drop_acks(&self, dropping: bool) {
        self.sockets_with(|sockets| sockets.dropping_acks = dropping);
    }

    /// The acks that arrived.
    pub fn acks(&self) -> Vec<Ack> {
        self.sockets_with(|sockets| sockets.acks.clone())
    }

    /// How many acks arrived.
    pub fn ack_count(&self) -> usize {
        self.sockets_with(|sockets| sockets.acks.len())
    }

    /// The acks that got lost.
    pub fn dropped_acks(&self) -> Vec<Ack> {
        self.sockets_with(|sockets| sockets.dropped_acks.clone())
    }

    /// Whether every one of these envelopes has been acked.
    pub fn acked<'a>(&self, envelopes: impl IntoIterator<Item = &'a Envelope>) -> bool {
        let acks = self.acks();
        envelopes.into_iter().all(|envelope| acks.iter().any(|ack| ack.envelope_id == envelope.id))
    }

    /// The control frames that came from the app.
    pub fn frames(&self) -> Frames {
        self.sockets_with(|sockets| sockets.frames.clone())
    }

    /// Takes a websocket in, when its ticket is a fresh one.
    pub fn upgrade(&self, tunnel: Arc<Tunnel>, request: Request<Incoming>) -> Reply {
        let key = request.headers().get(SEC_WEBSOCKET_KEY).map(|key| derive_accept_key(key.as_bytes()));
        let (Some(accept), true) = (key, self.take_ticket(&request)) else {
            self.unexpected.record("a websocket without a fresh ticket");
            return http::whole(404, "text/plain", "no such ticket");
        };
        let slack = self.clone();
        tokio::spawn(async move {
            let Ok(upgraded) = hyper::upgrade::on(request).await else { return };
            let stream = WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, None).await;
            slack.attend(stream, &tunnel).await;
        });
        let mut reply = http::whole(200, "text/plain", "");
        *reply.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let reply = http::with_header(reply, CONNECTION.as_str(), "Upgrade");
        let reply = http::with_header(reply, UPGRADE.as_str(), "websocket");
        http::with_header(reply, SEC_WEBSOCKET_ACCEPT.as_str(), &accept)
    }

    fn take_ticket(&self, request: &Request<Incoming>) -> bool {
        let query = request.uri().query().unwrap_or("").as_bytes();
        let ticket = url::form_urlencoded::parse(query).find(|(name, _)| name == "ticket").map(|(_, value)| value);
        request.uri().path() == "/link/"
            && ticket.is_some_and(|ticket| self.state.with(|state| state.tickets.remove(ticket.as_ref())))
    }

    /// One socket's life.
    async fn attend(&self, mut stream: WebSocket, tunnel: &Tunnel) {
        let (number, ping_every, mut orders, greeting) = self.sockets_with(Sockets::register);
        for frame in greeting {
            stream.send(Message::text(frame.to_string())).await.ok();
        }
        self.sockets_with(|sockets| sockets.mark_greeted(number));
        let mut ping = tokio::time::interval(ping_every);
        loop {
            let going_on = tokio::select! {
                () = tunnel.cut.cancelled() => false,
                frame = stream.next() => match frame {
                    Some(Ok(frame)) => { self.take_frame(number, frame); true }
                    Some(Err(_)) | None => false,
                },
                order = orders.recv() => match order {
                    Some(Order::Send(text)) => stream.send(Message::text(text)).await.is_ok(),
                    Some(Order::SendBinary(bytes)) => stream.send(Message::binary(Bytes::from_static(bytes))).await.is_ok(),
                    Some(Order::Stall) => { stay_silent(stream, tunnel).await; break }
                    Some(Order::Close(code)) => stream.send(close_frame(code)).await.is_ok(),
                    Some(Order::AbortInFrame) => { send_half_a_frame(stream).await; break }
                    Some(Order::Abort) | None => false,
                },
                _ = ping.tick() => stream.send(Message::Ping(Bytes::from_static(b"slack is here"))).await.is_ok(),
            };
            if !going_on {
                break;
            }
        }
        self.sockets_with(|sockets| sockets.open.retain(|socket| socket.number != number));
    }

    fn take_frame(&self, socket: usize, frame: Message) {
        match frame {
            Message::Text(text) => self.take_ack(socket, &text),
            Message::Ping(payload) => self.sockets_with(|sockets| sockets.frames.pings.push(payload)),
            Message::Pong(payload) => self.sockets_with(|sockets| sockets.frames.pongs.push(payload)),
            Message::Close(_) => self.sockets_with(|sockets| sockets.frames.closes += 1),
            Message::Binary(_) | Message::Frame(_) => self.unexpected.record("a binary frame from the app"),
        }
    }

    fn take_ack(&self, socket: usize, text: &str) {
        let frame: Value = serde_json::from_str(text).unwrap_or_default();
        let envelope_id = frame["envelope_id"].as_str().unwrap_or("").to_owned();
        let brought_by = self.sockets_with(|sockets| sockets.brought_by.get(&envelope_id).copied());
        if brought_by != Some(socket) {
            self.unexpected.record("an ack for an envelope that this socket did not bring");
        }
        let ack = Ack { envelope_id, at: Instant::now() };
        self.sockets_with(
            |sockets| {
                if sockets.dropping_acks { sockets.dropped_acks.push(ack) } else { sockets.acks.push(ack) }
            },
        );
    }

    fn order(&self, order: &Order) {
        self.sockets_with(|sockets| {
            for socket in &sockets.open {
                socket.orders.send(order.clone()).ok();
            }
        });
    }

    fn sockets_with<R>(&self, work: impl FnOnce(&mut Sockets) -> R) -> R {
        self.state.with(|state| work(&mut state.sockets))
    }
}

impl Sockets {
    /// Sends an envelope on exactly one of the open sockets, each in its turn; with none open it is lost.
    pub fn send_envelope(&mut self, envelope: &Envelope, retry_attempt: u32, retry_reason: &str) {
        let greeted: Vec<&Socket> = self.open.iter().filter(|socket| socket.greeted).collect();
        self.turn += 1;
        let Some(socket) = greeted.get(self.turn % greeted.len().max(1)) else { return };
        let frame = json!({
            "envelope_id": envelope.id, "payload": envelope.payload, "type": "events_api",
            "accepts_response_payload": false, "retry_attempt": retry_attempt, "retry_reason": retry_reason,
        });
        self.brought_by.insert(envelope.id.clone(), socket.number);
        socket.orders.send(Order::Send(frame.to_string())).ok();
    }

    fn register(&mut self) -> (usize, Duration, UnboundedReceiver<Order>, Vec<Value>) {
        self.opened += 1;
        let number = self.opened;
        let (orders, received) = unbounded_channel();
        self.open.push(Socket { number, greeted: false, orders });
        let greeting = self.greetings.pop_front().unwrap_or_else(|| vec![hello_frame(self.open.len())]);
        (number, self.ping_every, received, greeting)
    }

    fn mark_greeted(&mut self, number: usize) {
        self.open.iter_mut().filter(|socket| socket.number == number).for_each(|socket| socket.greeted = true);
    }
}

/// Reads and drops what comes, so that only the silence is noticed, until the app hangs up.
async fn stay_silent(stream: WebSocket, tunnel: &Tunnel) {
    let mut stream = stream.into_inner();
    let mut buffer = [0; 4096];
    let drain = async { while stream.read(&mut buffer).await.is_ok_and(|count| count > 0) {} };
    tokio::select! {
        () = drain => {}
        () = tunnel.cut.cancelled() => {}
    }
}

/// The head of a text frame of 100 bytes, and two of them.
async fn send_half_a_frame(stream: WebSocket) {
    let mut stream = stream.into_inner();
    stream.write_all(&[0x81, 100, b'{', b'"']).await.ok();
    stream.flush().await.ok();
}

fn close_frame(code: u16) -> Message {
    Message::Close(Some(CloseFrame { code: code.into(), reason: "".into() }))
}

/// The greeting; `connections` above the app's own say that somebody else takes a share.
pub fn hello_frame(connections: usize) -> Value {
    json!({
        "type": "hello", "num_connections": connections, "connection_info": {"app_id": APP},
        "debug_info": {"host": "applink-1", "build_number": 10, "approximate_connection_time": 18060},
    })
}

/// The announcement that a socket is going away, or must.
pub fn disconnect_frame(reason: &str) -> Value {
    json!({"type": "disconnect", "reason": reason, "debug_info": {"host": "applink-1"}})
}
