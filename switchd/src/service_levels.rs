//! The SL-to-VL map of a switch: the virtual lane for each input, output and service level.
//!
//! Source: IBTA Vol 1, 7.6.6.

use proto::ids::{PortNumber, ServiceLevel, VirtualLane};

const LEVELS: usize = 16;

/// The map.
#[derive(Clone, Debug)]
pub struct ServiceLevels {
    ports: usize,
    /// One table for all pairs of ports, or one table per pair, by input and then by output.
    lanes: Vec<VirtualLane>,
}

impl ServiceLevels {
    /// The map of a switch with `ports` ports: sixteen lanes, or sixteen for each pair of ports.
    /// `None` if `map` has another length or a lane above 15.
    pub fn new(map: &[u8], ports: usize) -> Option<ServiceLevels> {
        let lanes: Vec<_> =
            map.iter().map(|lane| VirtualLane::new(*lane).ok()).collect::<Option<_>>()?;
        let fits = lanes.len() == LEVELS || lanes.len() == LEVELS * ports * ports;
        fits.then_some(ServiceLevels { ports, lanes })
    }

    /// The map in which each level is its own lane: on Ethernet a frame keeps its priority.
    pub fn identity(ports: usize) -> ServiceLevels {
        ServiceLevels { ports, lanes: (0..LEVELS as u8).map(VirtualLane::truncate).collect() }
    }

    /// Sets the lanes of one pair of ports, by service level. The other pairs keep theirs.
    pub fn set(&mut self, input: PortNumber, output: PortNumber, lanes: [VirtualLane; LEVELS]) {
        if self.lanes.len() == LEVELS {
            self.lanes = self.lanes.repeat(self.ports * self.ports);
        }
        let first = (input.index() * self.ports + output.index()) * LEVELS;
        self.lanes[first..first + LEVELS].copy_from_slice(&lanes);
    }

    /// The lane on which a packet of `level` from `input` leaves by `output`.
    pub fn lane(&self, input: PortNumber, output: PortNumber, level: ServiceLevel) -> VirtualLane {
        let pair = if self.lanes.len() == LEVELS {
            0
        } else {
            input.index() * self.ports + output.index()
        };
        self.lanes[pair * LEVELS + level.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(map: &ServiceLevels, input: usize, output: usize, level: u8) -> u8 {
        let port = PortNumber::from_index;
        map.lane(port(input), port(output), ServiceLevel::truncate(level)).get()
    }

    #[test]
    fn sixteen_lanes_serve_every_pair_of_ports() {
        let same: Vec<u8> = (0..16).collect();
        let map = ServiceLevels::new(&same, 3).expect("sixteen lanes");
        assert_eq!((lane(&map, 0, 2, 5), lane(&map, 2, 1, 15)), (5, 15));
    }

    #[test]
    fn sixteen_a_pair_are_found_by_input_and_then_by_output() {
        let each: Vec<u8> = (0..4).flat_map(|pair| [pair; 16]).collect();
        let map = ServiceLevels::new(&each, 2).expect("sixteen lanes a pair");
        assert_eq!([lane(&map, 0, 1, 3), lane(&map, 1, 0, 3)], [1, 2]);
    }

    #[test]
    fn a_pair_that_is_set_leaves_the_others_as_they_were() {
        let same: Vec<u8> = (0..16).collect();
        let mut map = ServiceLevels::new(&same, 3).expect("sixteen lanes");
        let port = PortNumber::from_index;
        map.set(port(0), port(2), [VirtualLane::truncate(7); LEVELS]);
        assert_eq!((lane(&map, 0, 2, 5), lane(&map, 0, 1, 5), lane(&map, 2, 0, 5)), (7, 5, 5));
    }

    #[test]
    fn other_lengths_and_lanes_are_refused() {
        for map in [&[0; 15][..], &[0; 32], &[16; 16]] {
            assert!(ServiceLevels::new(map, 2).is_none());
        }
    }
}
