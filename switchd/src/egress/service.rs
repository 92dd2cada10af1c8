//! An output that serves its data slower than its line: an output-generated hot spot.
//!
//! A data frame delays the next one for as long as a line of the service rate would be busy with it. Idle
//! time does not accumulate. Other frames are not delayed unless data of their priority is ahead.
//!
//! Source: the Zurich benchmark, output-generated hot spots.

use crate::config::ServiceConfig;
use proto::units::{Bytes, Instant};

/// The service rate of one output.
#[derive(Debug)]
pub struct Service {
    spells: Vec<ServiceConfig>,
    open_at: Instant,
}

impl Service {
    /// The service with these intervals; `None` if there are none.
    pub fn new(spells: &[ServiceConfig]) -> Option<Box<Service>> {
        let open_at = Instant::ZERO;
        (!spells.is_empty()).then(|| Box::new(Service { spells: spells.to_vec(), open_at }))
    }

    /// When the next data frame may start.
    pub fn open_at(&self) -> Instant {
        self.open_at
    }

    /// Charges a data frame of `size` octets that starts at `start`.
    pub fn on_start(&mut self, size: Bytes, start: Instant) {
        let holds = |spell: &&ServiceConfig| spell.start <= start && start < spell.stop;
        if let Some(spell) = self.spells.iter().rev().find(holds) {
            self.open_at = start + size.time_at(spell.rate);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::units::BitRate;

    #[test]
    fn a_frame_closes_the_service_for_its_time_at_the_rate_of_the_latest_spell_that_holds() {
        let us = |us: u64| Instant::from_ps(us * 1_000_000);
        let spell = |rate, start, stop| ServiceConfig { rate, start: us(start), stop: us(stop) };
        let slow = [spell(BitRate::gbps(2), 10, 30), spell(BitRate::gbps(1), 20, 30)];
        let mut service = Service::new(&slow).expect("there are spells");
        let frame = Bytes::new(1500);
        // 1500 octets take 6 us at 2 Gb/s and 12 us at 1 Gb/s.
        for (start, open_at) in [(0, 0), (10, 16), (19, 25), (25, 37), (37, 37)] {
            service.on_start(frame, us(start));
            assert_eq!(service.open_at(), us(open_at), "after a start at {start} us");
        }
        assert!(Service::new(&[]).is_none());
    }
}
