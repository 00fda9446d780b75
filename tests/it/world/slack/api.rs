//! Slack's Web API, as far as usher may use it. A method that is not here is an unexpected call.

use hyper::Method;
use serde_json::{Value, json};

use super::super::http::{self, BrokenOff, Call, Reply};
use super::super::shared::random_uuid;
use super::{APP, BOT, BOT_USER, Channel, ChannelKind, Ephemeral, FakeSlack, Fault, State, TEAM, files, shapes};

/// A method's outcome: the fields beside `ok`, or the error.
type Outcome = Result<Value, ApiError>;

enum ApiError {
    Named(&'static str),
    MissingScope(String),
}

impl FakeSlack {
    /// Answers one call of `/api/<method>`.
    pub async fn api(&self, call: Call) -> Result<Reply, BrokenOff> {
        let Some(method) = call.path.strip_prefix("/api/").map(str::to_owned) else {
            self.unexpected.record(format!("{} https://{}{}", call.method, call.host, call.path));
            return Ok(http::whole(404, "text/html", "no such page"));
        };
        let fault = self.state.with(|state| {
            state.calls.push(method.clone());
            state.faults.get_mut(&method).and_then(std::collections::VecDeque::pop_front)
        });
        match fault {
            None => Ok(self.carry_out(&method, &call)),
            Some(Fault::Error(error)) => Ok(http::json(200, &json!({"ok": false, "error": error}))),
            Some(Fault::RateLimited(seconds)) => Ok(rate_limited(seconds)),
            Some(Fault::Status(status)) => Ok(http::whole(status, "text/html", "<html>not now</html>")),
            Some(Fault::Slow(time)) => {
                tokio::time::sleep(time).await;
                Ok(self.carry_out(&method, &call))
            }
            Some(Fault::SwallowAnswer) => {
                self.carry_out(&method, &call);
                Err(BrokenOff)
            }
        }
    }

    fn carry_out(&self, method: &str, call: &Call) -> Reply {
        let outcome = if method == "apps.connections.open" {
            self.open_connection(call)
        } else {
            self.state.with(|state| bot_call(state, method, call)).unwrap_or_else(|| {
                self.unexpected.record(format!("{} https://slack.com/api/{method}", call.method));
                Err(ApiError::Named("unknown_method"))
            })
        };
        let scopes = self.state.with(|state| state.scopes.iter().cloned().collect::<Vec<_>>().join(","));
        let body = match outcome {
            Ok(fields) => ok(fields),
            Err(ApiError::Named(error)) => json!({"ok": false, "error": error}),
            Err(ApiError::MissingScope(needed)) => {
                json!({"ok": false, "error": "missing_scope", "needed": needed, "provided": scopes})
            }
        };
        http::with_header(http::json(200, &body), "x-oauth-scopes", &scopes)
    }

    /// A fresh ticket, good for one socket (platform-facts A1).
    fn open_connection(&self, call: &Call) -> Outcome {
        if call.authorization().is_none() {
            return Err(ApiError::Named("not_authed"));
        }
        if call.method != Method::POST || !call.bears(&self.app_token()) {
            return Err(ApiError::Named("invalid_auth"));
        }
        let ticket = self.secrets.issue("socket ticket", &format!("{}-", random_uuid()));
        self.state.with(|state| state.tickets.insert(ticket.clone()));
        Ok(json!({"url": format!("wss://wss-primary.slack.com/link/?ticket={ticket}&app_id={APP}")}))
    }
}

fn rate_limited(seconds: u64) -> Reply {
    let reply = http::json(429, &json!({"ok": false, "error": "ratelimited"}));
    http::with_header(reply, "retry-after", &seconds.to_string())
}

fn ok(mut fields: Value) -> Value {
    fields["ok"] = json!(true);
    fields
}

/// A call that needs the bot token. `None`: there is no such method.
fn bot_call(state: &mut State, method: &str, call: &Call) -> Option<Outcome> {
    if !call.bears(&state.bot_token) {
        return Some(Err(ApiError::Named("invalid_auth")));
    }
    if let Some(needed) = missing_scope(state, method, call) {
        return Some(Err(ApiError::MissingScope(needed)));
    }
    Some(match method {
        "auth.test" => Ok(json!({
            "url": "https://acme.slack.com/", "team": "Acme", "user": "usher", "team_id": TEAM, "user_id": BOT_USER,
            "bot_id": BOT, "is_enterprise_install": false,
        })),
        "users.info" => match state.users.get(call.parameter("user")) {
            Some(user) => Ok(json!({"user": user})),
            None => Err(ApiError::Named("user_not_found")),
        },
        "files.info" => match files::look_up(state, call.parameter("file")) {
            Some(file) => Ok(json!({"file": file, "comments": [], "response_metadata": {"next_cursor": ""}})),
            None => Err(ApiError::Named("file_not_found")),
        },
        "conversations.info" => conversation_info(state, call),
        "conversations.history" => history(state, call),
        "conversations.replies" => replies(state, call),
        "reactions.add" => react(state, call),
        "reactions.remove" => unreact(state, call),
        "chat.postEphemeral" => ephemeral(state, call),
        "chat.getPermalink" => permalink(state, call),
        _ => return None,
    })
}

fn missing_scope(state: &State, method: &str, call: &Call) -> Option<String> {
    let family = state.channels.get(call.parameter("channel")).map_or("channels", |found| found.kind.scope_family());
    let needed = match method {
        "users.info" => "users:read".to_owned(),
        "files.info" => "files:read".to_owned(),
        "conversations.info" => format!("{family}:read"),
        "conversations.history" | "conversations.replies" => format!("{family}:history"),
        "reactions.add" | "reactions.remove" => "reactions:write".to_owned(),
        "chat.postEphemeral" => "chat:write".to_owned(),
        _ => return None,
    };
    (!state.scopes.contains(&needed)).then_some(needed)
}

fn channel<'a>(state: &'a State, call: &Call) -> Result<&'a Channel, ApiError> {
    state.channels.get(call.parameter("channel")).ok_or(ApiError::Named("channel_not_found"))
}

/// The channel, when the bot is in it.
fn own_channel<'a>(state: &'a State, call: &Call) -> Result<&'a Channel, ApiError> {
    let found = channel(state, call)?;
    if found.bot_is_member { Ok(found) } else { Err(ApiError::Named("not_in_channel")) }
}

fn conversation_info(state: &State, call: &Call) -> Outcome {
    let found = channel(state, call)?;
    Ok(json!({"channel": {
        "id": call.parameter("channel"), "name": found.name, "is_channel": found.kind == ChannelKind::Public,
        "is_group": found.kind == ChannelKind::Private, "is_im": found.kind == ChannelKind::Direct, "is_mpim": false,
        "is_private": found.kind != ChannelKind::Public, "is_archived": false, "is_member": found.bot_is_member,
    }}))
}

/// Newest first, without the replies in threads.
fn history(state: &State, call: &Call) -> Outcome {
    let messages = own_channel(state, call)?.messages.values().rev();
    let top = messages.filter(|message| message["thread_ts"].is_null() || message["subtype"] == "thread_broadcast");
    Ok(page(top.filter(|message| within(call, message)), call))
}

/// The parent, then its replies, oldest first.
fn replies(state: &State, call: &Call) -> Outcome {
    let (messages, parent) = (&own_channel(state, call)?.messages, call.parameter("ts"));
    let Some(root) = messages.get(parent) else { return Err(ApiError::Named("thread_not_found")) };
    let answers = messages.values().filter(|message| message["thread_ts"] == parent && within(call, message));
    Ok(page(std::iter::once(root).chain(answers), call))
}

/// Whether a message lies between `oldest` and `latest`, which count themselves only when `inclusive`.
fn within(call: &Call, message: &Value) -> bool {
    let ts = message["ts"].as_str().unwrap_or("");
    let inclusive = ["true", "1"].contains(&call.parameter("inclusive"));
    let (oldest, latest) = (call.parameter("oldest"), call.parameter("latest"));
    let after = oldest.is_empty() || ts > oldest || (inclusive && ts == oldest);
    let before = latest.is_empty() || ts < latest || (inclusive && ts == latest);
    after && before
}

/// One page of the messages; the cursor is the number of those before it.
fn page<'a>(messages: impl Iterator<Item = &'a Value>, call: &Call) -> Value {
    let limit = call.parameter("limit").parse().unwrap_or(100);
    let skipped: usize = call.parameter("cursor").trim_start_matches("page:").parse().unwrap_or(0);
    let mut rest = messages.skip(skipped).peekable();
    let page: Vec<&Value> = rest.by_ref().take(limit).collect();
    let has_more = rest.peek().is_some();
    let cursor = if has_more { format!("page:{}", skipped + page.len()) } else { String::new() };
    json!({"messages": page, "has_more": has_more, "response_metadata": {"next_cursor": cursor}})
}

fn react(state: &mut State, call: &Call) -> Outcome {
    let (ts, name) = reaction(state, call)?;
    if !state.reactions.entry(ts.clone()).or_default().insert(name.clone()) {
        return Err(ApiError::Named("already_reacted"));
    }
    state.reaction_log.push((ts, format!("+{name}")));
    Ok(json!({}))
}

fn unreact(state: &mut State, call: &Call) -> Outcome {
    let (ts, name) = reaction(state, call)?;
    if !state.reactions.entry(ts.clone()).or_default().remove(&name) {
        return Err(ApiError::Named("no_reaction"));
    }
    state.reaction_log.push((ts, format!("-{name}")));
    Ok(json!({}))
}

fn reaction(state: &State, call: &Call) -> Result<(String, String), ApiError> {
    let (ts, name) = (call.parameter("timestamp"), call.parameter("name"));
    if !own_channel(state, call)?.messages.contains_key(ts) {
        return Err(ApiError::Named("message_not_found"));
    }
    if name.is_empty() || name.contains(':') {
        return Err(ApiError::Named("invalid_name"));
    }
    Ok((ts.to_owned(), name.to_owned()))
}

fn ephemeral(state: &mut State, call: &Call) -> Outcome {
    own_channel(state, call)?;
    if call.parameter("text").is_empty() {
        return Err(ApiError::Named("no_text"));
    }
    let text = |name| call.parameter(name).to_owned();
    let (channel, user) = (text("channel"), text("user"));
    state.ephemerals.push(Ephemeral { channel, user, text: text("text"), thread_ts: text("thread_ts") });
    Ok(json!({"message_ts": state.next_ts()}))
}

fn permalink(state: &State, call: &Call) -> Outcome {
    let (id, ts) = (call.parameter("channel"), call.parameter("message_ts"));
    if !channel(state, call)?.messages.contains_key(ts) {
        return Err(ApiError::Named("message_not_found"));
    }
    Ok(json!({"channel": id, "permalink": shapes::permalink(id, ts)}))
}
