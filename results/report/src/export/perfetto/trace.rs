//! Packets of a trace, under the field numbers of Perfetto's public descriptors.
//!
//! Source: perfetto `protos/perfetto/trace/{trace_packet,track_event/*}.proto`; its documentation,
//! "Writing TrackEvent Protos Synthetically".

use crate::export::protobuf::Message;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Declares field numbers: a module for each message, a constant for each field.
macro_rules! fields {
    ($($message:ident { $($field:ident $number:literal,)* })*) => {
        mod field {
            $(pub mod $message { $(pub const $field: u64 = $number;)* })*
        }
    };
}

fields! {
    trace { PACKET 1, }
    packet { TIMESTAMP 8, SEQUENCE 10, TRACK_EVENT 11, INTERNED 12, SEQUENCE_FLAGS 13, TRACK 60, }
    interned { EVENT_NAMES 2, ANNOTATION_NAMES 3, ANNOTATION_TEXTS 29, NUMBER 1, NAME 2, }
    track { UUID 1, NAME 2, PROCESS 3, PARENT 5, COUNTER 8, }
    process { PID 1, NAME 6, }
    counter { UNIT 3, UNIT_NAME 6, SHARE_KEY 7, }
    event { ANNOTATIONS 4, TYPE 9, NAME 10, TRACK 11, COUNT 30, FLOWS 47, }
    annotation { NAME 1, NUMBER 3, TEXT 17, }
}

/// Kinds of events.
const SLICE_BEGIN: u64 = 1;
const SLICE_END: u64 = 2;
const INSTANT: u64 = 3;
const COUNTER: u64 = 4;
/// All packets are of one sequence: any number but 0.
const SEQUENCE: u64 = 1;
/// The first packet begins the tables of names; those that go by them need it.
const NAMES_BEGIN: u64 = 1;
const NAMES_NEEDED: u64 = 2;
const PS_PER_NS: u64 = 1_000;

/// A track of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Track(u64);

/// What a counter counts.
#[derive(Clone, Copy, Debug)]
pub enum Unit {
    /// Events or frames.
    Count,
    /// Octets.
    Octets,
    /// Nanoseconds.
    Nanoseconds,
    /// A unit by its name.
    Named(&'static str),
}

/// Strings by the number that stands for them.
#[derive(Debug, Default)]
struct Names(BTreeMap<String, u64>);

impl Names {
    fn number(&mut self, name: &str) -> u64 {
        let next = self.0.len() as u64 + 1;
        self.0.get(name).copied().unwrap_or_else(|| *self.0.entry(name.to_owned()).or_insert(next))
    }

    fn within(&self, table: Message, field: u64) -> Message {
        self.0.iter().fold(table, |table, (name, number)| {
            let entry = Message::new().uint(field::interned::NUMBER, *number);
            table.message(field, &entry.text(field::interned::NAME, name))
        })
    }
}

/// An event that may still get arrows: its place in the trace.
#[derive(Clone, Copy, Debug)]
pub struct EventPlace(usize);

/// A trace under construction.
#[derive(Debug, Default)]
pub struct Trace {
    tracks: Vec<Message>,
    events: Vec<Event>,
    names: Names,
    words: Names,
    texts: Names,
    arrows: u64,
}

/// An event: when, in nanoseconds, and what.
#[derive(Debug)]
struct Event {
    at: u64,
    body: Message,
    /// It goes by the tables of names.
    is_named: bool,
}

impl Trace {
    /// A process; number 0 would be the kernel's idle one.
    pub fn process(&mut self, number: usize, name: &str) -> Track {
        let process = Message::new()
            .uint(field::process::PID, number as u64 + 1)
            .text(field::process::NAME, name);
        self.describe(|track| track.message(field::track::PROCESS, &process))
    }

    /// A track below another.
    pub fn track(&mut self, parent: Track, name: &str) -> Track {
        self.below(parent, name, |track| track)
    }

    /// A track of numbers below another. Those of one name below one parent share their axis.
    pub fn counter(&mut self, parent: Track, name: &str, unit: &Unit) -> Track {
        let counter = Message::new();
        let counter = match unit {
            Unit::Nanoseconds => counter.uint(field::counter::UNIT, 1),
            Unit::Count => counter.uint(field::counter::UNIT, 2),
            Unit::Octets => counter.uint(field::counter::UNIT, 3),
            Unit::Named(unit) => counter.text(field::counter::UNIT_NAME, unit),
        };
        let kind = name.split(',').next().unwrap_or(name);
        let counter = counter.text(field::counter::SHARE_KEY, kind);
        self.below(parent, name, |track| track.message(field::track::COUNTER, &counter))
    }

    fn below(
        &mut self,
        parent: Track,
        name: &str,
        finish: impl FnOnce(Message) -> Message,
    ) -> Track {
        self.describe(|track| {
            finish(track.text(field::track::NAME, name).uint(field::track::PARENT, parent.0))
        })
    }

    fn describe(&mut self, finish: impl FnOnce(Message) -> Message) -> Track {
        let track = Track(self.tracks.len() as u64 + 1);
        self.tracks.push(finish(Message::new().uint(field::track::UUID, track.0)));
        track
    }

    /// A counter with all its values by begin, picoseconds; a value equal to the one before is left out.
    pub fn counter_of(
        &mut self,
        parent: Track,
        name: &str,
        unit: &Unit,
        values: impl Iterator<Item = (u64, u64)>,
    ) {
        let counter = self.counter(parent, name, unit);
        let mut before = None;
        for (at_ps, value) in values {
            if before.replace(value) != Some(value) {
                self.count(counter, at_ps, value);
            }
        }
    }

    /// A counter has a value from `at_ps` on.
    pub fn count(&mut self, track: Track, at_ps: u64, value: u64) {
        self.push(at_ps, event(COUNTER, track).uint(field::event::COUNT, value), false);
    }

    /// A slice begins.
    pub fn begin(&mut self, track: Track, at_ps: u64, name: &str) {
        let event = self.named(SLICE_BEGIN, track, name, &[]);
        self.push(at_ps, event, true);
    }

    /// The slice that began last on a track ends.
    pub fn end(&mut self, track: Track, at_ps: u64) {
        self.push(at_ps, event(SLICE_END, track), false);
    }

    /// Something happens.
    pub fn instant(
        &mut self,
        track: Track,
        at_ps: u64,
        name: &str,
        notes: &[(&str, Value)],
    ) -> EventPlace {
        let event = self.named(INSTANT, track, name, notes);
        self.push(at_ps, event, true)
    }

    /// One thing leads to the next, and that to the one after it.
    pub fn arrow(&mut self, places: &[EventPlace]) {
        self.arrows += 1;
        for EventPlace(place) in places {
            let body = &mut self.events[*place].body;
            *body = std::mem::take(body).fixed(field::event::FLOWS, self.arrows);
        }
    }

    fn named(&mut self, kind: u64, track: Track, name: &str, notes: &[(&str, Value)]) -> Message {
        let event = event(kind, track).uint(field::event::NAME, self.names.number(name));
        notes.iter().fold(event, |event, (word, note)| {
            let annotation = Message::new().uint(field::annotation::NAME, self.words.number(word));
            let annotation = match note.as_u64() {
                Some(number) => annotation.uint(field::annotation::NUMBER, number),
                None => {
                    let text = note.as_str().map_or_else(|| note.to_string().into(), Cow::Borrowed);
                    annotation.uint(field::annotation::TEXT, self.texts.number(&text))
                }
            };
            event.message(field::event::ANNOTATIONS, &annotation)
        })
    }

    fn push(&mut self, at_ps: u64, body: Message, is_named: bool) -> EventPlace {
        self.events.push(Event { at: at_ps / PS_PER_NS, body, is_named });
        EventPlace(self.events.len() - 1)
    }

    /// The file: names first, then tracks, then all events by time; at one instant in the order in which
    /// they were added.
    pub fn into_octets(mut self) -> Vec<u8> {
        let names = self.names.within(Message::new(), field::interned::EVENT_NAMES);
        let names = self.words.within(names, field::interned::ANNOTATION_NAMES);
        let names = self.texts.within(names, field::interned::ANNOTATION_TEXTS);
        let first = Message::new()
            .uint(field::packet::SEQUENCE, SEQUENCE)
            .uint(field::packet::SEQUENCE_FLAGS, NAMES_BEGIN)
            .message(field::packet::INTERNED, &names);
        let mut file = Message::new().message(field::trace::PACKET, &first);
        for track in &self.tracks {
            let packet = Message::new()
                .uint(field::packet::SEQUENCE, SEQUENCE)
                .message(field::packet::TRACK, track);
            file = file.message(field::trace::PACKET, &packet);
        }
        self.events.sort_by_key(|event| event.at);
        for Event { at, body, is_named } in &self.events {
            let packet = Message::new()
                .uint(field::packet::TIMESTAMP, *at)
                .uint(field::packet::SEQUENCE, SEQUENCE);
            let packet = match is_named {
                true => packet.uint(field::packet::SEQUENCE_FLAGS, NAMES_NEEDED),
                false => packet,
            };
            file = file
                .message(field::trace::PACKET, &packet.message(field::packet::TRACK_EVENT, body));
        }
        file.into_octets()
    }
}

fn event(kind: u64, track: Track) -> Message {
    Message::new().uint(field::event::TYPE, kind).uint(field::event::TRACK, track.0)
}
