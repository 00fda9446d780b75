//! The way out of the daemon: a CONNECT proxy that leads every `host:443` into the fake world and remembers each one.
//!
//! `HTTPS_PROXY` points here, so production code asks for real hosts by their names and the test sees exactly which.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::hosts::Hosts;
use super::shared::Shared;

/// A CONNECT proxy on loopback.
#[derive(Clone)]
pub struct Proxy {
    address: SocketAddr,
    state: Shared<State>,
    live: Arc<AtomicUsize>,
}

#[derive(Default)]
struct State {
    asked: Vec<String>,
    down: bool,
    /// Cancelled to cut every connection that is open at that moment.
    cut: CancellationToken,
}

/// One tunnel through the proxy; what holds it, counts as a live connection.
pub struct Tunnel {
    pub host: String,
    /// Cancelled when the proxy cuts its connections.
    pub cut: CancellationToken,
    live: Arc<AtomicUsize>,
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        self.live.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Proxy {
    /// Starts the proxy on the current runtime.
    pub fn start(acceptor: TlsAcceptor, hosts: Hosts) -> Self {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port on loopback");
        listener.set_nonblocking(true).expect("a listener for tokio");
        let address = listener.local_addr().expect("the port just bound");
        let proxy = Self { address, state: Shared::default(), live: Arc::default() };
        tokio::spawn(proxy.clone().accept(TcpListener::from_std(listener).expect("a runtime"), acceptor, hosts));
        proxy
    }

    /// For `HTTPS_PROXY`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Every `host:port` asked for so far, in order.
    pub fn asked(&self) -> Vec<String> {
        self.state.with(|state| state.asked.clone())
    }

    /// The connections open now, websockets included.
    pub fn live_connections(&self) -> usize {
        self.live.load(Ordering::Relaxed)
    }

    /// Breaks every open connection off, websockets included.
    pub fn cut(&self) {
        self.state.with(|state| std::mem::take(&mut state.cut)).cancel();
    }

    /// The network is gone: open connections break, new ones are closed at once.
    pub fn go_down(&self) {
        self.state.with(|state| state.down = true);
        self.cut();
    }

    pub fn come_back(&self) {
        self.state.with(|state| state.down = false);
    }

    async fn accept(self, listener: TcpListener, acceptor: TlsAcceptor, hosts: Hosts) {
        while let Ok((stream, _)) = listener.accept().await {
            if self.state.with(|state| state.down) {
                continue;
            }
            let (proxy, acceptor, hosts) = (self.clone(), acceptor.clone(), hosts.clone());
            tokio::spawn(async move { proxy.tunnel(stream, acceptor, hosts).await });
        }
    }

    async fn tunnel(self, mut stream: TcpStream, acceptor: TlsAcceptor, hosts: Hosts) {
        stream.set_nodelay(true).ok();
        let Some(head) = read_head(&mut stream).await else { return };
        let Some(target) = connect_target(head) else {
            hosts.unexpected.record("something that is no CONNECT request came to the proxy");
            return;
        };
        let tunnel = self.open(&target);
        if !hosts.knows(&target) {
            hosts.unexpected.record(format!("CONNECT {target}"));
        }
        let cut = tunnel.cut.clone();
        let served = async {
            stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.ok()?;
            let stream = acceptor.accept(stream).await.ok()?;
            let service = service_fn(move |request| hosts.clone().answer(Arc::clone(&tunnel), request));
            let connection = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            connection.with_upgrades().await.ok()
        };
        tokio::select! {
            _ = served => {}
            () = cut.cancelled() => {}
        }
    }

    fn open(&self, target: &str) -> Arc<Tunnel> {
        self.live.fetch_add(1, Ordering::Relaxed);
        let host = target.rsplit_once(':').map_or(target, |(host, _)| host).to_owned();
        let cut = self.state.with(|state| {
            state.asked.push(target.to_owned());
            state.cut.clone()
        });
        Arc::new(Tunnel { host, cut, live: Arc::clone(&self.live) })
    }
}

/// Reads the head of a CONNECT request byte by byte, so that nothing of the TLS behind it is taken. Its target.
/// A request's head; `None` when the caller went away before it had said all, as one does that is killed.
async fn read_head(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") && head.len() < 8192 {
        head.push(stream.read_u8().await.ok()?);
    }
    Some(head)
}

fn connect_target(head: Vec<u8>) -> Option<String> {
    let head = String::from_utf8(head).ok()?;
    let mut words = head.split(' ');
    (words.next() == Some("CONNECT")).then(|| words.next().map(str::to_owned)).flatten()
}
