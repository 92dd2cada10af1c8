//! Calls about the content of a memory region, executed on its octets.

use crate::answer::{Answer, Refusal};
use crate::attributes::Handle;
use crate::call::Call;
use crate::octets::Octets;
use crate::pattern::{Difference, Pattern};
use crate::work::Places;
use crate::{BATCH_MAX, OCTETS_MAX};

/// The memory region whose content a call reads or changes; `None` for other calls.
pub fn region(call: &Call) -> Option<Handle> {
    match call {
        Call::Fill { places, .. } | Call::Check { places, .. } | Call::Checksum { places, .. } => {
            Some(places.memory)
        }
        Call::ReadMemory { memory, .. } | Call::WriteMemory { memory, .. } => Some(*memory),
        _ => None,
    }
}

/// Executes a call for which [`region`] has found this region.
///
/// # Errors
/// If a place is not within the region, or the call is too large.
pub fn execute(octets: &mut [u8], call: &Call) -> Result<Answer, Refusal> {
    match call {
        Call::Fill { places, count, pattern } => {
            fill(octets, places, *count, *pattern).map(|()| Answer::Done)
        }
        Call::Check { places, count, pattern } => {
            let difference = check(octets, places, *count, *pattern)?;
            Ok(Answer::Checked { difference })
        }
        Call::Checksum { places, count } => {
            let mut checksum = crc32fast::Hasher::new();
            for k in 0..bounded(*count)? {
                checksum.update(place(octets, places, k)?);
            }
            Ok(Answer::Checksum { crc32: checksum.finalize() })
        }
        Call::ReadMemory { offset, length, .. } => {
            let octets = part(octets, *offset, *length)?.to_vec();
            Ok(Answer::Octets(Octets(octets)))
        }
        Call::WriteMemory { offset, octets: Octets(new), .. } => {
            let length = u32::try_from(new.len()).unwrap_or(u32::MAX);
            part(octets, *offset, length)?.copy_from_slice(new);
            Ok(Answer::Done)
        }
        _ => Err(Refusal::unsupported("the agent does not know this call")),
    }
}

/// Refuses `count` places of which some are not within a region of `length` octets.
///
/// # Errors
/// If so.
pub fn contains(length: u64, places: &Places, count: u32) -> Result<(), Refusal> {
    let end = places.end(bounded(count)?).filter(|end| *end <= length);
    end.map(|_| ()).ok_or_else(outside)
}

fn fill(octets: &mut [u8], places: &Places, count: u32, pattern: Pattern) -> Result<(), Refusal> {
    contains(octets.len() as u64, places, count)?;
    for k in 0..count {
        at(pattern, places, k).fill(place(octets, places, k)?);
    }
    Ok(())
}

fn check(
    octets: &mut [u8],
    places: &Places,
    count: u32,
    pattern: Pattern,
) -> Result<Option<Difference>, Refusal> {
    contains(octets.len() as u64, places, count)?;
    for k in 0..count {
        let found = place(octets, places, k)?;
        if let Some((octet, expected)) = at(pattern, places, k).check(found) {
            let (place, found) = (k, found[octet]);
            return Ok(Some(Difference { place, octet: octet as u32, expected, found }));
        }
    }
    Ok(None)
}

/// The pattern of the k-th place.
fn at(pattern: Pattern, places: &Places, k: u32) -> Pattern {
    pattern.plus(u64::from(k) * u64::from(places.length))
}

fn place<'a>(octets: &'a mut [u8], places: &Places, k: u32) -> Result<&'a mut [u8], Refusal> {
    let begin = places.offset_of(k).ok_or_else(outside)?;
    let end = begin.checked_add(u64::from(places.length)).ok_or_else(outside)?;
    octets.get_mut(begin as usize..end as usize).ok_or_else(outside)
}

fn part(octets: &mut [u8], offset: u64, length: u32) -> Result<&mut [u8], Refusal> {
    if length > OCTETS_MAX {
        return Err(Refusal::limit(format!("a call carries at most {OCTETS_MAX} octets")));
    }
    place(octets, &Places { memory: 0, offset, length, stride: 0 }, 0)
}

fn bounded(count: u32) -> Result<u32, Refusal> {
    if count <= BATCH_MAX {
        return Ok(count);
    }
    Err(Refusal::limit(format!("a call names at most {BATCH_MAX} places")))
}

fn outside() -> Refusal {
    Refusal::invalid("a place is not within its memory region")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::Stream;

    #[test]
    fn places_are_filled_and_checked_within_the_region_only() {
        let mut octets = vec![0; 10_000];
        let pattern = Pattern::of(Stream::Mixed(3));
        let places = Places { memory: 1, offset: 40, length: 60, stride: 100 };
        let count = 99;
        let mut ask = |call: Call| execute(&mut octets, &call);
        assert_eq!(ask(Call::Fill { places, count, pattern }), Ok(Answer::Done));
        let equal = Ok(Answer::Checked { difference: None });
        assert_eq!(ask(Call::Check { places, count, pattern }), equal);
        let gap = ask(Call::ReadMemory { memory: 1, offset: 0, length: 40 });
        assert_eq!(gap, Ok(Answer::Octets(Octets(vec![0; 40]))), "the gap is untouched");
        let one = Octets(vec![1, 2]);
        ask(Call::WriteMemory { memory: 1, offset: 3 * 100 + 47, octets: one }).expect("it fits");
        let Ok(Answer::Checked { difference: Some(found) }) =
            ask(Call::Check { places, count, pattern })
        else {
            panic!("a difference")
        };
        assert_eq!((found.place, found.octet, found.found), (3, 7, 1));
        for (offset, length, stride, count) in [
            (9_990, 11, 0, 1),
            (0, 10, 5_000, 3),
            (u64::MAX, 2, 0, 1),
            (0, 1, u64::MAX, 3),
            (0, 0, 0, BATCH_MAX + 1),
        ] {
            let places = Places { memory: 1, offset, length, stride };
            assert!(ask(Call::Fill { places, count, pattern }).is_err());
            assert!(ask(Call::Checksum { places, count }).is_err());
        }
        let places = Places::adjacent(1, 0, 9);
        let digits = Octets(b"123456789".to_vec());
        ask(Call::WriteMemory { memory: 1, offset: 0, octets: digits }).expect("it fits");
        let check = Answer::Checksum { crc32: 0xcbf4_3926 };
        assert_eq!(
            ask(Call::Checksum { places, count: 1 }),
            Ok(check),
            "the check value of CRC-32"
        );
    }
}
