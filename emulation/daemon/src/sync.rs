//! What the threads of a daemon share to exchange orders. proving/interleavings has other types in its place.

pub(crate) use emulation::alarm::Alarm;
pub(crate) use emulation::driver::orders::Order;
pub(crate) use std::sync::Arc;
pub(crate) use std::sync::atomic::{AtomicBool, Ordering};
pub(crate) use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
