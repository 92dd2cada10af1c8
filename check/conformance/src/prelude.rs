//! What nearly every case uses: findings, runs and their scripts, the vocabulary of scripts and judgements, and shared counters.

pub use crate::case::{Failure, Finding, Level, Quantity, Result, Scripts, lies, near, same};
pub(crate) use crate::case::{bail, ensure};
pub use crate::fabric::Fabric;
pub use crate::record::{ALWAYS, Record};
pub use crate::shared::{Evidence, Shared};
pub use crate::stage::{Stage, play};
pub use crate::star::{Star, backlog, dilation, in_ms, measure, ms, traffic, us};
pub(crate) use crate::watched::hampered;
pub use bytes::BytesMut;
pub use proto::counters::{DeviceReading, DropReason, LaneCounters};
pub use proto::device::Device;
pub use proto::events::{Direction, EventKind};
pub use proto::frame::{Frame, FrameKind};
pub use proto::ids::{Ecn, Lid, PortNumber, Priority, QueuePairNumber, VirtualLane};
pub use proto::link::FlowControlConfig;
pub use proto::units::{BitRate, Bytes, Duration, Instant};
pub use proto::wire::classify::classify;
pub use std::collections::BTreeMap;
pub use std::sync::Arc;
pub use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
pub use testbed::{Bed, Bench, FcMode, Label, OFFER_MAX, OnLine, Script, Seen, Sent, Sightings};
