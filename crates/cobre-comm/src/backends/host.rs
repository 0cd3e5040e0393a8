//! The name of this machine, as every backend reports it.

/// The host name.
pub(super) fn name() -> String {
    let uname = rustix::system::uname();
    uname.nodename().to_string_lossy().into_owned()
}
