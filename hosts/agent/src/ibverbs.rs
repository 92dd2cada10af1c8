//! Calls executed with libibverbs.

use crate::codes::{ALL, PORT, access, address, attributes, found, refusal, result, service};
use crate::layouts::{self, Capacity, QpInit};
use crate::library::Library;
use crate::memory::Pages;
use crate::objects::{self, Device, Memory, Object};
use crate::{posting, system};
use nix::errno::Errno;
use std::ffi::{CStr, c_int};
use verbs::VERSION;
use verbs::answer::{Answer, Port, Refusal};
use verbs::attributes::Handle;
use verbs::call::Call;
use verbs::line::Agent;
use verbs::objects::Objects;

/// The agent. It loads libibverbs with the first call that needs it.
#[derive(Default)]
pub struct Ibverbs {
    library: Option<Library>,
    objects: Objects<Object>,
}

/// `IBV_PORT_ACTIVE`.
const ACTIVE: u32 = 4;

impl Ibverbs {
    /// Ends all objects: the client has gone.
    pub fn clear(&mut self) {
        while let Some(newest) = self.objects.newest() {
            // What the system refuses to end stays until the process ends.
            if self.destroy(newest).is_err()
                && let Some(object) = self.objects.remove(newest)
            {
                std::mem::forget(object);
            }
        }
    }

    fn destroy(&mut self, handle: Handle) -> Result<(), Refusal> {
        let library = self.library()?;
        objects::end(&library, self.objects.to_end(handle)?)?;
        self.objects.remove(handle);
        Ok(())
    }

    fn library(&mut self) -> Result<Library, Refusal> {
        if let Some(library) = self.library {
            return Ok(library);
        }
        let library = Library::load().map_err(|why| Refusal::new("no-library", why))?;
        self.library = Some(library);
        Ok(library)
    }

    fn open(&mut self, wanted: Option<&str>) -> Result<Handle, Refusal> {
        let library = self.library()?;
        let devices = Devices::list(&library)?;
        let found = devices
            .names()
            .into_iter()
            .find(|(name, _)| wanted.is_none_or(|wanted| wanted == name.as_str()));
        let (name, device) = found.ok_or_else(|| {
            Refusal::new("ENODEV", format!("no device {}", wanted.unwrap_or("is there")))
        })?;
        // SAFETY: the device is in the list, which still exists. Test: each_verb_passes_both_ways.
        let context = made("open_device", unsafe { (library.ibv_open_device)(device) })?;
        Ok(self.objects.add(Object::Device(Device { name, context }), &[]))
    }

    fn register(&mut self, pd: Handle, length: u64, flags: c_int) -> Result<Answer, Refusal> {
        let library = self.library()?;
        let domain = objects::pd(&mut self.objects, pd)?;
        let pages = Pages::map(length)?;
        let start = pages.address() as *mut std::ffi::c_void;
        // SAFETY: the pages are mapped, and outlive the region: `Objects` ends it before it drops them.
        // Test: each_verb_passes_both_ways.
        let region = unsafe { (library.ibv_reg_mr)(domain, start, length as usize, flags) };
        let region = made("reg_mr", region)?;
        let address = pages.address();
        // SAFETY: libibverbs has just made the region. Test: each_verb_passes_both_ways.
        let rkey = unsafe { (*region).rkey };
        let handle = self.objects.add(Object::Memory(Memory { region, pages }), &[pd]);
        Ok(Answer::Memory { handle, address, rkey })
    }

    fn create_cq(&mut self, device: Handle, entries: u32) -> Result<Handle, Refusal> {
        let library = self.library()?;
        let context = objects::device(&mut self.objects, device)?.context;
        let entries =
            c_int::try_from(entries).map_err(|_| Refusal::limit("the queue is too long"))?;
        let null = std::ptr::null_mut();
        // SAFETY: the context is open; neither a user pointer nor an event channel is given.
        // Test: each_verb_passes_both_ways.
        let cq =
            unsafe { (library.ibv_create_cq)(context, entries, null, std::ptr::null_mut(), 0) };
        Ok(self.objects.add(Object::Cq(made("create_cq", cq)?), &[device]))
    }

    fn create_qp(&mut self, call: &Call) -> Result<Answer, Refusal> {
        let Call::CreateQp { pd, service: kind, send_cq, receive_cq, send_depth, receive_depth } =
            *call
        else {
            return Err(Refusal::invalid("not a queue pair"));
        };
        let library = self.library()?;
        let domain = objects::pd(&mut self.objects, pd)?;
        let mut init = QpInit {
            user: std::ptr::null_mut(),
            send_cq: objects::cq(&mut self.objects, send_cq)?,
            receive_cq: objects::cq(&mut self.objects, receive_cq)?,
            srq: std::ptr::null_mut(),
            capacity: Capacity {
                send_requests: send_depth,
                receive_requests: receive_depth,
                send_places: 1,
                receive_places: 1,
                inline_octets: 0,
            },
            kind: service(kind),
            signals_all: 1,
        };
        // SAFETY: all that `init` names exists, and libibverbs reads it during the call only.
        // Test: each_verb_passes_both_ways.
        let qp = made("create_qp", unsafe { (library.ibv_create_qp)(domain, &raw mut init) })?;
        // SAFETY: libibverbs has just made the queue pair. Test: each_verb_passes_both_ways.
        let number = unsafe { (*qp).number };
        let handle = self.objects.add(Object::Qp(qp, kind), &[pd, send_cq, receive_cq]);
        Ok(Answer::Qp { handle, number })
    }

    fn query_port(&mut self, device: Handle) -> Result<Answer, Refusal> {
        let library = self.library()?;
        let context = objects::device(&mut self.objects, device)?.context;
        let mut port = layouts::Port::default();
        // SAFETY: `port` has room for what the library writes. Test: each_verb_passes_both_ways.
        let returned = unsafe { (library.ibv_query_port)(context, PORT, &raw mut port) };
        result("query_port", returned)?;
        Ok(Answer::Port(Port {
            is_active: port.state == ACTIVE,
            active_mtu: port.active_mtu as u8,
            max_mtu: port.max_mtu as u8,
            gids: u32::try_from(port.gids).unwrap_or(0),
            message_max: port.message_max,
        }))
    }

    fn query_gid(&mut self, device: Handle, index: u8) -> Result<Answer, Refusal> {
        let library = self.library()?;
        let device = objects::device(&mut self.objects, device)?;
        let mut gid = [0; 16];
        // SAFETY: a GID has 16 octets. Test: each_verb_passes_both_ways.
        let returned =
            unsafe { (library.ibv_query_gid)(device.context, PORT, index.into(), &raw mut gid) };
        result("query_gid", returned)?;
        let kind = system::gid_kind(&device.name, index);
        Ok(Answer::Gid { gid: gid.into(), kind })
    }

    /// Calls about queue pairs and addresses.
    fn execute_pairs(&mut self, call: &Call) -> Result<Answer, Refusal> {
        let library = self.library()?;
        let objects = &mut self.objects;
        match call {
            Call::ModifyQp { qp, attributes: wanted } => {
                let (pair, _) = objects::qp(objects, *qp)?;
                let (mut set, mask) = attributes(wanted);
                // SAFETY: the table has the queue pair, and the library reads `set` during the call only.
                // Test: each_verb_passes_both_ways.
                let returned = unsafe { (library.ibv_modify_qp)(pair, &raw mut set, mask) };
                result("modify_qp", returned).map(|()| Answer::Done)
            }
            Call::QueryQp { qp } => {
                let (pair, _) = objects::qp(objects, *qp)?;
                let mut set = layouts::QpAttributes::default();
                let null = std::ptr::null_mut();
                let mut init = QpInit {
                    user: null,
                    send_cq: std::ptr::null_mut(),
                    receive_cq: std::ptr::null_mut(),
                    srq: std::ptr::null_mut(),
                    capacity: Capacity::default(),
                    kind: 0,
                    signals_all: 0,
                };
                // SAFETY: the table has the queue pair, and both structures are those that the library fills.
                // Test: each_verb_passes_both_ways.
                let returned =
                    unsafe { (library.ibv_query_qp)(pair, &raw mut set, ALL, &raw mut init) };
                result("query_qp", returned)?;
                Ok(Answer::Attributes(found(&set)))
            }
            Call::CreateAh { pd, address: vector } => {
                let domain = objects::pd(objects, *pd)?;
                let mut vector = address(vector);
                // SAFETY: the table has the domain, and the library reads `vector` during the call only.
                // Test: datagrams_arrive_unaltered_or_not_at_all.
                let ah = unsafe { (library.ibv_create_ah)(domain, &raw mut vector) };
                let ah = Object::Ah(made("create_ah", ah)?);
                Ok(Answer::Object { handle: objects.add(ah, &[*pd]) })
            }
            Call::PostSend { qp, work, count } => {
                let pair = objects::qp(objects, *qp)?;
                posting::send(objects, pair, work, *count).map(|()| Answer::Done)
            }
            Call::PostReceive { qp, work, count } => {
                let (pair, _) = objects::qp(objects, *qp)?;
                posting::receive(objects, pair, work, *count).map(|()| Answer::Done)
            }
            Call::Poll { cq, count, wait_ms } => {
                let cq = objects::cq(objects, *cq)?;
                posting::poll(cq, *count, *wait_ms).map(Answer::Completions)
            }
            _ => self.execute_memory(call),
        }
    }

    /// Calls about the content of memory.
    fn execute_memory(&mut self, call: &Call) -> Result<Answer, Refusal> {
        let region = verbs::memory::region(call);
        let region = region.ok_or_else(|| Refusal::unsupported("the agent cannot do that"))?;
        verbs::memory::execute(objects::memory(&mut self.objects, region)?.pages.octets(), call)
    }
}

impl Agent for Ibverbs {
    fn execute(&mut self, call: &Call) -> Result<Answer, Refusal> {
        if call.makes_object() {
            self.objects.has_room()?;
        }
        let object = |handle| Answer::Object { handle };
        match call {
            Call::Hello => {
                let library = self.library()?;
                let devices = Devices::list(&library)?.names();
                let devices = devices.into_iter().map(|(name, _)| name).collect();
                Ok(Answer::Hello { version: VERSION, agent: "libibverbs".to_owned(), devices })
            }
            Call::Clear => {
                self.clear();
                Ok(Answer::Done)
            }
            Call::OpenDevice { name } => self.open(name.as_deref()).map(object),
            Call::QueryPort { device } => self.query_port(*device),
            Call::QueryGid { device, index } => self.query_gid(*device, *index),
            Call::Counters { device } => Ok(Answer::Counters(system::counters(
                &objects::device(&mut self.objects, *device)?.name,
            ))),
            Call::AllocPd { device } => {
                let library = self.library()?;
                let context = objects::device(&mut self.objects, *device)?.context;
                // SAFETY: the context is open. Test: each_verb_passes_both_ways.
                let pd = made("alloc_pd", unsafe { (library.ibv_alloc_pd)(context) })?;
                Ok(object(self.objects.add(Object::Pd(pd), &[*device])))
            }
            Call::RegisterMemory { pd, length, access: wanted } => {
                self.register(*pd, *length, access(*wanted))
            }
            Call::CreateCq { device, entries } => self.create_cq(*device, *entries).map(object),
            Call::CreateQp { .. } => self.create_qp(call),
            Call::Destroy { object } => self.destroy(*object).map(|()| Answer::Done),
            _ => self.execute_pairs(call),
        }
    }
}

impl Drop for Ibverbs {
    fn drop(&mut self) {
        self.clear();
    }
}

/// The list of devices, as long as it is used.
struct Devices<'a> {
    library: &'a Library,
    list: *mut *mut layouts::Opaque,
    count: usize,
}

impl<'a> Devices<'a> {
    fn list(library: &'a Library) -> Result<Devices<'a>, Refusal> {
        let mut count = 0;
        // SAFETY: the library writes the number of entries. Test: each_verb_passes_both_ways.
        let list =
            made("get_device_list", unsafe { (library.ibv_get_device_list)(&raw mut count) })?;
        Ok(Devices { library, list, count: usize::try_from(count).unwrap_or(0) })
    }

    fn names(&self) -> Vec<(String, *mut layouts::Opaque)> {
        let name = |at| {
            // SAFETY: the list has `count` devices, and each has a name that ends with NUL.
            // Test: each_verb_passes_both_ways.
            unsafe {
                let device = *self.list.add(at);
                let name = CStr::from_ptr((self.library.ibv_get_device_name)(device));
                (name.to_string_lossy().into_owned(), device)
            }
        };
        (0..self.count).map(name).collect()
    }
}

impl Drop for Devices<'_> {
    fn drop(&mut self) {
        // SAFETY: the list is the library's, and this is its end. Test: each_verb_passes_both_ways.
        unsafe { (self.library.ibv_free_device_list)(self.list) };
    }
}

/// What a function of the library has made, unless it is null.
fn made<T>(what: &str, pointer: *mut T) -> Result<*mut T, Refusal> {
    if pointer.is_null() { Err(refusal(what, Errno::last_raw())) } else { Ok(pointer) }
}
