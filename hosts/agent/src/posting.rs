//! Work requests to the queues of libibverbs, and completions from them.

use crate::codes::{
    FENCE, SIGNALED, SOLICITED, WITH_IMMEDIATE, completed, opcode, refusal, status,
};
use crate::layouts::{
    AtomicPart, Cq, DatagramPart, Place, Qp, RdmaPart, ReceiveRequest, RemotePart, SendRequest,
    WorkCompletion,
};
use crate::objects::{self, Object};
use verbs::BATCH_MAX;
use verbs::answer::Refusal;
use verbs::attributes::Service;
use verbs::call::WAIT_MAX_MS;
use verbs::objects::Objects;
use verbs::runs::{self, Run};
use verbs::work::{Completed, Completion, Operation, Places, ReceiveWork, SendWork, Status};

/// Completions that one call of the library takes.
const POLL: usize = 64;

/// The places of `count` work requests.
fn places(
    objects: &mut Objects<Object>,
    places: &Places,
    count: u32,
) -> Result<Vec<Place>, Refusal> {
    if count == 0 || count > BATCH_MAX {
        return Err(Refusal::limit(format!("a call posts 1 to {BATCH_MAX} work requests")));
    }
    let memory = objects::memory(objects, places.memory)?;
    verbs::memory::contains(memory.pages.length(), places, count)?;
    let start = memory.pages.address();
    // SAFETY: libibverbs has made the region, and the table still has it. Test: each_verb_passes_both_ways.
    let lkey = unsafe { (*memory.region).lkey };
    let place = |k| Place {
        // The last place is within the region, so no offset is beyond 64 bits.
        address: start + places.offset_of(k).unwrap_or(0),
        length: places.length,
        lkey,
    };
    Ok((0..count).map(place).collect())
}

/// The part of a send request that depends on its operation.
fn remote(work: &SendWork, ah: Option<*mut crate::layouts::Opaque>, k: u32) -> Option<RemotePart> {
    let step = u64::from(k);
    let address = |remote: &verbs::work::Remote| {
        remote.address.wrapping_add(remote.stride.wrapping_mul(step))
    };
    Some(match work.operation {
        Operation::Send => match (work.receiver, ah) {
            (Some(receiver), Some(ah)) => RemotePart {
                datagram: DatagramPart { ah, number: receiver.number, qkey: receiver.qkey },
            },
            _ => RemotePart { atomic: AtomicPart::default() },
        },
        Operation::Write | Operation::Read => {
            let remote = work.remote?;
            RemotePart { rdma: RdmaPart { address: address(&remote), rkey: remote.rkey } }
        }
        Operation::CompareSwap | Operation::FetchAdd => {
            let (remote, operands) = (work.remote?, work.operands?);
            let compare = operands.compare.wrapping_add(operands.compare_step.wrapping_mul(step));
            let other =
                operands.swap_or_add.wrapping_add(operands.swap_or_add_step.wrapping_mul(step));
            let adds = work.operation == Operation::FetchAdd;
            RemotePart {
                atomic: AtomicPart {
                    address: address(&remote),
                    compare_or_add: if adds { other } else { compare },
                    swap: if adds { 0 } else { other },
                    rkey: remote.rkey,
                },
            }
        }
    })
}

/// Posts to a send queue.
///
/// # Errors
/// If the work does not fit the queue pair, or the library refuses; the text says how many are posted.
pub fn send(
    objects: &mut Objects<Object>,
    (qp, service): (*mut Qp, Service),
    work: &SendWork,
    count: u32,
) -> Result<(), Refusal> {
    let mut places = places(objects, &work.places, count)?;
    let ah = match (service, work.receiver) {
        (Service::Ud, Some(receiver)) => Some(objects::ah(objects, receiver.ah)?),
        (Service::Ud, None) => return Err(Refusal::invalid("a datagram needs a receiver")),
        _ => None,
    };
    let flag = |is_set: bool, flag| if is_set { flag } else { 0 };
    let mut requests = Vec::with_capacity(count as usize);
    for (k, place) in (0..count).zip(&mut places) {
        let missing = || Refusal::invalid("the operation needs a remote place or operands");
        requests.push(SendRequest {
            id: work.id.wrapping_add(u64::from(k)),
            next: std::ptr::null_mut(),
            places: std::ptr::from_mut(place),
            places_count: i32::from(place.length > 0),
            opcode: opcode(work.operation, work.immediate.is_some()),
            flags: SIGNALED | flag(work.fence, FENCE) | flag(work.solicited, SOLICITED),
            immediate: work.immediate.unwrap_or(0).wrapping_add(k).to_be(),
            remote: remote(work, ah, k).ok_or_else(missing)?,
            rest: [0; 7],
        });
    }
    let first = requests.as_mut_ptr();
    let mut refused = std::ptr::null_mut();
    // SAFETY: each request points to the next one and to its place, and both vectors outlive the call. libibverbs has
    // made the queue pair, and the table still has it. Test: each_verb_passes_both_ways.
    let returned = unsafe {
        for k in 1..requests.len() {
            (*first.add(k - 1)).next = first.add(k);
        }
        ((*(*qp).context).operations.post_send)(qp, first, &raw mut refused)
    };
    let posted = requests.iter().take_while(|request| !std::ptr::eq(*request, refused)).count();
    outcome("post_send", returned, posted)
}

/// Posts to a receive queue.
///
/// # Errors
/// If the library refuses; the text says how many are posted.
pub fn receive(
    objects: &mut Objects<Object>,
    qp: *mut Qp,
    work: &ReceiveWork,
    count: u32,
) -> Result<(), Refusal> {
    let mut places = places(objects, &work.places, count)?;
    let request = |(k, place): (u32, &mut Place)| ReceiveRequest {
        id: work.id.wrapping_add(u64::from(k)),
        next: std::ptr::null_mut(),
        places: std::ptr::from_mut(place),
        places_count: i32::from(place.length > 0),
    };
    let mut requests: Vec<ReceiveRequest> = (0..count).zip(&mut places).map(request).collect();
    let first = requests.as_mut_ptr();
    let mut refused = std::ptr::null_mut();
    // SAFETY: as for sends. Test: each_verb_passes_both_ways.
    let returned = unsafe {
        for k in 1..requests.len() {
            (*first.add(k - 1)).next = first.add(k);
        }
        ((*(*qp).context).operations.post_receive)(qp, first, &raw mut refused)
    };
    let posted = requests.iter().take_while(|request| !std::ptr::eq(*request, refused)).count();
    outcome("post_recv", returned, posted)
}

fn outcome(what: &str, returned: i32, posted: usize) -> Result<(), Refusal> {
    match returned {
        0 => Ok(()),
        error => {
            let refusal = refusal(what, error.abs());
            let text = format!("{}; {posted} are posted", refusal.text);
            Err(Refusal { text, ..refusal })
        }
    }
}

/// Takes `count` completions; fewer if no more come within `wait_ms`.
///
/// # Errors
/// If the numbers are too large or the library fails.
pub fn poll(cq: *mut Cq, count: u32, wait_ms: u32) -> Result<Vec<Run>, Refusal> {
    if count > BATCH_MAX || wait_ms > WAIT_MAX_MS {
        return Err(Refusal::limit(format!(
            "a call polls {BATCH_MAX} completions and waits {WAIT_MAX_MS} ms at most"
        )));
    }
    let mut found = Vec::new();
    let (mut taken, mut waited) = (0, 0);
    let mut room = [WorkCompletion::default(); POLL];
    while taken < count as usize {
        let wanted = (count as usize - taken).min(POLL);
        // SAFETY: `room` has place for that many. libibverbs has made the queue, and the table still has it.
        // Test: each_verb_passes_both_ways.
        let number =
            unsafe { ((*(*cq).context).operations.poll_cq)(cq, wanted as i32, room.as_mut_ptr()) };
        let number = usize::try_from(number)
            .map_err(|_| Refusal::new("EIO", "poll_cq: the queue cannot be read"))?;
        room[..number].iter().for_each(|entry| runs::push(&mut found, completion(entry)));
        taken += number;
        if number == 0 {
            if waited == wait_ms {
                break;
            }
            waited += 1;
            pause();
        }
    }
    Ok(found)
}

/// Waits for a millisecond, so that the kernel can use the processor.
fn pause() {
    // An error is a signal, which shortens the wait.
    let _ = nix::poll::poll(&mut [], nix::poll::PollTimeout::from(1u8));
}

fn completion(entry: &WorkCompletion) -> Completion {
    let is_good = entry.status == 0;
    let completed = if is_good { completed(entry.opcode) } else { Completed::Unknown };
    let has_length =
        matches!(completed, Completed::Receive | Completed::ReceiveWrite | Completed::Read);
    let is_received = matches!(completed, Completed::Receive | Completed::ReceiveWrite);
    let immediate = u32::from_be(entry.immediate);
    let status = status(entry.status);
    Completion {
        id: entry.id,
        completed,
        status,
        length: if has_length { entry.octets } else { 0 },
        immediate: (is_received && entry.flags & WITH_IMMEDIATE != 0).then_some(immediate),
        number: entry.number,
        source: if is_received { entry.source } else { 0 },
        vendor: match status {
            Status::Success => 0,
            Status::Other => entry.status,
            _ => entry.vendor_error,
        },
    }
}
