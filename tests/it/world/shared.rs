//! State that test threads and the fakes' tasks look at together, and the random values of one world.

use std::sync::{Arc, Mutex, PoisonError};

/// A value behind a lock that is held for one closure only, so that no lock is ever held across an `await`.
#[derive(Debug, Default)]
pub struct Shared<T>(Arc<Mutex<T>>);

impl<T> Shared<T> {
    pub fn new(value: T) -> Self {
        Self(Arc::new(Mutex::new(value)))
    }

    /// Works on the value. A panic in another test thread does not hide the state from the report.
    pub fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// Everything that nobody foresaw: calls that no fake knows, hosts that must not be asked, credentials gone astray.
/// A world with an entry here fails its test.
#[derive(Debug, Clone, Default)]
pub struct Unexpected(Shared<Vec<String>>);

impl Unexpected {
    pub fn record(&self, what: impl Into<String>) {
        self.0.with(|calls| calls.push(what.into()));
    }

    pub fn all(&self) -> Vec<String> {
        self.0.with(|calls| calls.clone())
    }

    /// Takes the entries out, for the tests that want them to happen.
    pub fn take(&self) -> Vec<String> {
        self.0.with(std::mem::take)
    }
}

/// Every secret of one world, by name, so that a leak is found and its report does not repeat the value.
#[derive(Debug, Clone, Default)]
pub struct Secrets(Shared<Vec<(String, String)>>);

impl Secrets {
    /// Makes a new secret that begins with `prefix` and remembers it under `name`.
    pub fn issue(&self, name: &str, prefix: &str) -> String {
        let secret = format!("{prefix}{}", random_hex(16));
        self.0.with(|all| all.push((name.to_owned(), secret.clone())));
        secret
    }

    /// The names of the secrets that occur in these bytes.
    pub fn found_in(&self, bytes: &[u8]) -> Vec<String> {
        let text = String::from_utf8_lossy(bytes);
        self.0.with(|all| {
            all.iter().filter(|(_, secret)| text.contains(secret.as_str())).map(|(name, _)| name.clone()).collect()
        })
    }
}

/// Random bytes as lower-case hex digits.
pub fn random_hex(bytes: usize) -> String {
    let mut buffer = vec![0; bytes];
    getrandom::fill(&mut buffer).expect("the system has random numbers");
    hex::encode(buffer)
}

/// A random identifier in the form of a UUID.
pub fn random_uuid() -> String {
    let hex = random_hex(16);
    let part = |from, to| hex.get(from..to).unwrap_or_default();
    [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)].join("-")
}
