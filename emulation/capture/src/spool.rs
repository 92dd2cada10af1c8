//! Between a worker and its capture file: a bounded number of chunks, and a thread that writes them.

use serde::{Deserialize, Serialize};
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, channel, sync_channel};
use std::thread::JoinHandle;

/// Octets of a chunk before it goes to the writer: a few hundred full frames.
const CHUNK: usize = 256 * 1024;
/// Chunks that may wait for the writer: with [`CHUNK`], 16 MiB.
const WAITING_MAX: usize = 64;

/// What becomes of frames for which there is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WhenFull {
    /// They are dropped and counted: the worker's time is real.
    Drop,
    /// The worker waits: its time is virtual.
    Wait,
}

/// The worker's end.
#[derive(Debug)]
pub(super) struct Spool {
    chunk: Vec<u8>,
    full: SyncSender<Vec<u8>>,
    empty: Receiver<Vec<u8>>,
    writer: JoinHandle<(u64, io::Result<()>)>,
    when_full: WhenFull,
}

impl Spool {
    /// Starts the writer of `file`.
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
                // A worker that has ended needs no chunk back.
                let _ = give_back.send(chunk);
            }
            (written, Ok(()))
        };
        let writer = std::thread::Builder::new().name("capture".to_owned()).spawn(work)?;
        Ok(Spool { chunk: Vec::with_capacity(2 * CHUNK), full, empty, writer, when_full })
    }

    /// Where to append; small blocks always fit.
    pub(super) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.chunk
    }

    /// A frame may be appended. Hands a full chunk over first; never waits under
    /// [`WhenFull::Drop`].
    pub(super) fn has_room(&mut self) -> bool {
        self.chunk.len() < CHUNK || self.hand_over()
    }

    /// Hands over what there is, however little, if the writer has room for it: somebody may be reading.
    pub(super) fn flush(&mut self) {
        if !self.chunk.is_empty() {
            // What stays goes with the next.
            self.hand_over();
        }
    }

    /// Gives the chunk to the writer; false if it had to be kept.
    fn hand_over(&mut self) -> bool {
        let next = self.empty.try_recv().unwrap_or_else(|_| Vec::with_capacity(2 * CHUNK));
        let chunk = std::mem::replace(&mut self.chunk, next);
        let refused = match self.when_full {
            WhenFull::Wait => self.full.send(chunk).err().map(|refused| refused.0),
            WhenFull::Drop => self.full.try_send(chunk).err().map(|refused| match refused {
                TrySendError::Full(chunk) | TrySendError::Disconnected(chunk) => chunk,
            }),
        };
        match refused {
            Some(chunk) => {
                self.chunk = chunk;
                false
            }
            None => true,
        }
    }

    /// Writes what is left; octets written, and what went wrong.
    pub(super) fn finish(self) -> (u64, Option<io::Error>) {
        // A writer that is gone has failed, and says why when it is joined.
        let _ = self.full.send(self.chunk);
        drop(self.full);
        match self.writer.join() {
            Ok((written, result)) => (written, result.err()),
            Err(_) => (0, Some(io::Error::other("the writer of the capture panicked"))),
        }
    }
}
