//! A stream of datagrams: those that arrive are unaltered, and are counted.

use super::{DEPTH, End, Fault, Outcome, QKEY};
use verbs::attributes::{QpAttributes, State};
use verbs::pattern::{Pattern, Stream};
use verbs::work::{DATAGRAM_HEADER, Operation, Places, ReceiveWork, Receiver, SendWork};

/// Datagrams that are sent at once. As many again can arrive twice.
pub const BATCH: u32 = 128;
/// Receive requests that are posted.
const POSTED: u32 = 4 * BATCH;

/// Prepares the queue pairs of both ends.
///
/// # Errors
/// If an agent refuses.
pub fn open(ends: [&mut End; 2]) -> Outcome<()> {
    for end in ends {
        let send_psn = Some(0);
        for attributes in [
            QpAttributes::init_datagram(QKEY),
            QpAttributes::to(State::Rtr),
            QpAttributes { send_psn, ..QpAttributes::to(State::Rts) },
        ] {
            end.client.modify_qp(end.qp, attributes)?;
        }
    }
    Ok(())
}

/// Octets of memory that an end needs for datagrams of `length` octets.
pub fn memory_for(length: u32) -> u64 {
    u64::from(POSTED) * u64::from(DATAGRAM_HEADER + length)
}

/// Sends `messages` datagrams of `length` octets and returns how many have arrived.
///
/// # Errors
/// A datagram that is altered or was never sent, and everything that an agent refuses.
pub fn run(from: &mut End, to: &mut End, messages: u32, length: u32) -> Outcome<u64> {
    assert!(POSTED <= DEPTH && messages.is_multiple_of(BATCH), "whole batches");
    let address = from.address_of(to, 0);
    let ah = from.client.create_ah(from.pd, address)?;
    let stride = u64::from(DATAGRAM_HEADER + length);
    let buffer = |offset| Places {
        memory: to.memory.handle,
        offset,
        length: DATAGRAM_HEADER + length,
        stride,
    };
    to.client.post_receive(to.qp, ReceiveWork { id: 0, places: buffer(0) }, POSTED)?;
    let mut arrived = 0u64;
    for batch in 0..messages / BATCH {
        let first = batch * BATCH;
        let places = Places::adjacent(from.memory.handle, 0, length);
        let at = u64::from(first) * u64::from(length);
        from.client.fill(places, BATCH, Pattern { stream: Stream::Mixed(9), at })?;
        let receiver = Receiver { ah, number: to.number, qkey: QKEY };
        let work = SendWork {
            immediate: Some(first),
            receiver: Some(receiver),
            ..SendWork::new(u64::from(first), Operation::Send, places)
        };
        from.client.post_send(from.qp, work, BATCH)?;
        let sent = from.poll(from.sends, BATCH, 50)?;
        if verbs::runs::count(&sent) != BATCH {
            return Err(Fault(format!("datagrams from {first} on are not sent: {sent:?}")));
        }
        // Late ones come with a later batch.
        for run in to.poll(to.receives, BATCH, 2)? {
            let Some(number) = run.first.immediate else {
                return Err(Fault(format!("no datagram of this stream: {run:?}")));
            };
            if number + run.count > first + BATCH || run.first.length != DATAGRAM_HEADER + length {
                return Err(Fault(format!("no datagram of this stream: {run:?}")));
            }
            take(to, &run.first, number, run.count, length, stride)?;
            arrived += u64::from(run.count);
        }
    }
    for run in to.poll(to.receives, DEPTH, 5)? {
        let number = run.first.immediate.unwrap_or(u32::MAX);
        take(to, &run.first, number, run.count, length, stride)?;
        arrived += u64::from(run.count);
    }
    from.client.destroy(ah)?;
    Ok(arrived)
}

/// Checks the octets of datagrams `number` and following, and posts their buffers again.
fn take(
    to: &mut End,
    first: &verbs::work::Completion,
    number: u32,
    count: u32,
    length: u32,
    stride: u64,
) -> Outcome<()> {
    // Identifiers name the buffers. A run may pass the last one.
    let mut done = 0;
    while done < count {
        let slot = (first.id + u64::from(done)) % u64::from(POSTED);
        let part = (count - done).min(POSTED - slot as u32);
        let offset = slot * stride;
        let payload = Places {
            memory: to.memory.handle,
            offset: offset + u64::from(DATAGRAM_HEADER),
            length,
            stride,
        };
        let at = u64::from(number + done) * u64::from(length);
        if let Some(difference) =
            to.client.check(payload, part, Pattern { stream: Stream::Mixed(9), at })?
        {
            let Fault(why) = difference.into();
            return Err(Fault(format!("datagram {}: {why}", number + done)));
        }
        let places = Places { offset, length: DATAGRAM_HEADER + length, ..payload };
        let id = first.id + u64::from(done) + u64::from(POSTED);
        to.client.post_receive(to.qp, ReceiveWork { id, places }, part)?;
        done += part;
    }
    Ok(())
}
