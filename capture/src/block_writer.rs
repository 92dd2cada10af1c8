//! The end of a capture that writes blocks to a file, and counts the frames that do not get there.
//!
//! When the file cannot be written (a full disk, a pipe without a reader), it is cut after its last whole block, and
//! from then on frames are only counted. Every frame is in the file or counted, and the file can be read.

use crate::pcapng;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// What a capture is written to.
pub trait Sink: Write + Send + 'static {
    /// Removes everything after the first `octets`.
    ///
    /// # Errors
    /// If that is impossible, as in a pipe.
    fn cut(&mut self, octets: u64) -> io::Result<()>;
}

impl Sink for File {
    fn cut(&mut self, octets: u64) -> io::Result<()> {
        self.set_len(octets)?;
        self.seek(SeekFrom::Start(octets)).map(|_| ())
    }
}

/// The totals of a capture while it lasts. Several threads count and read them.
#[derive(Debug, Default)]
pub struct Tally {
    pub(crate) seen: AtomicU64,
    pub(crate) dropped: AtomicU64,
    failure: OnceLock<String>,
}

impl Tally {
    /// Frames that have passed the captured ports.
    pub fn seen(&self) -> u64 {
        self.seen.load(Ordering::Relaxed)
    }

    /// Frames among them that will not be in the file.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Why the file cannot be written any more, if so.
    pub fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }
}

/// What became of a capture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ending {
    /// Octets in the file.
    pub bytes: u64,
    /// Frames that are not in the file because it could not be written, by interface.
    pub lost: Vec<u64>,
    /// Why it could not be written.
    pub error: Option<String>,
}

/// Writes the blocks of a capture.
pub struct BlockWriter {
    file: Box<dyn Sink>,
    tally: Arc<Tally>,
    ending: Ending,
}

impl std::fmt::Debug for BlockWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlockWriter").field("ending", &self.ending).finish_non_exhaustive()
    }
}

impl BlockWriter {
    /// A writer to an empty file.
    pub fn new(file: impl Sink) -> BlockWriter {
        BlockWriter { file: Box::new(file), tally: Arc::default(), ending: Ending::default() }
    }

    /// The totals of the capture.
    pub(crate) fn tally(&self) -> Arc<Tally> {
        Arc::clone(&self.tally)
    }

    /// Writes whole blocks, and counts the frames that do not get into the file.
    pub fn take(&mut self, blocks: &[u8]) {
        let written = if self.ending.error.is_some() { 0 } else { self.write(blocks) };
        for block in pcapng::blocks(&blocks[written..]) {
            let Some(interface) = block.packet_of() else { continue };
            let index = interface as usize;
            if self.ending.lost.len() <= index {
                self.ending.lost.resize(index + 1, 0);
            }
            self.ending.lost[index] += 1;
            self.tally.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Ends the file with the blocks that `trailer` makes of the frames lost by interface. They are written after a
    /// failure, too: a file that was cut often has room for them.
    pub fn finish(mut self, trailer: impl FnOnce(&[u64]) -> Vec<u8>) -> Ending {
        let trailer = trailer(&self.ending.lost);
        self.write(&trailer);
        self.ending
    }

    /// Writes whole blocks. Returns the octets that are in the file: fewer, but whole blocks, after a failure.
    fn write(&mut self, blocks: &[u8]) -> usize {
        let (mut written, mut failure) = (0, None);
        while written < blocks.len() && failure.is_none() {
            match self.file.write(&blocks[written..]) {
                Ok(0) => failure = Some(io::Error::from(io::ErrorKind::WriteZero)),
                Ok(octets) => written += octets,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => failure = Some(error),
            }
        }
        if let Some(failure) = failure {
            let failure = self.tally.failure.get_or_init(|| failure.to_string());
            self.ending.error = Some(failure.clone());
            let ends = pcapng::blocks(blocks).map(|block| block.end);
            written = ends.take_while(|end| *end <= written).last().unwrap_or(0);
            // Where this fails, in a pipe, the reader has got the torn block already.
            let _ = self.file.cut(self.ending.bytes + written as u64);
        }
        self.ending.bytes += written as u64;
        written
    }
}
