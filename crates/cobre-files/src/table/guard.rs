//! Panics of the Parquet library as errors.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

use parquet::errors::ParquetError;

thread_local! {
    /// True if this thread is inside [`guard`], where panics are errors that somebody reports.
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Installs, once per process, a panic hook that is silent on threads inside [`guard`] and passes all other
/// panics to the hook that was there before.
fn install_hook() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |info| {
            if !GUARDED.try_with(Cell::get).unwrap_or(false) {
                before(info);
            }
        }));
    });
}

/// Calls the Parquet library; an error or a panic of it comes back in words, and nothing is printed.
pub(super) fn guard<T>(call: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, String> {
    install_hook();
    let outer = GUARDED.replace(true);
    // What the call has touched is dropped or never used again after a panic.
    let result = catch_unwind(AssertUnwindSafe(call));
    GUARDED.set(outer);
    match result {
        Ok(result) => result.map_err(|error| error.to_string()),
        Err(panic) => Err(format!(
            "its bytes contradict each other ({})",
            told(&*panic)
        )),
    }
}

/// The message of a panic.
fn told(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    let owned = || panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(owned).unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In a process of its own: the panic hook is the process's, and other tests install the guard's.
    #[test]
    fn a_panic_is_an_error_and_the_hook_before_hears_the_others_only() {
        use std::sync::atomic::{AtomicUsize, Ordering};
        static HEARD: AtomicUsize = AtomicUsize::new(0);
        const ALONE: &str = "--exact";
        if !std::env::args().any(|word| word == ALONE) {
            let test = "table::guard::tests::a_panic_is_an_error_and_the_hook_before_hears_the_others_only";
            let mut program = std::process::Command::new(std::env::current_exe().unwrap());
            let output = program.args([ALONE, test]).output().unwrap();
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(said.contains("1 passed"), "{output:?}");
            return;
        }
        set_hook(Box::new(|_| {
            HEARD.fetch_add(1, Ordering::Relaxed);
        }));
        let error = guard(|| -> Result<(), _> { panic!("index {} is out", 7) });
        assert_eq!(
            error.expect_err("it panics"),
            "its bytes contradict each other (index 7 is out)"
        );
        assert_eq!(HEARD.load(Ordering::Relaxed), 0);
        let other = std::thread::spawn(|| panic!("not ours")).join();
        assert!(other.is_err());
        assert_eq!(HEARD.load(Ordering::Relaxed), 1);
        drop(take_hook());
    }
}
