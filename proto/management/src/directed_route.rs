//! Directed routes: what each node does with a datagram that carries its own path.
//!
//! With P the hop pointer, C the hop count and D the direction bit:
//!
//! ```text
//! D  at         condition   action
//! 0  sender     P = 0 < C   P := 1; leave by initial[1]
//! 0  switch     0 < P < C   return[P] := arrival port; P := P + 1; leave by initial[P]
//! 0  any        P = C       return[P] := arrival port; P := C + 1; own agent, or by LID to DrDLID
//! 0  any        P = C + 1   own agent
//! 1  responder  P = C + 1   P := C; leave by return[C]
//! 1  switch     2 ≤ P ≤ C   P := P − 1; leave by return[P]
//! 1  any        P = 1       P := 0; own client, or by LID to DrSLID
//! 1  any        P = 0       own client
//! ```
//!
//! Everything else is discarded, and a channel adapter never passes a datagram on.
//! Source: IBTA Vol 1, 14.2.2 (C14-9, C14-13).

use crate::datagram::{
    DIRECTION, DR_DLID, DR_SLID, Datagram, HOP_COUNT, HOP_POINTER, HOPS_MAX, INITIAL_PATH,
    RETURN_PATH,
};
use proto::ids::Lid;

/// What happens to a datagram next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The agent of this node gets it.
    Agent,
    /// The manager beside this node gets it.
    Client,
    /// It leaves by this port.
    Port(u8),
    /// It goes to this LID by the forwarding table.
    ByLid(Lid),
    /// It is discarded.
    Discard,
}

/// The node that a datagram visits.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The node is a switch.
    pub is_switch: bool,
    /// The number of its ports with a cable.
    pub ports: u8,
    /// The port by which the datagram came.
    pub arrival: u8,
}

impl Place {
    fn leave_by(&self, port: u64) -> Step {
        match u8::try_from(port) {
            Ok(port) if (1..=self.ports).contains(&port) => Step::Port(port),
            _ => Step::Discard,
        }
    }
}

/// A datagram leaves the node of its sender.
pub fn send(datagram: &mut Datagram) -> Step {
    let (pointer, count) = pointers(datagram);
    match count {
        _ if count > HOPS_MAX || pointer != 0 => Step::Discard,
        0 => Step::Agent,
        _ => {
            datagram.set(&HOP_POINTER, 1);
            Step::Port(INITIAL_PATH.at(1, &datagram.0) as u8)
        }
    }
}

/// A datagram arrived at `place`.
pub fn receive(datagram: &mut Datagram, place: Place) -> Step {
    let (pointer, count) = pointers(datagram);
    if count > HOPS_MAX {
        return Step::Discard;
    }
    match datagram.get(&DIRECTION) {
        0 => forward(datagram, place, pointer, count),
        _ => backward(datagram, place, pointer, count),
    }
}

fn forward(datagram: &mut Datagram, place: Place, pointer: u8, count: u8) -> Step {
    if pointer == count {
        if count > 0 {
            RETURN_PATH.set_at(count.into(), &mut datagram.0, place.arrival.into());
        }
        datagram.set(&HOP_POINTER, u64::from(count) + 1);
        return by_lid_or(datagram, DR_DLID, place, Step::Agent);
    }
    if pointer == count + 1 {
        return Step::Agent;
    }
    // With P = 0 the part routed by LID ends here, and this switch does what the sender would.
    let is_out_of_place = pointer > count || pointer == 0 && is_permissive(datagram, DR_SLID);
    if !place.is_switch || is_out_of_place {
        return Step::Discard;
    }
    if pointer > 0 {
        RETURN_PATH.set_at(pointer.into(), &mut datagram.0, place.arrival.into());
    }
    datagram.set(&HOP_POINTER, u64::from(pointer) + 1);
    place.leave_by(INITIAL_PATH.at(usize::from(pointer) + 1, &datagram.0))
}

fn backward(datagram: &mut Datagram, place: Place, pointer: u8, count: u8) -> Step {
    match pointer {
        0 => Step::Client,
        1 => {
            datagram.set(&HOP_POINTER, 0);
            by_lid_or(datagram, DR_SLID, place, Step::Client)
        }
        // With P = C + 1 the part routed by LID ends here, and this switch does what the responder would.
        _ if pointer == count + 1 && is_permissive(datagram, DR_DLID) => Step::Discard,
        _ if place.is_switch && pointer <= count + 1 => {
            datagram.set(&HOP_POINTER, u64::from(pointer) - 1);
            place.leave_by(RETURN_PATH.at(usize::from(pointer) - 1, &datagram.0))
        }
        _ => Step::Discard,
    }
}

/// An answer leaves the node whose agent made it. `requester` is the LID that the request came from.
pub fn respond(datagram: &mut Datagram, requester: Lid) -> Step {
    let (_, count) = pointers(datagram);
    datagram.set(&DIRECTION, 1);
    if !is_permissive(datagram, DR_DLID) {
        return Step::ByLid(requester);
    }
    datagram.set(&HOP_POINTER, count.into());
    match count {
        0 if is_permissive(datagram, DR_SLID) => Step::Client,
        0 => Step::ByLid(Lid::new(datagram.get(&DR_SLID) as u16)),
        _ => Step::Port(RETURN_PATH.at(count.into(), &datagram.0) as u8),
    }
}

fn pointers(datagram: &Datagram) -> (u8, u8) {
    (datagram.get(&HOP_POINTER) as u8, datagram.get(&HOP_COUNT) as u8)
}

fn is_permissive(datagram: &Datagram, field: crate::attribute::Field) -> bool {
    datagram.get(&field) == u64::from(Lid::PERMISSIVE.get())
}

/// `here` if the LID in `field` is permissive. Only a switch goes on by LID.
fn by_lid_or(
    datagram: &Datagram,
    field: crate::attribute::Field,
    place: Place,
    here: Step,
) -> Step {
    match Lid::new(datagram.get(&field) as u16) {
        Lid::PERMISSIVE => here,
        lid if place.is_switch => Step::ByLid(lid),
        _ => Step::Discard,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datagram::{self, method};

    const SWITCH: Place = Place { is_switch: true, ports: 4, arrival: 3 };
    const ADAPTER: Place = Place { is_switch: false, ports: 1, arrival: 1 };

    fn request(path: &[u8]) -> Datagram {
        let class = datagram::SUBNET_DIRECTED;
        Datagram::request(class, method::GET, 0x11, 0, 7).along(path)
    }

    fn at(pointer: u64, mut datagram: Datagram) -> Datagram {
        datagram.set(&HOP_POINTER, pointer);
        datagram
    }

    fn returning(mut datagram: Datagram) -> Datagram {
        datagram.set(&DIRECTION, 1);
        for hop in 1..=3 {
            RETURN_PATH.set_at(hop, &mut datagram.0, hop as u64);
        }
        datagram
    }

    #[test]
    fn a_request_crosses_two_switches_and_its_answer_returns() {
        let mut datagram = request(&[1, 2, 4]);
        assert_eq!(send(&mut datagram), Step::Port(1));
        let first = Place { arrival: 3, ..SWITCH };
        assert_eq!(receive(&mut datagram, first), Step::Port(2));
        assert_eq!(receive(&mut datagram, Place { arrival: 1, ..SWITCH }), Step::Port(4));
        assert_eq!(receive(&mut datagram, ADAPTER), Step::Agent);
        assert_eq!(pointers(&datagram), (4, 3));
        datagram.answer(0);
        assert_eq!(respond(&mut datagram, Lid::PERMISSIVE), Step::Port(1));
        assert_eq!(receive(&mut datagram, SWITCH), Step::Port(1));
        assert_eq!(receive(&mut datagram, SWITCH), Step::Port(3));
        assert_eq!(receive(&mut datagram, ADAPTER), Step::Client);
        assert_eq!(pointers(&datagram), (0, 3));
    }

    #[test]
    fn each_row_of_the_table_has_its_step_and_its_pointer() {
        let out = |pointer| at(pointer, request(&[1, 2, 4]));
        let back = |pointer| returning(out(pointer));
        let rows = [
            (out(1), SWITCH, Step::Port(2), 2),
            (out(2), SWITCH, Step::Port(4), 3),
            (out(3), SWITCH, Step::Agent, 4),
            (out(3), ADAPTER, Step::Agent, 4),
            (out(4), ADAPTER, Step::Agent, 4),
            (out(5), SWITCH, Step::Discard, 5),
            (out(1), ADAPTER, Step::Discard, 1),
            (out(0), ADAPTER, Step::Discard, 0),
            (out(0), SWITCH, Step::Discard, 0),
            (back(3), SWITCH, Step::Port(2), 2),
            (back(2), SWITCH, Step::Port(1), 1),
            (back(1), SWITCH, Step::Client, 0),
            (back(1), ADAPTER, Step::Client, 0),
            (back(0), ADAPTER, Step::Client, 0),
            (back(2), ADAPTER, Step::Discard, 2),
            (back(4), SWITCH, Step::Discard, 4),
            (back(5), SWITCH, Step::Discard, 5),
        ];
        for (number, (mut datagram, place, step, pointer)) in rows.into_iter().enumerate() {
            assert_eq!(receive(&mut datagram, place), step, "row {number}");
            assert_eq!(datagram.get(&HOP_POINTER), pointer, "row {number}");
        }
    }

    #[test]
    fn paths_that_are_too_long_or_leave_by_no_port_are_discarded() {
        let mut long = request(&[1]);
        long.set(&HOP_COUNT, 64);
        assert_eq!(send(&mut long.clone()), Step::Discard);
        assert_eq!(receive(&mut long, SWITCH), Step::Discard);
        for port in [0, 5, 255] {
            let mut datagram = at(1, request(&[1, port, 1]));
            assert_eq!(receive(&mut datagram, SWITCH), Step::Discard, "port {port}");
        }
    }

    #[test]
    fn a_combined_route_begins_at_the_switch_where_its_lid_leads() {
        let mut datagram = request(&[2, 1]);
        datagram.set(&DR_SLID, 9);
        assert_eq!(receive(&mut datagram, SWITCH), Step::Port(2));
        let mut datagram = returning(at(1, datagram));
        assert_eq!(receive(&mut datagram, SWITCH), Step::ByLid(Lid::new(9)));
        assert_eq!(datagram.get(&HOP_POINTER), 0);
        let mut own = request(&[]);
        assert_eq!(send(&mut own), Step::Agent);
        assert_eq!(respond(&mut own, Lid::PERMISSIVE), Step::Client);
    }
}
