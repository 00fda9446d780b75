//! The HTTP listener: accepting connections, and the limits that a stranger on the network meets.
//!
//! Owns the accept loop, the time a request head may take, the number of connections and the drain at the end. It must
//! not know what is served.
//!
//! An accept loop of our own because `axum::serve` sets no timer: a half-sent request head was still held after forty
//! seconds (reference/style 4.6).

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, warn};

/// How long a request head may take.
const HEAD_LIMIT: Duration = Duration::from_secs(5);

/// How many connections are held at once; more wait in the kernel's queue.
const CONNECTIONS: usize = 256;

/// Serves until told to stop; requests under way are answered.
pub async fn serve(listener: TcpListener, router: Router, stop: CancellationToken) {
    let (room, connections) = (Arc::new(Semaphore::new(CONNECTIONS)), TaskTracker::new());
    while let Some(permit) = unless_stopped(&stop, Arc::clone(&room).acquire_owned()).await.and_then(Result::ok) {
        let Some(accepted) = unless_stopped(&stop, listener.accept()).await else { break };
        match accepted {
            Ok((stream, _)) => {
                let (router, stop) = (router.clone(), stop.clone());
                connections.spawn(async move {
                    connection(stream, router, stop).await;
                    drop(permit);
                });
            }
            Err(error) => {
                // Out of file descriptors, mostly: hot retries would only make it worse.
                warn!(%error, "a connection could not be accepted");
                sleep(Duration::from_millis(100)).await;
            }
        }
    }
    connections.close();
    connections.wait().await;
}

async fn connection(stream: TcpStream, router: Router, stop: CancellationToken) {
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_LIMIT);
    let mut serving = pin!(builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router)));
    let served = tokio::select! {
        served = serving.as_mut() => served,
        () = stop.cancelled() => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = served {
        debug!(%error, "a connection ended badly");
    }
}

async fn unless_stopped<T>(stop: &CancellationToken, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        done = work => Some(done),
        () = stop.cancelled() => None,
    }
}
