//! The spool between a worker and its capture file: a bounded number of chunks, and a thread that writes them.
//!
//! All chunks exist from the start and go round between worker and writer, so the worker allocates nothing.

use crate::block_writer::{BlockWriter, Ending, Sink, Tally};
use serde::{Deserialize, Serialize};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

/// Octets of a chunk: a few hundred full frames.
const CHUNK: usize = 256 * 1024;
/// Chunks that may wait for the writer: with [`CHUNK`], 16 MiB.
const WAITING_MAX: usize = 64;

/// What happens to frames when the spool is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WhenFull {
    /// They are dropped and counted, since the worker's time is wall time.
    Drop,
    /// The worker waits, since its time is virtual.
    Wait,
}

/// The worker's end of the spool.
#[derive(Debug)]
pub(super) struct Spool {
    chunk: Vec<u8>,
    full: SyncSender<Vec<u8>>,
    empty: Receiver<Vec<u8>>,
    writer: JoinHandle<BlockWriter>,
    tally: Arc<Tally>,
    when_full: WhenFull,
}

impl Spool {
    /// Starts the thread that writes to `file`.
    pub(super) fn start(file: impl Sink, when_full: WhenFull) -> io::Result<Spool> {
        let (full, to_write) = sync_channel::<Vec<u8>>(WAITING_MAX);
        let (give_back, empty) = sync_channel(WAITING_MAX);
        for _ in 0..WAITING_MAX {
            give_back.send(Vec::with_capacity(2 * CHUNK)).expect("the channel holds them all");
        }
        let mut writer = BlockWriter::new(file);
        let tally = writer.tally();
        let work = move || {
            for mut chunk in to_write {
                writer.take(&chunk);
                chunk.clear();
                // A worker that has ended does not reuse the chunk.
                let _ = give_back.try_send(chunk);
            }
            writer
        };
        let writer = std::thread::Builder::new().name("capture".to_owned()).spawn(work)?;
        let chunk = Vec::with_capacity(2 * CHUNK);
        Ok(Spool { chunk, full, empty, writer, tally, when_full })
    }

    /// The totals of the capture.
    pub(super) fn tally(&self) -> &Arc<Tally> {
        &self.tally
    }

    /// The buffer to append to. Small blocks always fit.
    pub(super) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.chunk
    }

    /// Whether a frame may be appended. Passes a full chunk to the writer first; never blocks with
    /// [`WhenFull::Drop`].
    pub(super) fn has_room(&mut self) -> bool {
        self.tally.failure().is_none() && (self.chunk.len() < CHUNK || self.hand_over())
    }

    /// Passes the current chunk to the writer, if the writer has room, so that a reader of the file gets it
    /// now.
    pub(super) fn flush(&mut self) {
        if !self.chunk.is_empty() {
            // A chunk that stays is sent with the next.
            self.hand_over();
        }
    }

    /// Passes the chunk to the writer. Returns false if it had to be kept.
    fn hand_over(&mut self) -> bool {
        let next = match self.when_full {
            WhenFull::Wait => self.empty.recv().ok(),
            WhenFull::Drop => self.empty.try_recv().ok(),
        };
        let Some(next) = next else { return false };
        let chunk = std::mem::replace(&mut self.chunk, next);
        // There are no more chunks than places, and a writer that has ended returns its error when joined.
        let _ = self.full.try_send(chunk);
        true
    }

    /// Writes the rest, and last the blocks that `trailer` makes of the frames lost by interface.
    pub(super) fn finish(self, trailer: impl FnOnce(&[u64]) -> Vec<u8>) -> Ending {
        // As above.
        let _ = self.full.send(self.chunk);
        drop(self.full);
        match self.writer.join() {
            Ok(writer) => writer.finish(trailer),
            Err(_) => {
                let error = Some("the writer of the capture panicked".to_owned());
                Ending { error, ..Ending::default() }
            }
        }
    }
}
