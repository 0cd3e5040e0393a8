//! The native part of the Python package `cobre`: what needs the engine, the communication layer
//! or the launcher. What Python can say itself is said in `python/cobre`.
#![allow(
    clippy::needless_pass_by_value,
    reason = "what Python passes is made for the call, and belongs to it"
)]

mod communicator;
mod element;
mod errors;
mod job;
mod policy;
mod results;
mod run;
mod shared;
mod source;
mod table;
mod workers;

use pyo3::prelude::*;

/// The native part of `cobre`.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::communicator::Communicator;
    #[pymodule_export]
    use super::job::{job_backend, leave_jobs};
    #[pymodule_export]
    use super::policy::{load_policy, save_policy};
    #[pymodule_export]
    use super::results::{is_cost_kind, read_table, write_report};
    #[pymodule_export]
    use super::run::{check, simulate, train};
    #[pymodule_export]
    use super::shared::SharedArray;
    #[pymodule_export]
    use super::source::{describe, usable_processors};
    #[pymodule_export]
    use super::table::arrow_stream;
    #[pymodule_export]
    use super::workers::run_workers;

    use numpy::{PyArray1, PyArrayMethods};

    use super::{Bound, PyModule, PyResult};

    /// Finds the functions of NumPy. Where that fails the import fails: the first array would panic, also
    /// when it is Ctrl-C that comes between.
    #[pymodule_init]
    fn find_numpy(module: &Bound<'_, PyModule>) -> PyResult<()> {
        numpy::get_array_module(module.py())?;
        PyArray1::<f64>::zeros(module.py(), 1, false).readonly();
        Ok(())
    }
}
