//! The receive buffers of a queue pair, which SENDs consume and the application posts again.

use proto::units::{Duration, Instant};

/// Receive buffers. Each message takes one; the application posts them again one at a time.
#[derive(Clone, Debug)]
pub struct ReceiveBuffers {
    /// `None` means no limit.
    posted: Option<u32>,
    to_post: u32,
    next_post: Instant,
    refill: Duration,
}

impl ReceiveBuffers {
    /// `depth` posted buffers (0 means no limit). Posting one again takes `refill`.
    pub fn new(depth: u32, refill: Duration) -> ReceiveBuffers {
        let posted = (depth > 0).then_some(depth);
        ReceiveBuffers { posted, to_post: 0, next_post: Instant::ZERO, refill }
    }

    /// Takes a buffer for a message at `now`. False if none is posted.
    pub fn take(&mut self, now: Instant) -> bool {
        let Some(posted) = &mut self.posted else { return true };
        while self.to_post > 0 && self.next_post <= now {
            *posted += 1;
            self.to_post -= 1;
            self.next_post = self.next_post + self.refill;
        }
        let granted = *posted > 0;
        *posted -= u32::from(granted);
        granted
    }

    /// A message no longer needs its buffer. The application begins to post it again at `now`.
    pub fn give_back(&mut self, now: Instant) {
        if self.to_post == 0 {
            self.next_post = now + self.refill;
        }
        self.to_post += u32::from(self.posted.is_some());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_posted_again_one_at_a_time() {
        let mut buffers = ReceiveBuffers::new(2, Duration::from_ps(10));
        let at = Instant::from_ps;
        assert!(buffers.take(at(0)) && buffers.take(at(0)) && !buffers.take(at(0)));
        buffers.give_back(at(5));
        buffers.give_back(at(6));
        assert!(!buffers.take(at(14)));
        assert!(buffers.take(at(15)) && !buffers.take(at(24)));
        assert!(buffers.take(at(25)) && !buffers.take(at(99)));
    }
}
