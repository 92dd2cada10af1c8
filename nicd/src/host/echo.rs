//! Answers to echo requests of ICMPv4 and ICMPv6.

use crate::host::frames::{Local, Peer};
use proto::frame::{Frame, FramePool};
use proto::wire::internet::icmp::{
    ECHO_REPLY_V4, ECHO_REPLY_V6, ECHO_REQUEST_V4, ECHO_REQUEST_V6, Echo,
};
use std::net::IpAddr;

/// The hop limit of a reply. Source: RFC 1700 (default TTL).
const HOPS: u8 = 64;

/// The reply to the echo request `message`, whose checksum holds; `None` if it is none. Source: RFC 792; RFC
/// 4443, 4.2.
pub fn reply(local: &Local, pool: &mut FramePool, from: &Peer, message: &[u8]) -> Option<Frame> {
    let echo = Echo::parse(message).ok()?;
    let kind = match (from.ip, echo.kind, echo.code) {
        (IpAddr::V4(_), ECHO_REQUEST_V4, 0) => ECHO_REPLY_V4,
        (IpAddr::V6(_), ECHO_REQUEST_V6, 0) => ECHO_REPLY_V6,
        _ => return None,
    };
    let mut answer = message.to_vec();
    answer[0] = kind;
    Some(local.icmp(pool, from, HOPS, &answer))
}
