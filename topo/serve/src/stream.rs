//! The stream of one client: hello, then bins, notes and a head several times a second, and the end.

use super::board::Board;
use axum::response::sse::Event;
use futures_util::stream::{Stream, unfold};
use report::base64;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Interval, MissedTickBehavior, interval};

/// Bins that are told one by one; a client further behind fetches them together.
const BINS_MAX: usize = 64;
/// Notes a turn; a feed is to be read by people.
const NOTES_MAX: usize = 5;

/// Where one client is.
struct Client {
    board: Arc<Board>,
    beat: Interval,
    ready: VecDeque<Event>,
    bins: u64,
    notes: u64,
    is_over: bool,
    /// Its seat among the clients that are served at once.
    _seat: OwnedSemaphorePermit,
}

/// What one client is told, `rate` times a second at most.
pub fn of(
    board: Arc<Board>,
    hello: &Value,
    rate: u32,
    seat: OwnedSemaphorePermit,
) -> impl Stream<Item = Result<Event, Infallible>> + use<> {
    let mut beat = interval(Duration::from_secs(1) / rate.max(1));
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (bins, ..) = board.now();
    let mut hello = hello.clone();
    hello["bins"] = json!(bins);
    let ready = VecDeque::from([event("hello", bins, &hello)]);
    let client = Client { board, beat, ready, bins, notes: 0, is_over: false, _seat: seat };
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
    /// Lays ready what is new; what a slow reader has not taken is never waited for.
    fn turn(&mut self) {
        let (finished, head, end) = self.board.now();
        let mut rows = self.board.rows_from(self.bins);
        if rows.len() > BINS_MAX {
            // The page sees the gap in the numbers and fetches all of it at once.
            rows.drain(..rows.len() - 1);
        }
        for row in rows {
            let data = json!({ "end": row.end_ps, "row": base64(&row.octets) });
            self.ready.push_back(event("bin", row.number, &data));
        }
        let notes = self.board.notes_after(self.notes);
        let are_all_told = notes.len() <= NOTES_MAX;
        for note in notes.into_iter().take(NOTES_MAX) {
            self.notes = note.number;
            self.ready.push_back(event("note", note.number, &note.text));
        }
        if finished > self.bins {
            self.bins = finished;
            self.ready.push_back(event("tick", finished, &head));
        }
        if let Some(end) = end.filter(|_| are_all_told) {
            self.is_over = true;
            self.ready.push_back(event("end", finished, &end));
        }
    }
}

fn event(kind: &str, number: u64, data: &Value) -> Event {
    Event::default().event(kind).id(number.to_string()).data(data.to_string())
}
