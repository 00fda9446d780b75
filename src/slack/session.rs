//! One Socket Mode connection as a value: frames and the time go in, what to do comes out.
//!
//! Owns Slack's rules for a connection (platform-facts A2 to A4): the hello, acks, pings, silence and every disconnect
//! reason. It must not know sockets, tasks, a clock, or what a payload means.

use std::fmt;
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::{Map, Value, json};

/// How long Slack may take to say hello. Without one no event ever comes, though the socket is open (field report T6).
pub const HELLO_LIMIT: Duration = Duration::from_secs(10);

/// How long a replaced connection is still read: events may arrive on either one (platform-facts A2).
pub const DRAIN_LIMIT: Duration = Duration::from_secs(10);

/// What arrived on the socket.
#[derive(Debug, Clone)]
pub enum Input<'a> {
    /// A text frame: all of Slack's protocol is JSON in these.
    Text(&'a str),
    /// A binary frame; Slack defines none.
    Binary,
    /// A ping with its payload.
    Ping(Bytes),
    /// A pong.
    Pong,
    /// A close frame, or the end of the stream.
    Close,
}

/// What the driver has to do.
#[derive(Debug, PartialEq)]
pub enum Output {
    /// Slack said hello: the connection serves.
    Up {
        /// How many connections of this app Slack counts, this one included.
        connections: u64,
    },
    /// Store this durably, then hand the envelope to [`Session::stored`].
    Deliver {
        /// What the ack will name.
        envelope: EnvelopeId,
        /// The `event_callback` body, as it came.
        payload: Value,
    },
    /// Answer a ping with its own payload.
    Pong(Bytes),
    /// Open a replacement, wait for its hello, call [`Session::replaced`] on this one. It serves until then.
    Retire(Retire),
    /// It is over: close it first, then think about another one.
    Abandon(Abandon),
    /// Nothing for usher; counted.
    PassedOver {
        /// Why.
        kind: PassedOver,
        /// Slack shows the person an error unless an interaction is acknowledged.
        ack: Option<Ack>,
    },
}

/// The id of a delivered envelope. Only a session makes one and it cannot be copied, so each delivery has at most one ack.
#[derive(Debug, PartialEq, Eq)]
pub struct EnvelopeId(String);

/// The text frame that acknowledges an envelope.
#[derive(Debug, PartialEq, Eq)]
pub struct Ack(String);

impl Ack {
    fn of(envelope_id: &str) -> Self {
        Self(json!({ "envelope_id": envelope_id }).to_string())
    }

    /// The frame's text.
    pub fn into_text(self) -> String {
        self.0
    }
}

/// Why a connection that works has to be replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Retire {
    /// Slack closes it in about ten seconds.
    Warning,
    /// Slack closes it now.
    RefreshRequested,
    /// A reason that usher does not know; its text, made safe for a log.
    Other(String),
}

impl Retire {
    fn from_wire(reason: &str) -> Self {
        match reason {
            "warning" => Self::Warning,
            "refresh_requested" => Self::RefreshRequested,
            other => Self::Other(other.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').take(40).collect()),
        }
    }
}

impl fmt::Display for Retire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Warning => f.write_str("warning"),
            Self::RefreshRequested => f.write_str("refresh_requested"),
            Self::Other(reason) if reason.is_empty() => f.write_str("no reason given"),
            Self::Other(reason) => f.write_str(reason),
        }
    }
}

/// Why a connection is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Abandon {
    /// Open, but no hello within [`HELLO_LIMIT`].
    #[error("Slack said no hello within 10 seconds")]
    NoHello,
    /// Told to go before its hello: it never served, so there is nothing to hand over.
    #[error("Slack withdrew the connection before its hello")]
    Withdrawn,
    /// Neither a frame nor a ping for the configured time.
    #[error("Slack was silent for too long")]
    Silent,
    /// Slack closed it.
    #[error("Slack closed the connection")]
    Closed,
    /// More than ten connections of this app; may be the first frame of all (platform-facts A2).
    #[error("Slack counts too many open connections of this app: another consumer may be running")]
    TooManyWebsockets,
    /// Socket Mode was switched off in the app's settings.
    #[error("Socket Mode is switched off for this Slack app: switch it on in the app's settings")]
    LinkDisabled,
    /// Replaced, and read for [`DRAIN_LIMIT`] longer.
    #[error("a newer connection has taken over")]
    Replaced,
}

/// Why a frame meant nothing to usher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PassedOver {
    /// A text frame without text: Slack sends them often (platform-facts A2).
    Empty,
    /// A text frame that is no JSON object.
    NotJson,
    /// A binary frame.
    Binary,
    /// A `type` that usher does not know, or none.
    UnknownType,
    /// An event without an envelope id or a payload: there is nothing to store or to name in an ack.
    Malformed,
    /// A slash command or a button: acknowledged, not handled.
    Interaction,
}

/// One connection, from its opening to its end.
#[derive(Debug)]
pub struct Session {
    silence: Duration,
    heard_at: Instant,
    reading: bool,
    phase: Phase,
    connections: Option<u64>,
    passed_over: u64,
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    AwaitingHello { since: Instant },
    Serving,
    Retiring,
    Draining { since: Instant },
    Over,
}

impl Session {
    /// A connection whose websocket opened at `now`; it is dead after `silence` without a frame.
    pub fn new(silence: Duration, now: Instant) -> Self {
        Self {
            silence,
            heard_at: now,
            reading: true,
            phase: Phase::AwaitingHello { since: now },
            connections: None,
            passed_over: 0,
        }
    }

    /// Takes what arrived. Nothing comes out after [`Output::Abandon`].
    pub fn handle(&mut self, input: Input<'_>, now: Instant) -> Option<Output> {
        if matches!(self.phase, Phase::Over) {
            return None;
        }
        self.heard_at = now;
        match input {
            Input::Text(text) => self.text(text),
            Input::Binary => self.pass_over(PassedOver::Binary),
            Input::Ping(payload) => Some(Output::Pong(payload)),
            Input::Pong => None,
            Input::Close => self.abandon(Abandon::Closed),
        }
    }

    /// The ack of an envelope whose payload is durable.
    pub fn stored(&self, envelope: EnvelopeId) -> Ack {
        let EnvelopeId(id) = envelope;
        Ack::of(&id)
    }

    /// When to call [`Session::tick`], if nothing happens before.
    pub fn deadline(&self) -> Option<Instant> {
        match self.phase {
            Phase::AwaitingHello { since } => since.checked_add(HELLO_LIMIT),
            Phase::Serving | Phase::Retiring if self.reading => self.heard_at.checked_add(self.silence),
            Phase::Draining { since } => since.checked_add(DRAIN_LIMIT),
            Phase::Serving | Phase::Retiring | Phase::Over => None,
        }
    }

    /// Judges the time alone.
    pub fn tick(&mut self, now: Instant) -> Option<Output> {
        if self.deadline().is_none_or(|deadline| now < deadline) {
            return None;
        }
        match self.phase {
            Phase::AwaitingHello { .. } => self.abandon(Abandon::NoHello),
            Phase::Serving | Phase::Retiring => self.abandon(Abandon::Silent),
            Phase::Draining { .. } => self.abandon(Abandon::Replaced),
            Phase::Over => None,
        }
    }

    /// The driver stops reading, because too much is being stored: silence proves nothing now.
    pub fn pause(&mut self) {
        self.reading = false;
    }

    /// The driver reads again.
    pub fn resume(&mut self, now: Instant) {
        if !self.reading {
            self.reading = true;
            self.heard_at = now;
        }
    }

    /// Another connection has said hello: read this one for [`DRAIN_LIMIT`] longer, then it is over.
    pub fn replaced(&mut self, now: Instant) {
        if matches!(self.phase, Phase::Serving | Phase::Retiring) {
            self.phase = Phase::Draining { since: now };
        }
    }

    /// How many connections of this app Slack counted in its last hello.
    pub fn connections(&self) -> Option<u64> {
        self.connections
    }

    /// How many frames were passed over.
    pub fn passed_over(&self) -> u64 {
        self.passed_over
    }

    fn text(&mut self, text: &str) -> Option<Output> {
        if text.trim().is_empty() {
            return self.pass_over(PassedOver::Empty);
        }
        let Ok(Value::Object(frame)) = serde_json::from_str(text) else { return self.pass_over(PassedOver::NotJson) };
        match text_field(&frame, "type") {
            "hello" => self.hello(&frame),
            "disconnect" => self.disconnect(text_field(&frame, "reason")),
            "events_api" => self.event(frame),
            "slash_commands" | "interactive" => self.interaction(&frame),
            _ => self.pass_over(PassedOver::UnknownType),
        }
    }

    fn hello(&mut self, frame: &Map<String, Value>) -> Option<Output> {
        // A hello without the number still counts this connection.
        let connections = frame.get("num_connections").and_then(Value::as_u64).unwrap_or(1);
        self.connections = Some(connections);
        if matches!(self.phase, Phase::AwaitingHello { .. }) {
            self.phase = Phase::Serving;
            return Some(Output::Up { connections });
        }
        None
    }

    fn disconnect(&mut self, reason: &str) -> Option<Output> {
        match (reason, self.phase) {
            ("too_many_websockets", _) => self.abandon(Abandon::TooManyWebsockets),
            ("link_disabled", _) => self.abandon(Abandon::LinkDisabled),
            (_, Phase::AwaitingHello { .. }) => self.abandon(Abandon::Withdrawn),
            (_, Phase::Serving) => {
                self.phase = Phase::Retiring;
                Some(Output::Retire(Retire::from_wire(reason)))
            }
            // `refresh_requested` follows `warning`: the replacement is on its way already.
            (_, Phase::Retiring | Phase::Draining { .. } | Phase::Over) => None,
        }
    }

    fn event(&mut self, mut frame: Map<String, Value>) -> Option<Output> {
        let envelope = EnvelopeId(text_field(&frame, "envelope_id").to_owned());
        match frame.remove("payload") {
            Some(payload @ Value::Object(_)) if !envelope.0.is_empty() => Some(Output::Deliver { envelope, payload }),
            _ => self.pass_over(PassedOver::Malformed),
        }
    }

    fn interaction(&mut self, frame: &Map<String, Value>) -> Option<Output> {
        let envelope_id = text_field(frame, "envelope_id");
        if envelope_id.is_empty() {
            return self.pass_over(PassedOver::Malformed);
        }
        self.passed_over += 1;
        Some(Output::PassedOver { kind: PassedOver::Interaction, ack: Some(Ack::of(envelope_id)) })
    }

    fn pass_over(&mut self, kind: PassedOver) -> Option<Output> {
        self.passed_over += 1;
        Some(Output::PassedOver { kind, ack: None })
    }

    fn abandon(&mut self, reason: Abandon) -> Option<Output> {
        self.phase = Phase::Over;
        Some(Output::Abandon(reason))
    }
}

/// A field's text; empty when it is missing or something else.
fn text_field<'a>(frame: &'a Map<String, Value>, name: &str) -> &'a str {
    frame.get(name).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    const SILENCE: Duration = Duration::from_secs(30);
    const HELLO: &str = r#"{"type":"hello","num_connections":3,"debug_info":{"host":"applink-1"}}"#;

    /// A session and a clock that moves only when told.
    struct Line {
        session: Session,
        now: Instant,
    }

    impl Line {
        fn opened() -> Self {
            let now = Instant::now();
            Self { session: Session::new(SILENCE, now), now }
        }

        fn up() -> Self {
            let mut line = Self::opened();
            assert_eq!(line.text(HELLO), Some(Output::Up { connections: 3 }));
            line
        }

        fn text(&mut self, text: &str) -> Option<Output> {
            self.session.handle(Input::Text(text), self.now)
        }

        fn after(&mut self, seconds: u64) -> Option<Output> {
            self.now += Duration::from_secs(seconds);
            self.session.tick(self.now)
        }

        fn event(&mut self, id: &str) -> EnvelopeId {
            let frame = json!({"type": "events_api", "envelope_id": id, "payload": {"event_id": "Ev1"}}).to_string();
            match self.text(&frame) {
                Some(Output::Deliver { envelope, payload }) => {
                    assert_eq!(payload, json!({"event_id": "Ev1"}));
                    envelope
                }
                other => panic!("not delivered: {other:?}"),
            }
        }
    }

    fn disconnect(reason: &str) -> String {
        json!({"type": "disconnect", "reason": reason, "debug_info": {"host": "applink-1"}}).to_string()
    }

    #[test]
    fn hello_brings_the_connection_up_and_keeps_the_number() {
        let mut line = Line::up();
        assert_eq!(line.session.connections(), Some(3));
        assert_eq!(line.text(r#"{"type":"hello","num_connections":2}"#), None);
        assert_eq!(line.session.connections(), Some(2));
    }

    #[test]
    fn hello_without_a_usable_number_counts_one() {
        for hello in [r#"{"type":"hello"}"#, r#"{"type":"hello","num_connections":"many"}"#] {
            assert_eq!(Line::opened().text(hello), Some(Output::Up { connections: 1 }), "{hello}");
        }
    }

    #[test]
    fn no_hello_in_ten_seconds_fails_whatever_else_comes() {
        let mut line = Line::opened();
        assert_eq!(line.after(9), None);
        line.session.handle(Input::Ping(Bytes::new()), line.now);
        assert_eq!(line.after(1), Some(Output::Abandon(Abandon::NoHello)));
        assert_eq!(line.text(HELLO), None);
    }

    #[test]
    fn silence_is_death_and_any_frame_is_life() {
        let inputs = [Input::Text(""), Input::Binary, Input::Ping(Bytes::from_static(b"p")), Input::Pong];
        for input in inputs {
            let mut line = Line::up();
            assert_eq!(line.after(29), None);
            line.session.handle(input.clone(), line.now);
            assert_eq!(line.after(29), None, "{input:?}");
            assert_eq!(line.after(1), Some(Output::Abandon(Abandon::Silent)), "{input:?}");
        }
    }

    #[test]
    fn silence_proves_nothing_while_the_driver_does_not_read() {
        let mut line = Line::up();
        line.session.pause();
        assert_eq!(line.session.deadline(), None);
        assert_eq!(line.after(3600), None);
        line.session.resume(line.now);
        assert_eq!(line.after(29), None);
        assert_eq!(line.after(1), Some(Output::Abandon(Abandon::Silent)));
    }

    #[test]
    fn a_ping_is_answered_with_its_payload() {
        let mut line = Line::opened();
        let payload = Bytes::from_static(b"Ping from applink");
        assert_eq!(line.session.handle(Input::Ping(payload.clone()), line.now), Some(Output::Pong(payload)));
    }

    #[test]
    fn an_event_is_acknowledged_once_stored_even_before_hello() {
        for mut line in [Line::opened(), Line::up()] {
            let envelope = line.event("e\"1");
            assert_eq!(line.session.stored(envelope).into_text(), r#"{"envelope_id":"e\"1"}"#);
        }
    }

    #[test]
    fn every_disconnect_reason_has_its_consequence() {
        // reason, before the hello, after it
        let retire = |reason| Output::Retire(reason);
        let over = |reason| Output::Abandon(reason);
        let other = |reason: &str| Output::Retire(Retire::Other(reason.to_owned()));
        let table = [
            ("warning", over(Abandon::Withdrawn), retire(Retire::Warning)),
            ("refresh_requested", over(Abandon::Withdrawn), retire(Retire::RefreshRequested)),
            ("too_many_websockets", over(Abandon::TooManyWebsockets), over(Abandon::TooManyWebsockets)),
            ("link_disabled", over(Abandon::LinkDisabled), over(Abandon::LinkDisabled)),
            ("re\u{1b}[31mbalance_2", over(Abandon::Withdrawn), other("re31mbalance_2")),
            ("", over(Abandon::Withdrawn), other("")),
        ];
        for (reason, before, after) in table {
            assert_eq!(Line::opened().text(&disconnect(reason)), Some(before), "{reason} before hello");
            assert_eq!(Line::up().text(&disconnect(reason)), Some(after), "{reason} after hello");
        }
        assert_eq!(Line::up().text(r#"{"type":"disconnect","reason":7}"#), Some(other("")));
    }

    #[test]
    fn a_retired_connection_serves_until_replaced_and_ten_seconds_longer() {
        let mut line = Line::up();
        line.text(&disconnect("warning"));
        assert_eq!(line.text(&disconnect("refresh_requested")), None);
        line.event("e1");
        assert_eq!(line.after(20), None);
        line.session.replaced(line.now);
        line.event("e2");
        assert_eq!(line.after(9), None);
        assert_eq!(line.after(1), Some(Output::Abandon(Abandon::Replaced)));
    }

    #[test]
    fn a_retired_connection_can_still_die() {
        for (frame, reason) in [
            (disconnect("too_many_websockets"), Abandon::TooManyWebsockets),
            (disconnect("link_disabled"), Abandon::LinkDisabled),
        ] {
            let mut line = Line::up();
            line.text(&disconnect("warning"));
            assert_eq!(line.text(&frame), Some(Output::Abandon(reason)));
        }
        let mut line = Line::up();
        line.text(&disconnect("warning"));
        assert_eq!(line.after(30), Some(Output::Abandon(Abandon::Silent)));
    }

    #[test]
    fn what_means_nothing_is_passed_over_and_counted() {
        let table = [
            ("", PassedOver::Empty),
            (" \n", PassedOver::Empty),
            ("Ping from proxy", PassedOver::NotJson),
            ("[1]", PassedOver::NotJson),
            ("{", PassedOver::NotJson),
            ("{}", PassedOver::UnknownType),
            (r#"{"type":"weather"}"#, PassedOver::UnknownType),
            (r#"{"type":["hello"]}"#, PassedOver::UnknownType),
            (r#"{"type":"events_api","payload":{}}"#, PassedOver::Malformed),
            (r#"{"type":"events_api","envelope_id":"","payload":{}}"#, PassedOver::Malformed),
            (r#"{"type":"events_api","envelope_id":"e1"}"#, PassedOver::Malformed),
            (r#"{"type":"events_api","envelope_id":"e1","payload":"x"}"#, PassedOver::Malformed),
            (r#"{"type":"interactive","payload":{}}"#, PassedOver::Malformed),
        ];
        let mut line = Line::up();
        for (count, (frame, kind)) in (1..).zip(table) {
            assert_eq!(line.text(frame), Some(Output::PassedOver { kind, ack: None }), "{frame}");
            assert_eq!(line.session.passed_over(), count, "{frame}");
        }
        let binary = line.session.handle(Input::Binary, line.now);
        assert_eq!(binary, Some(Output::PassedOver { kind: PassedOver::Binary, ack: None }));
    }

    #[test]
    fn an_interaction_is_acknowledged_without_a_payload() {
        for kind in ["slash_commands", "interactive"] {
            let frame = json!({"type": kind, "envelope_id": "i1", "payload": {}, "accepts_response_payload": true});
            let ack = Some(Ack(r#"{"envelope_id":"i1"}"#.to_owned()));
            let expected = Output::PassedOver { kind: PassedOver::Interaction, ack };
            assert_eq!(Line::up().text(&frame.to_string()), Some(expected), "{kind}");
        }
    }

    #[test]
    fn nothing_comes_out_after_the_end() {
        let mut line = Line::up();
        assert_eq!(line.session.handle(Input::Close, line.now), Some(Output::Abandon(Abandon::Closed)));
        line.session.replaced(line.now);
        line.session.resume(line.now);
        assert_eq!(line.text(HELLO), None);
        assert_eq!(line.text(&disconnect("warning")), None);
        assert_eq!(line.session.handle(Input::Close, line.now), None);
        assert_eq!((line.session.deadline(), line.after(3600)), (None, None));
    }

    #[test]
    fn a_silence_beyond_all_time_is_no_deadline() {
        let now = Instant::now();
        let mut session = Session::new(Duration::MAX, now);
        session.handle(Input::Text(HELLO), now);
        assert_eq!((session.deadline(), session.tick(now)), (None, None));
    }

    #[derive(Debug, Clone)]
    enum Step {
        Text(String),
        Binary,
        Ping,
        Close,
        Wait(u64),
        Store,
        Replaced,
        Pause,
        Resume,
    }

    fn frame() -> impl Strategy<Value = String> {
        let kinds =
            prop::sample::select(vec!["hello", "disconnect", "events_api", "interactive", "slash_commands", "?"]);
        let reasons = prop::sample::select(vec!["warning", "refresh_requested", "too_many_websockets", "x"]);
        let known = (kinds, reasons, 0..6_u8, any::<bool>()).prop_map(|(kind, reason, number, whole)| {
            let id = format!("{kind}-{number}");
            let payload = if whole { json!({"n": number}) } else { Value::Null };
            json!({"type": kind, "reason": reason, "envelope_id": id, "payload": payload}).to_string()
        });
        prop_oneof![4 => known, 1 => any::<String>(), 1 => "\\{\"type\":[a-z\"{}\\[\\],:0-9]{0,30}"]
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            8 => frame().prop_map(Step::Text),
            1 => Just(Step::Binary),
            1 => Just(Step::Ping),
            1 => Just(Step::Close),
            2 => (0..20_u64).prop_map(Step::Wait),
            4 => Just(Step::Store),
            1 => Just(Step::Replaced),
            1 => Just(Step::Pause),
            1 => Just(Step::Resume),
        ]
    }

    proptest! {
        #[test]
        fn no_sequence_panics_and_an_event_is_acknowledged_only_after_it_is_stored(
            steps in prop::collection::vec(step(), 0..60)
        ) {
            let mut line = Line::opened();
            let mut delivered = Vec::new();
            let mut over = false;
            for step in steps {
                let output = match step {
                    Step::Text(text) => line.text(&text),
                    Step::Binary => line.session.handle(Input::Binary, line.now),
                    Step::Ping => line.session.handle(Input::Ping(Bytes::new()), line.now),
                    Step::Close => line.session.handle(Input::Close, line.now),
                    Step::Wait(seconds) => line.after(seconds),
                    Step::Store => {
                        if let Some(EnvelopeId(id)) = delivered.pop() {
                            let ack = line.session.stored(EnvelopeId(id.clone())).into_text();
                            prop_assert_eq!(ack, json!({"envelope_id": id}).to_string());
                        }
                        None
                    }
                    Step::Replaced => { line.session.replaced(line.now); None }
                    Step::Pause => { line.session.pause(); None }
                    Step::Resume => { line.session.resume(line.now); None }
                };
                prop_assert!(!over || output.is_none());
                match output {
                    Some(Output::Deliver { envelope, .. }) => delivered.push(envelope),
                    Some(Output::Abandon(_)) => over = true,
                    Some(Output::PassedOver { ack: Some(Ack(text)), kind }) => {
                        prop_assert_eq!(kind, PassedOver::Interaction);
                        prop_assert!(!text.contains("events_api"));
                    }
                    Some(Output::Up { .. } | Output::Pong(_) | Output::Retire(_) | Output::PassedOver { .. }) | None => {}
                }
            }
            let ids: BTreeSet<_> = delivered.iter().map(|EnvelopeId(id)| id.as_str()).collect();
            prop_assert!(ids.iter().all(|id| id.starts_with("events_api-")));
        }
    }
}
