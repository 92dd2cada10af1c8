//! libibverbs, loaded at run time: a machine without it can build and run everything else.

use crate::layouts::{Address, Context, Cq, Mr, Opaque, Port, Qp, QpAttributes, QpInit};
use std::ffi::{CStr, CString, c_char, c_int, c_void};

/// The ABI that [`crate::types`] describes.
const NAME: &CStr = c"libibverbs.so.1";

macro_rules! functions {
    ($($name:ident: fn($($argument:ty),*) -> $result:ty;)*) => {
        /// The functions that the agent calls.
        #[derive(Clone, Copy)]
        pub struct Library {
            $(pub $name: unsafe extern "C" fn($($argument),*) -> $result,)*
        }

        impl Library {
            /// Loads the library; it stays loaded.
            ///
            /// # Errors
            /// The reason that the dynamic linker gives.
            pub fn load() -> Result<Library, String> {
                // SAFETY: the name ends with NUL. The library's initialisers are those of rdma-core.
                // Test: each_verb_passes_both_ways.
                let handle = unsafe { libc::dlopen(NAME.as_ptr(), libc::RTLD_NOW) };
                if handle.is_null() {
                    return Err(last_error());
                }
                Ok(Library {
                    $($name: {
                        let function = symbol(handle, stringify!($name))?;
                        // SAFETY: the header declares the function with this type. Test: each_verb_passes_both_ways.
                        unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($argument),*) -> $result>(function) }
                    },)*
                })
            }
        }
    };
}

functions! {
    ibv_get_device_list: fn(*mut c_int) -> *mut *mut Opaque;
    ibv_free_device_list: fn(*mut *mut Opaque) -> ();
    ibv_get_device_name: fn(*mut Opaque) -> *const c_char;
    ibv_open_device: fn(*mut Opaque) -> *mut Context;
    ibv_close_device: fn(*mut Context) -> c_int;
    ibv_query_port: fn(*mut Context, u8, *mut Port) -> c_int;
    ibv_query_gid: fn(*mut Context, u8, c_int, *mut [u8; 16]) -> c_int;
    ibv_alloc_pd: fn(*mut Context) -> *mut Opaque;
    ibv_dealloc_pd: fn(*mut Opaque) -> c_int;
    ibv_reg_mr: fn(*mut Opaque, *mut c_void, usize, c_int) -> *mut Mr;
    ibv_dereg_mr: fn(*mut Mr) -> c_int;
    ibv_create_cq: fn(*mut Context, c_int, *mut c_void, *mut Opaque, c_int) -> *mut Cq;
    ibv_destroy_cq: fn(*mut Cq) -> c_int;
    ibv_create_qp: fn(*mut Opaque, *mut QpInit) -> *mut Qp;
    ibv_modify_qp: fn(*mut Qp, *mut QpAttributes, c_int) -> c_int;
    ibv_query_qp: fn(*mut Qp, *mut QpAttributes, c_int, *mut QpInit) -> c_int;
    ibv_destroy_qp: fn(*mut Qp) -> c_int;
    ibv_create_ah: fn(*mut Opaque, *mut Address) -> *mut Opaque;
    ibv_destroy_ah: fn(*mut Opaque) -> c_int;
}

fn symbol(library: *mut c_void, name: &str) -> Result<*mut c_void, String> {
    let name = CString::new(name).expect("names of functions have no NUL");
    // SAFETY: the handle is that of a loaded library, and the name ends with NUL. Test: each_verb_passes_both_ways.
    let found = unsafe { libc::dlsym(library, name.as_ptr()) };
    if found.is_null() { Err(last_error()) } else { Ok(found) }
}

fn last_error() -> String {
    // SAFETY: the text is valid until the next call of the dynamic linker by this thread.
    // Test: a_function_that_a_library_lacks_has_a_reason.
    unsafe {
        let text = libc::dlerror();
        if text.is_null() {
            return "the dynamic linker names no reason".to_owned();
        }
        CStr::from_ptr(text).to_string_lossy().into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_that_a_library_lacks_has_a_reason() {
        // SAFETY: no name stands for the program itself, which is loaded.
        let own = unsafe { libc::dlopen(std::ptr::null(), libc::RTLD_NOW) };
        assert!(symbol(own, "malloc").is_ok());
        let why = symbol(own, "ibv_no_such_function").expect_err("it does not exist");
        assert!(why.contains("ibv_no_such_function"), "{why}");
    }
}
