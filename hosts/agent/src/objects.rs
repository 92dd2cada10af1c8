//! The objects of libibverbs that a client has made.

use crate::codes::result;
use crate::layouts::{Context, Cq, Mr, Opaque, Qp};
use crate::library::Library;
use crate::memory::Pages;
use verbs::answer::Refusal;
use verbs::attributes::{Handle, Service};
use verbs::objects::Objects;

/// An object.
pub enum Object {
    /// An open device.
    Device(Device),
    /// A protection domain.
    Pd(*mut Opaque),
    /// A memory region.
    Memory(Memory),
    /// A completion queue.
    Cq(*mut Cq),
    /// A queue pair.
    Qp(*mut Qp, Service),
    /// An address handle.
    Ah(*mut Opaque),
}

/// An open device.
pub struct Device {
    /// Its name.
    pub name: String,
    /// As libibverbs has it.
    pub context: *mut Context,
}

/// A memory region.
pub struct Memory {
    /// As libibverbs has it.
    pub region: *mut Mr,
    /// Its octets.
    pub pages: Pages,
}

/// A function that finds an object of one kind.
macro_rules! find {
    ($(#[$doc:meta])* $name:ident, $word:literal, $kind:pat => $value:expr, $result:ty) => {
        $(#[$doc])*
        pub fn $name(objects: &mut Objects<Object>, handle: Handle) -> Result<$result, Refusal> {
            objects.find(handle, $word, |object| match object {
                $kind => Some($value),
                _ => None,
            })
        }
    };
}

find!(
    /// A device.
    device, "device", Object::Device(device) => device, &mut Device);
find!(
    /// A protection domain.
    pd, "protection domain", Object::Pd(pd) => *pd, *mut Opaque);
find!(
    /// A memory region.
    memory, "memory region", Object::Memory(memory) => memory, &mut Memory);
find!(
    /// A completion queue.
    cq, "completion queue", Object::Cq(cq) => *cq, *mut Cq);
find!(
    /// A queue pair.
    qp, "queue pair", Object::Qp(qp, service) => (*qp, *service), (*mut Qp, Service));
find!(
    /// An address handle.
    ah, "address handle", Object::Ah(ah) => *ah, *mut Opaque);

/// Ends an object. Nothing may need it, and it must not be used again.
///
/// # Errors
/// If the system refuses.
pub fn end(library: &Library, object: &Object) -> Result<(), Refusal> {
    // SAFETY: libibverbs has made the object, and the caller keeps to the rule above. Test: each_verb_passes_both_ways.
    unsafe {
        match object {
            Object::Device(device) => result("close", (library.ibv_close_device)(device.context)),
            Object::Pd(pd) => result("dealloc_pd", (library.ibv_dealloc_pd)(*pd)),
            Object::Memory(memory) => result("dereg_mr", (library.ibv_dereg_mr)(memory.region)),
            Object::Cq(cq) => result("destroy_cq", (library.ibv_destroy_cq)(*cq)),
            Object::Qp(qp, _) => result("destroy_qp", (library.ibv_destroy_qp)(*qp)),
            Object::Ah(ah) => result("destroy_ah", (library.ibv_destroy_ah)(*ah)),
        }
    }
}
