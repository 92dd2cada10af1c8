//! The M_Key: which subnet manager may read and change a node, and the lease after which it stops to count.
//!
//! Source: IBTA Vol 1, 14.2.4.

use super::port::Port;
use crate::attribute::subnet::port_info as fields;
use crate::datagram::{Datagram, M_KEY, method};
use proto::units::{Duration, Instant};

/// Violations stop here.
const VIOLATIONS_MAX: u64 = 0xffff;

/// Whether the key of `datagram` permits it. A refusal counts, and starts the lease; a good key stops it.
pub(super) fn permits(port: &mut Port, datagram: &Datagram, is_local: bool, now: Instant) -> bool {
    let stored = fields::M_KEY.get(&port.info);
    let fits = stored == 0 || is_local || datagram.get(&M_KEY) == stored;
    if fits {
        port.lease_ends = Instant::NEVER;
        return true;
    }
    if datagram.method() == method::GET && fields::M_KEY_PROTECT.get(&port.info) < 2 {
        return true;
    }
    let violations = fields::M_KEY_VIOLATIONS.get(&port.info);
    fields::M_KEY_VIOLATIONS.set(&mut port.info, (violations + 1).min(VIOLATIONS_MAX));
    let lease = fields::M_KEY_LEASE.get(&port.info);
    if lease > 0 && port.lease_ends == Instant::NEVER {
        port.lease_ends = now + Duration::from_us(1_000_000) * lease;
    }
    false
}

/// Whether an answer must not show the key. Source: IBTA Vol 1, 14.2.4.1 (M_KeyProtectBits 1).
pub(super) fn is_hidden(port: &Port, datagram: &Datagram, is_local: bool) -> bool {
    let stored = fields::M_KEY.get(&port.info);
    let differs = !is_local && datagram.get(&M_KEY) != stored;
    differs && fields::M_KEY_PROTECT.get(&port.info) == 1
}

/// Ends a lease that has expired by `now`: the key no longer protects reads.
pub(super) fn expire(port: &mut Port, now: Instant) {
    if port.lease_ends <= now {
        port.lease_ends = Instant::NEVER;
        fields::M_KEY_PROTECT.set(&mut port.info, 0);
    }
}
