//! The event stream of one client: hello, then bins, notes and a head several times a second, and the end.

use super::live_state::LiveState;
use axum::response::sse::Event;
use base64::prelude::{BASE64_STANDARD, Engine};
use futures_util::stream::{Stream, unfold};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Interval, MissedTickBehavior, interval};

/// The most bins in one turn; a client further behind fetches them with `/api/columns`.
const BINS_MAX: usize = 64;
/// The most notes in one turn, so that people can read them.
const NOTES_MAX: usize = 5;

/// The position of one client.
struct Client {
    state: Arc<LiveState>,
    beat: Interval,
    ready: VecDeque<Event>,
    bins: u64,
    notes: u64,
    is_over: bool,
    /// Its slot among the clients.
    _slot: OwnedSemaphorePermit,
}

/// The stream of one client, with at most `rate` turns in a second.
pub fn of(
    state: Arc<LiveState>,
    hello: &Value,
    rate: u32,
    slot: OwnedSemaphorePermit,
) -> impl Stream<Item = Result<Event, Infallible>> + use<> {
    let mut beat = interval(Duration::from_secs(1) / rate.max(1));
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (bins, ..) = state.summary();
    let mut hello = hello.clone();
    hello["bins"] = json!(bins);
    let ready = VecDeque::from([event("hello", bins, &hello)]);
    let client = Client { state, beat, ready, bins, notes: 0, is_over: false, _slot: slot };
    unfold(client, |mut client| async move {
        while client.ready.is_empty() {
            if client.is_over {
                return None;
            }
            client.beat.tick().await;
            client.turn();
        }
        let next = client.ready.pop_front()?;
        Some((Ok(next), client))
    })
}

impl Client {
    /// Collects what is new. A slow client delays only itself.
    fn turn(&mut self) {
        let (finished, head, end) = self.state.summary();
        let mut rows = self.state.rows_from(self.bins);
        if rows.len() > BINS_MAX {
            // The page notices the gap in the numbers and fetches the missing bins at once.
            rows.drain(..rows.len() - 1);
        }
        for row in rows {
            let data = json!({ "end": row.end_ps, "row": BASE64_STANDARD.encode(&row.octets) });
            self.ready.push_back(event("bin", row.number, &data));
        }
        let notes = self.state.notes_after(self.notes);
        let are_all_sent = notes.len() <= NOTES_MAX;
        for note in notes.into_iter().take(NOTES_MAX) {
            self.notes = note.number;
            self.ready.push_back(event("note", note.number, &note.text));
        }
        if finished > self.bins {
            self.bins = finished;
            self.ready.push_back(event("tick", finished, &head));
        }
        if let Some(end) = end.filter(|_| are_all_sent) {
            self.is_over = true;
            self.ready.push_back(event("end", finished, &end));
        }
    }
}

fn event(kind: &str, number: u64, data: &Value) -> Event {
    Event::default().event(kind).id(number.to_string()).data(data.to_string())
}
