//! The spool between a worker and its capture file: a bounded number of chunks, and a thread that writes them.

use serde::{Deserialize, Serialize};
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, channel, sync_channel};
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
    writer: JoinHandle<(u64, io::Result<()>)>,
    when_full: WhenFull,
}

impl Spool {
    /// Starts the thread that writes to `file`.
    pub(super) fn start(
        mut file: impl Write + Send + 'static,
        when_full: WhenFull,
    ) -> io::Result<Spool> {
        let (full, to_write) = sync_channel::<Vec<u8>>(WAITING_MAX);
        let (give_back, empty) = channel();
        let work = move || {
            let mut written = 0;
            for mut chunk in to_write {
                if let Err(error) = file.write_all(&chunk) {
                    return (written, Err(error));
                }
                written += chunk.len() as u64;
                chunk.clear();
                // A worker that has ended does not reuse the chunk.
                let _ = give_back.send(chunk);
            }
            (written, Ok(()))
        };
        let writer = std::thread::Builder::new().name("capture".to_owned()).spawn(work)?;
        Ok(Spool { chunk: Vec::with_capacity(2 * CHUNK), full, empty, writer, when_full })
    }

    /// The buffer to append to. Small blocks always fit.
    pub(super) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.chunk
    }

    /// Whether a frame may be appended. Passes a full chunk to the writer first; never blocks with
    /// [`WhenFull::Drop`].
    pub(super) fn has_room(&mut self) -> bool {
        self.chunk.len() < CHUNK || self.hand_over()
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
        let next = self.empty.try_recv().unwrap_or_else(|_| Vec::with_capacity(2 * CHUNK));
        let chunk = std::mem::replace(&mut self.chunk, next);
        let sent = match self.when_full {
            WhenFull::Wait => self.full.send(chunk).map_err(TrySendError::from),
            WhenFull::Drop => self.full.try_send(chunk),
        };
        let Err(TrySendError::Full(chunk) | TrySendError::Disconnected(chunk)) = sent else {
            return true;
        };
        self.chunk = chunk;
        false
    }

    /// Writes the rest. Returns the octets written, and the error if there was one.
    pub(super) fn finish(self) -> (u64, Option<io::Error>) {
        // A writer that has ended has failed, and returns its error when joined.
        let _ = self.full.send(self.chunk);
        drop(self.full);
        match self.writer.join() {
            Ok((written, result)) => (written, result.err()),
            Err(_) => (0, Some(io::Error::other("the writer of the capture panicked"))),
        }
    }
}
