#![expect(
    unsafe_code,
    reason = "calls libpmix, which is loaded at run time where it is installed"
)]
//! The functions of libpmix that a rank needs, loaded at run time. Layouts are those of the headers of versions 3 to 6, whose
//! library has one name (`libpmix.so.2`); a library of another version is not called.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::transmute;
use std::ptr::{null, null_mut};

/// The name of the library; its number is that of the binary interface.
const LIBRARY: &CStr = c"libpmix.so.2";
/// Versions whose layouts are those below.
const VERSIONS: std::ops::RangeInclusive<u32> = 3..=6;
/// Bytes of a namespace with its end.
const NAMESPACE_BYTES: usize = 256;
/// Stands for all ranks of a namespace.
const EVERY_RANK: u32 = u32::MAX - 1;
/// Types of values.
const STRING: u16 = 3;
const UINT32: u16 = 14;
/// The scope of a value that all ranks of the job see.
const GLOBAL: u8 = 3;
const RTLD_NOW: c_int = 2;

/// `pmix_proc_t`.
#[repr(C)]
struct PmixProcess {
    namespace: [u8; NAMESPACE_BYTES],
    rank: u32,
}

/// The union of a value, as far as it is used.
#[repr(C)]
#[derive(Clone, Copy)]
union Data {
    string: *const c_char,
    number: u32,
    /// Gives the union the alignment that it has in C.
    align: u64,
}

/// The beginning of `pmix_value_t`, whose size is that of the largest member of its union, and so differs between versions.
#[repr(C)]
struct ValueHead {
    kind: u16,
    data: Data,
}

/// A `pmix_value_t` of any version, to be read by the library.
#[repr(C)]
struct OwnValue {
    head: ValueHead,
    rest: [u64; 6],
}

type Init = unsafe extern "C" fn(*mut PmixProcess, *const c_void, usize) -> c_int;
type Finalize = unsafe extern "C" fn(*const c_void, usize) -> c_int;
type Put = unsafe extern "C" fn(u8, *const c_char, *const OwnValue) -> c_int;
type Commit = unsafe extern "C" fn() -> c_int;
type Fence = unsafe extern "C" fn(*const PmixProcess, usize, *const c_void, usize) -> c_int;
type Get = unsafe extern "C" fn(
    *const PmixProcess,
    *const c_char,
    *const c_void,
    usize,
    *mut *const ValueHead,
) -> c_int;
type Text = unsafe extern "C" fn() -> *const c_char;
type ErrorText = unsafe extern "C" fn(c_int) -> *const c_char;

unsafe extern "C" {
    fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dlerror() -> *const c_char;
    fn atexit(function: extern "C" fn()) -> c_int;
}

/// The library, which stays loaded.
#[derive(Clone, Copy)]
pub(super) struct PmixLibrary {
    init: Init,
    finalize: Finalize,
    put: Put,
    commit: Commit,
    fence: Fence,
    get: Get,
    error_text: ErrorText,
}

impl PmixLibrary {
    /// Loads it; with its version, as it says it.
    pub(super) fn load() -> Result<(Self, String), String> {
        // SAFETY: the name ends with a zero; the library's own start-up code is trusted as that of any library.
        let library = unsafe { dlopen(LIBRARY.as_ptr(), RTLD_NOW) };
        if library.is_null() {
            return Err(format!("{} (install libpmix2)", loader_error()));
        }
        // SAFETY: the function has this signature in every version.
        let version: Text = unsafe { transmute(symbol(library, c"PMIx_Get_version")?) };
        // SAFETY: the function can be called before any other.
        let version = text(unsafe { version() });
        let major = major(&version).filter(|major| VERSIONS.contains(major));
        if major.is_none() {
            return Err(format!(
                "\"{version}\" is no version from {} to {}",
                VERSIONS.start(),
                VERSIONS.end()
            ));
        }
        let functions = Self {
            // SAFETY: the function has this signature in these versions.
            init: unsafe { transmute::<*mut c_void, Init>(symbol(library, c"PMIx_Init")?) },
            // SAFETY: as above.
            finalize: unsafe {
                transmute::<*mut c_void, Finalize>(symbol(library, c"PMIx_Finalize")?)
            },
            // SAFETY: as above.
            put: unsafe { transmute::<*mut c_void, Put>(symbol(library, c"PMIx_Put")?) },
            // SAFETY: as above.
            commit: unsafe { transmute::<*mut c_void, Commit>(symbol(library, c"PMIx_Commit")?) },
            // SAFETY: as above.
            fence: unsafe { transmute::<*mut c_void, Fence>(symbol(library, c"PMIx_Fence")?) },
            // SAFETY: as above.
            get: unsafe { transmute::<*mut c_void, Get>(symbol(library, c"PMIx_Get")?) },
            // SAFETY: as above.
            error_text: unsafe {
                transmute::<*mut c_void, ErrorText>(symbol(library, c"PMIx_Error_string")?)
            },
        };
        Ok((functions, version))
    }

    /// Connects to the process manager; the namespace and the rank of this process.
    pub(super) fn init(&self) -> Result<(CString, u32), String> {
        let mut own = process(c"", u32::MAX);
        // SAFETY: the structure is the library's to fill, and there are no options.
        self.check("PMIx_Init", unsafe { (self.init)(&raw mut own, null(), 0) })?;
        let namespace = CStr::from_bytes_until_nul(&own.namespace);
        let namespace = namespace.map_err(|_| "PMIx_Init: the namespace has no end".to_owned())?;
        Ok((namespace.to_owned(), own.rank))
    }

    /// Disconnects.
    pub(super) fn finalize(&self) -> Result<(), String> {
        // SAFETY: there are no options.
        self.check("PMIx_Finalize", unsafe { (self.finalize)(null(), 0) })
    }

    /// Gives a text of this rank to all others.
    pub(super) fn put(&self, key: &CStr, text: &CStr) -> Result<(), String> {
        let value = OwnValue {
            head: ValueHead {
                kind: STRING,
                data: Data {
                    string: text.as_ptr(),
                },
            },
            rest: [0; 6],
        };
        // SAFETY: the value is as large as any version's, and the library copies it and its text before it returns.
        let status = unsafe { (self.put)(GLOBAL, key.as_ptr(), &raw const value) };
        self.check("PMIx_Put", status)?;
        // SAFETY: the function has no arguments.
        self.check("PMIx_Commit", unsafe { (self.commit)() })
    }

    /// Waits for all ranks of the namespace.
    pub(super) fn fence(&self, namespace: &CStr) -> Result<(), String> {
        let everyone = process(namespace, EVERY_RANK);
        // SAFETY: there is one structure, and there are no options.
        let status = unsafe { (self.fence)(&raw const everyone, 1, null(), 0) };
        self.check("PMIx_Fence", status)
    }

    /// The text that a rank has put.
    pub(super) fn text_of(
        &self,
        namespace: &CStr,
        rank: u32,
        key: &CStr,
    ) -> Result<String, String> {
        match self.value(&process(namespace, rank), key)? {
            // SAFETY: a value of this type holds a text, which is never freed.
            ValueHead { kind: STRING, data } => Ok(text(unsafe { data.string })),
            other => Err(format!(
                "PMIx_Get: {key:?} has type {}, no text",
                other.kind
            )),
        }
    }

    /// A number that the process manager knows of the job.
    pub(super) fn number(&self, namespace: &CStr, key: &CStr) -> Result<u32, String> {
        match self.value(&process(namespace, EVERY_RANK), key)? {
            // SAFETY: a value of this type holds a number.
            ValueHead { kind: UINT32, data } => Ok(unsafe { data.number }),
            other => Err(format!(
                "PMIx_Get: {key:?} has type {}, no number",
                other.kind
            )),
        }
    }

    fn value(&self, of: &PmixProcess, key: &CStr) -> Result<ValueHead, String> {
        let mut value: *const ValueHead = null_mut();
        // SAFETY: the key ends with a zero, there are no options, and the library sets the pointer.
        let status = unsafe { (self.get)(of, key.as_ptr(), null(), 0, &raw mut value) };
        self.check("PMIx_Get", status)?;
        if value.is_null() {
            return Err(format!("PMIx_Get: {key:?} has no value"));
        }
        // SAFETY: after success the pointer is to a value, which is longer than its head. It is not freed: a process asks
        // for three.
        Ok(unsafe { value.read() })
    }

    fn check(&self, function: &str, status: c_int) -> Result<(), String> {
        if status == 0 {
            return Ok(());
        }
        // SAFETY: the function takes any number and returns a constant.
        let meaning = text(unsafe { (self.error_text)(status) });
        Err(format!("{function}: {meaning} ({status})"))
    }
}

/// Has `function` called when this process exits in order.
pub(super) fn at_exit(function: extern "C" fn()) {
    // SAFETY: the function is there as long as the process. If it cannot be registered, the manager takes the end of the
    // process for a failure, which is seen.
    unsafe { atexit(function) };
}

fn process(namespace: &CStr, rank: u32) -> PmixProcess {
    let mut bytes = [0; NAMESPACE_BYTES];
    for (place, byte) in bytes[..NAMESPACE_BYTES - 1]
        .iter_mut()
        .zip(namespace.to_bytes())
    {
        *place = *byte;
    }
    PmixProcess {
        namespace: bytes,
        rank,
    }
}

/// The number of a version like `OpenPMIx 4.2.2rc2 (PMIx Standard: 4.2)`.
fn major(version: &str) -> Option<u32> {
    let digit = |word: &&str| word.starts_with(|first: char| first.is_ascii_digit());
    let number = version.split_whitespace().find(digit)?;
    number.split('.').next()?.parse().ok()
}

fn symbol(library: *mut c_void, name: &CStr) -> Result<*mut c_void, String> {
    // SAFETY: the library is open, and the name ends with a zero.
    let found = unsafe { dlsym(library, name.as_ptr()) };
    if found.is_null() {
        return Err(loader_error());
    }
    Ok(found)
}

fn loader_error() -> String {
    // SAFETY: the text is this thread's until its next call of the loader.
    text(unsafe { dlerror() })
}

/// A text of C on one line; of no text, nothing.
fn text(pointer: *const c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    // SAFETY: every caller has a text from the library or the loader, which ends with a zero.
    let found = unsafe { CStr::from_ptr(pointer) };
    crate::terminal::one_line(&found.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::{offset_of, size_of};

    #[test]
    fn structures_lie_as_the_standard_has_them() {
        assert_eq!(offset_of!(PmixProcess, rank), NAMESPACE_BYTES);
        assert_eq!(size_of::<PmixProcess>(), NAMESPACE_BYTES + 4);
        assert_eq!(offset_of!(ValueHead, data), align_of::<u64>());
        assert!(size_of::<OwnValue>() >= 32);
    }

    #[test]
    fn versions_are_read_from_what_libraries_say() {
        for (text, expected) in [
            (
                "OpenPMIx 5.0.11rc1 (PMIx Standard: 5.1, Stable ABI: 5.0)",
                Some(5),
            ),
            ("OpenPMIx 4.2.2rc2 (PMIx Standard: 4.2)", Some(4)),
            ("PMIx 3.1.5, repo rev: v3.1.5", Some(3)),
            ("PMIx", None),
            ("", None),
        ] {
            assert_eq!(major(text), expected, "{text}");
        }
    }
}
