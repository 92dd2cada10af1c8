//! A stream of messages over RC: each completes once, in order, and its octets are checked.

use super::{End, Fault, Outcome};
use verbs::pattern::{Pattern, Stream};
use verbs::runs::Run;
use verbs::work::{Completed, Operands, Operation, Places, ReceiveWork, Remote, SendWork};

/// Messages that are posted at once, and whose places lie side by side.
pub const BATCH: u32 = 256;
/// Places of a message: those of batches in flight.
pub const SLOTS: u32 = 4 * BATCH;
/// Polls of 100 ms without any completion after which a stream has ended. Seven retries of 17 ms are far below.
const PATIENCE: u32 = 100;

/// A verb over RC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// SEND.
    Send,
    /// SEND with immediate.
    SendImmediate,
    /// RDMA WRITE.
    Write,
    /// RDMA WRITE with immediate.
    WriteImmediate,
    /// RDMA READ.
    Read,
    /// Compare and swap: message n swaps n for n + 1.
    CompareSwap,
    /// Fetch and add of 1.
    FetchAdd,
}

/// All verbs.
pub const VERBS: [Verb; 7] = [
    Verb::Send,
    Verb::SendImmediate,
    Verb::Write,
    Verb::WriteImmediate,
    Verb::Read,
    Verb::CompareSwap,
    Verb::FetchAdd,
];

impl Verb {
    fn is_atomic(self) -> bool {
        matches!(self, Verb::CompareSwap | Verb::FetchAdd)
    }

    /// Whether the receiver completes work too.
    fn is_received(self) -> bool {
        matches!(self, Verb::Send | Verb::SendImmediate | Verb::WriteImmediate)
    }

    fn has_immediate(self) -> bool {
        matches!(self, Verb::SendImmediate | Verb::WriteImmediate)
    }

    /// Operation, completion of the sender, completion of the receiver.
    fn kinds(self) -> (Operation, Completed, Completed) {
        use Completed::{Receive, ReceiveWrite, Unknown};
        match self {
            Verb::Send | Verb::SendImmediate => (Operation::Send, Completed::Send, Receive),
            Verb::Write => (Operation::Write, Completed::Write, Unknown),
            Verb::WriteImmediate => (Operation::Write, Completed::Write, ReceiveWrite),
            Verb::Read => (Operation::Read, Completed::Read, Unknown),
            Verb::CompareSwap => (Operation::CompareSwap, Completed::CompareSwap, Unknown),
            Verb::FetchAdd => (Operation::FetchAdd, Completed::FetchAdd, Unknown),
        }
    }
}

/// A stream.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The verb.
    pub verb: Verb,
    /// Messages, a multiple of [`BATCH`].
    pub messages: u64,
    /// Octets of each; 8 for atomics.
    pub length: u32,
    /// Identifier and number of the first message, a multiple of [`SLOTS`]. It goes on where an earlier stream of the
    /// same verb has ended.
    pub first: u64,
}

/// Octets of memory that an end needs for messages of `length` octets: their places, and a word for atomics.
pub fn memory_for(length: u32) -> u64 {
    u64::from(SLOTS) * u64::from(length) + WORD
}

/// Room for the word of atomics, at the start of the memory.
const WORD: u64 = 64;

/// The batch that begins with message `number`, in the memory of `end`.
fn places(end: &End, plan: &Plan, number: u64) -> Places {
    let slot = number % u64::from(SLOTS);
    let offset = WORD + slot * u64::from(plan.length);
    Places::adjacent(end.memory.handle, offset, plan.length)
}

/// The content of the messages from `number` on.
fn content(plan: &Plan, number: u64) -> Pattern {
    Pattern { stream: Stream::Mixed(0x5eed), at: number * u64::from(plan.length) }
}

/// Sends a stream from one end to the other.
///
/// # Errors
/// A message that is lost, comes twice, out of order, or changed, and everything that an agent refuses.
pub fn run(plan: &Plan, from: &mut End, to: &mut End) -> Outcome<()> {
    let batch = u64::from(BATCH);
    let (end, window) = (plan.first + plan.messages, u64::from(SLOTS));
    let (mut posted, mut received) = (plan.first, plan.first);
    if plan.verb.is_atomic() && plan.first == 0 {
        to.client.fill(word(to), 1, Pattern::of(Stream::Constant(0)))?;
    }
    let mut completed = plan.first;
    while completed < end {
        while posted < end && posted < completed + window {
            prepare(plan, from, to, posted)?;
            posted += batch;
        }
        let (operation, sent, _) = plan.verb.kinds();
        expect(from, from.sends, completed, sent, |_| None, 0)
            .map_err(|Fault(why)| Fault(format!("{operation:?} from {}: {why}", from.name)))?;
        if plan.verb.is_received() {
            receive(plan, to, received)?;
            received += batch;
        }
        verify(plan, from, to, completed)?;
        completed += batch;
    }
    let late = [from.client.poll(from.sends, 1, 0)?, to.client.poll(to.receives, 1, 0)?];
    if let Some(run) = late.iter().flatten().next() {
        return Err(Fault(format!("a completion too many: {run:?}")));
    }
    if plan.verb.is_atomic() {
        let number = Pattern::of(Stream::Counting(end));
        if let Some(difference) = to.client.check(word(to), 1, number)? {
            return Err(difference.into());
        }
    }
    Ok(())
}

fn word(end: &End) -> Places {
    Places::adjacent(end.memory.handle, 0, 8)
}

/// Posts the batch that begins with `number`, at the receiver first.
fn prepare(plan: &Plan, from: &mut End, to: &mut End, number: u64) -> Outcome<()> {
    let (local, remote) = (places(from, plan, number), places(to, plan, number));
    let stale = Pattern::of(Stream::Constant(0xee));
    let source = match plan.verb {
        Verb::Read => Some((&mut *to, remote)),
        _ if plan.verb.is_atomic() => None,
        _ => Some((&mut *from, local)),
    };
    if let Some((end, places)) = source {
        end.client.fill(places, BATCH, content(plan, number))?;
    }
    // What is checked later must not be there already.
    let (target, places) = if plan.verb == Verb::Read || plan.verb.is_atomic() {
        (&mut *from, local)
    } else {
        (&mut *to, remote)
    };
    target.client.fill(places, BATCH, stale)?;
    if plan.verb.is_received() {
        to.client.post_receive(to.qp, ReceiveWork { id: number, places: remote }, BATCH)?;
    }
    let is_atomic = plan.verb.is_atomic();
    let base = to.memory.address;
    let remote = Remote {
        address: if is_atomic { base } else { base + remote.offset },
        rkey: to.memory.rkey,
        stride: if is_atomic { 0 } else { remote.stride },
    };
    let swaps = plan.verb == Verb::CompareSwap;
    let operands = Operands {
        compare: number,
        compare_step: 1,
        swap_or_add: if swaps { number + 1 } else { 1 },
        swap_or_add_step: u64::from(swaps),
    };
    let (operation, ..) = plan.verb.kinds();
    let work = SendWork {
        immediate: plan.verb.has_immediate().then_some(number as u32),
        remote: (operation != Operation::Send).then_some(remote),
        operands: is_atomic.then_some(operands),
        ..SendWork::new(number, operation, local)
    };
    Ok(from.client.post_send(from.qp, work, BATCH)?)
}

/// The receiver's completions of a batch.
fn receive(plan: &Plan, to: &mut End, number: u64) -> Outcome<()> {
    let (.., received) = plan.verb.kinds();
    let immediate = |k| plan.verb.has_immediate().then_some((number as u32).wrapping_add(k));
    expect(to, to.receives, number, received, immediate, plan.length)
        .map_err(|Fault(why)| Fault(format!("received by {}: {why}", to.name)))
}

/// Takes the completions of a batch, in their order.
fn expect(
    end: &mut End,
    cq: u32,
    number: u64,
    completed: Completed,
    immediate: impl Fn(u32) -> Option<u32>,
    length: u32,
) -> Outcome<()> {
    let runs = end.poll(cq, BATCH, PATIENCE)?;
    let all = runs.iter().flat_map(|run: &Run| (0..run.count).map(|k| run.get(k)));
    let mut count = 0;
    for (k, found) in (0u32..).zip(all) {
        let wanted = number + u64::from(k);
        let has_length = length == 0 || found.length == length;
        if found.id != wanted
            || found.completed != completed
            || found.immediate != immediate(k)
            || !has_length
        {
            return Err(Fault(format!("message {wanted} is {found:?}")));
        }
        count += 1;
    }
    if count < BATCH {
        return Err(Fault(format!("{count} of {BATCH} completions after message {number}")));
    }
    Ok(())
}

/// Checks the octets of a batch where they have arrived.
fn verify(plan: &Plan, from: &mut End, to: &mut End, number: u64) -> Outcome<()> {
    let (target, pattern) = match plan.verb {
        Verb::CompareSwap | Verb::FetchAdd => (from, Pattern::of(Stream::Counting(number))),
        Verb::Read => (from, content(plan, number)),
        _ => (to, content(plan, number)),
    };
    let places = places(target, plan, number);
    match target.client.check(places, BATCH, pattern)? {
        None => Ok(()),
        Some(difference) => {
            let Fault(why) = difference.into();
            Err(Fault(format!("message {number} and following at {}: {why}", target.name)))
        }
    }
}
