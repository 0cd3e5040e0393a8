//! `cobre.Communicator`: the collectives on NumPy arrays, in place.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use cobre_comm::{CommBackend, Communicator as _, ErrorKind, LocalBackend, ReduceOp};
use numpy::{Element, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::element::{choose_element, kind, to_read, to_write, with_element};
use crate::errors;
use crate::job::{self, NamedJob};
use crate::shared::{RegionLayout, SharedArray};

/// The ranks of the job that this process belongs to, or this process alone.
#[pyclass(frozen, module = "cobre")]
pub(crate) struct Communicator {
    comm: Arc<CommBackend>,
}

impl Drop for Communicator {
    /// Leaves the job without the interpreter's lock: leaving waits for the other ranks, and these may be threads of this
    /// process that need it.
    fn drop(&mut self) {
        let alone = Arc::new(CommBackend::Local(LocalBackend));
        let comm = std::mem::replace(&mut self.comm, alone);
        Python::attach(|py| py.detach(move || drop(comm)));
    }
}

impl Communicator {
    /// The backend, for a run on it.
    pub(crate) fn backend_of_run(&self) -> Arc<CommBackend> {
        Arc::clone(&self.comm)
    }
}

fn operator(name: &str) -> PyResult<ReduceOp> {
    match name {
        "sum" => Ok(ReduceOp::Sum),
        "min" => Ok(ReduceOp::Min),
        "max" => Ok(ReduceOp::Max),
        _ => Err(PyValueError::new_err(format!(
            "allreduce: op={name:?}; \"sum\", \"min\" or \"max\" is expected"
        ))),
    }
}

#[pymethods]
impl Communicator {
    /// Joins the job that the environment makes this process a rank of; else it is alone. The second one of a process
    /// is of the same ranks as the first.
    #[new]
    fn new(py: Python<'_>) -> PyResult<Self> {
        Ok(Self {
            comm: job::join(py)?,
        })
    }

    /// Joins a job as this rank: with `name` on this machine in shared memory, with `tracker` and `secret` where a
    /// `cobre.Tracker` says, else over sockets, where rank 0 listens on `port` and the others reach it at `coordinator`.
    #[staticmethod]
    #[pyo3(signature = (rank, size, *, name=None, tracker=None, secret=None, coordinator=None, port=None, bind=None, secret_file=None, timeout_secs=None))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments")]
    fn join(
        py: Python<'_>,
        rank: usize,
        size: usize,
        name: Option<OsString>,
        tracker: Option<String>,
        secret: Option<Vec<u8>>,
        mut coordinator: Option<OsString>,
        mut port: Option<u16>,
        bind: Option<OsString>,
        secret_file: Option<PathBuf>,
        timeout_secs: Option<f64>,
    ) -> PyResult<Self> {
        let sockets = coordinator.is_some() || port.is_some() || bind.is_some();
        if [name.is_some(), sockets, tracker.is_some()]
            .iter()
            .filter(|given| **given)
            .count()
            != 1
        {
            return Err(PyValueError::new_err(
                "join: either name, of a job in shared memory, or tracker and secret, or coordinator and port, of one over sockets, is expected",
            ));
        }
        if tracker.is_some() != secret.is_some() || (secret.is_some() && secret_file.is_some()) {
            return Err(PyValueError::new_err(
                "join: tracker and secret belong together, as Tracker.worker_args() gives them",
            ));
        }
        let mut listener = None;
        if let (Some(tracker), Some(secret)) = (tracker, &secret) {
            let arguments = (rank, size, tracker, PyBytes::new(py, secret), timeout_secs);
            let place = py
                .import("cobre.tracker")?
                .call_method1("meet", arguments)?;
            coordinator = place.get_item("coordinator")?.extract()?;
            port = place.get_item("port")?.extract()?;
            listener = place.get_item("listener")?.extract()?;
        }
        let position = NamedJob {
            rank,
            size,
            name,
            coordinator,
            port,
            bind,
            secret_file,
            secret,
            listener,
            timeout_secs,
        };
        Ok(Self {
            comm: position.join(py)?,
        })
    }

    /// This process's number, from 0.
    #[getter]
    fn rank(&self) -> usize {
        self.comm.rank()
    }

    /// The number of ranks.
    #[getter]
    fn size(&self) -> usize {
        self.comm.size()
    }

    /// The backend's name.
    #[getter]
    fn backend(&self) -> &'static str {
        self.comm.name()
    }

    fn __repr__(&self) -> String {
        let (rank, size) = (self.comm.rank(), self.comm.size());
        format!(
            "<cobre.Communicator rank {rank} of {size} on {}>",
            self.comm.name()
        )
    }

    /// Combines the ranks' arrays element by element, in rank order; returns `recv`. A number instead of an array gives
    /// a number, a list a new array.
    #[pyo3(signature = (send, recv=None, op="sum"))]
    fn allreduce<'py>(
        &self,
        py: Python<'py>,
        send: &Bound<'py, PyAny>,
        recv: Option<Bound<'py, PyAny>>,
        op: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let op = operator(op)?;
        let is_array = send.cast::<PyUntypedArray>().is_ok();
        let send = &if is_array {
            send.clone()
        } else {
            as_array(send)?
        };
        let is_number = !is_array
            && send
                .cast::<PyUntypedArray>()
                .is_ok_and(|given| given.ndim() == 0);
        with_element!(send, "allreduce", "send", T => {
            let given = recv.is_some();
            let from = to_read::<T>("allreduce", "send", send)?;
            let recv = recv.map_or_else(|| zeros::<T>(py, from.shape()), Ok)?;
            let mut into = to_write::<T>("allreduce", "recv", &recv)?;
            let (from, into) = (from.as_slice()?, into.as_slice_mut()?);
            py.detach(|| self.comm.allreduce(from, into, op))
                .map_err(|error| errors::of(&error))?;
            if is_number && !given { recv.call_method0("item") } else { Ok(recv) }
        })
    }

    /// Gathers the ranks' arrays into `recv`, rank by rank; returns it. Without `counts` all ranks
    /// bring as much as this one; without `displs` blocks follow each other.
    #[pyo3(signature = (send, recv=None, counts=None, displs=None))]
    fn allgatherv<'py>(
        &self,
        py: Python<'py>,
        send: &Bound<'py, PyAny>,
        recv: Option<Bound<'py, PyAny>>,
        counts: Option<Vec<usize>>,
        displs: Option<Vec<usize>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        with_element!(send, "allgatherv", "send", T => {
            let from = to_read::<T>("allgatherv", "send", send)?;
            let from = from.as_slice()?;
            let counts = counts.unwrap_or_else(|| vec![from.len(); self.comm.size()]);
            let displs = displs.unwrap_or_else(|| starts(&counts));
            let recv = recv.map_or_else(|| zeros::<T>(py, &[end(&counts, &displs)]), Ok)?;
            let mut into = to_write::<T>("allgatherv", "recv", &recv)?;
            let into = into.as_slice_mut()?;
            py.detach(|| self.comm.allgatherv(from, into, &counts, &displs))
                .map_err(|error| errors::of(&error))?;
            Ok(recv)
        })
    }

    /// Gathers the ranks' arrays into `recv` of rank `root`, rank by rank; returns it there, and `None` on the other
    /// ranks, which need none. Counts and displacements as for `allgatherv`.
    #[pyo3(signature = (send, recv=None, counts=None, displs=None, root=0))]
    fn gatherv<'py>(
        &self,
        py: Python<'py>,
        send: &Bound<'py, PyAny>,
        recv: Option<Bound<'py, PyAny>>,
        counts: Option<Vec<usize>>,
        displs: Option<Vec<usize>>,
        root: usize,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        with_element!(send, "gatherv", "send", T => {
            let from = to_read::<T>("gatherv", "send", send)?;
            let from = from.as_slice()?;
            let counts = counts.unwrap_or_else(|| vec![from.len(); self.comm.size()]);
            if self.comm.rank() != root {
                let outcome = py.detach(|| self.comm.gatherv(from, &mut [], &counts, &[], root));
                return outcome.map(|()| None).map_err(|error| errors::of(&error));
            }
            let displs = displs.unwrap_or_else(|| starts(&counts));
            let recv = recv.map_or_else(|| zeros::<T>(py, &[end(&counts, &displs)]), Ok)?;
            let mut into = to_write::<T>("gatherv", "recv", &recv)?;
            let into = into.as_slice_mut()?;
            py.detach(|| self.comm.gatherv(from, into, &counts, &displs, root))
                .map_err(|error| errors::of(&error))?;
            Ok(Some(recv))
        })
    }

    /// Copies the array of rank `root` into every rank's; returns it.
    #[pyo3(signature = (buf, root=0))]
    fn broadcast<'py>(
        &self,
        py: Python<'py>,
        buf: Bound<'py, PyAny>,
        root: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        with_element!(&buf, "broadcast", "buf", T => {
            let mut both = to_write::<T>("broadcast", "buf", &buf)?;
            let both = both.as_slice_mut()?;
            py.detach(|| self.comm.broadcast(both, root))
                .map_err(|error| errors::of(&error))?;
            Ok(buf)
        })
    }

    /// Returns when every rank has called it.
    fn barrier(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.comm.barrier())
            .map_err(|error| errors::of(&error))
    }

    /// Gives up: every rank's pending and later collectives fail with this reason.
    fn abort(&self, py: Python<'_>, reason: &str) {
        py.detach(|| self.comm.abort(ErrorKind::Program, reason));
    }

    /// An array, one copy per machine where the backend can, that the leader writes and all read
    /// after a fence. Collective.
    #[pyo3(signature = (shape, dtype=None))]
    fn shared_array(
        &self,
        py: Python<'_>,
        shape: &Bound<'_, PyAny>,
        dtype: Option<Bound<'_, PyAny>>,
    ) -> PyResult<SharedArray> {
        let (shape, dtype) = (extents(shape)?, kind(py, dtype)?);
        SharedArray::create(py, &self.comm, RegionLayout::Led(shape), dtype)
    }

    /// A row of elements of which each rank writes its `counts[rank]`, and all read all after a
    /// fence. Collective.
    #[pyo3(signature = (counts, dtype=None))]
    fn partitioned_array(
        &self,
        py: Python<'_>,
        counts: Vec<usize>,
        dtype: Option<Bound<'_, PyAny>>,
    ) -> PyResult<SharedArray> {
        let dtype = kind(py, dtype)?;
        SharedArray::create(py, &self.comm, RegionLayout::Partitioned(counts), dtype)
    }
}

/// The most dimensions of an array that this side of NumPy knows.
const MAX_DIMENSIONS: usize = 32;

/// A shape as NumPy takes it: one number or several.
fn extents(shape: &Bound<'_, PyAny>) -> PyResult<Vec<usize>> {
    let one = shape.extract().map(|extent| vec![extent]);
    let extents: Vec<usize> = one.or_else(|_| shape.extract()).map_err(|_| {
        PyTypeError::new_err(format!(
            "shape={shape}: a whole number or several, none below 0, are expected"
        ))
    })?;
    if extents.len() > MAX_DIMENSIONS {
        return Err(PyValueError::new_err(format!(
            "shape: {} dimensions; at most {MAX_DIMENSIONS} are possible",
            extents.len()
        )));
    }
    Ok(extents)
}

/// A new array; where memory does not hold it NumPy says so.
fn zeros<'py, T: Element>(py: Python<'py>, shape: &[usize]) -> PyResult<Bound<'py, PyAny>> {
    let shape = pyo3::types::PyTuple::new(py, shape)?;
    py.import("numpy")?
        .call_method1("zeros", (shape, T::get_dtype(py)))
}

/// A number or a list as NumPy takes it.
fn as_array<'py>(given: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    given
        .py()
        .import("numpy")?
        .call_method1("asarray", (given,))
}

/// Elements that hold all blocks of these lengths at these places.
fn end(counts: &[usize], displs: &[usize]) -> usize {
    let blocks = counts.iter().zip(displs);
    let ends = blocks.map(|(count, start)| start.saturating_add(*count));
    ends.max().unwrap_or(0)
}

/// Where blocks of these lengths start that follow each other.
fn starts(counts: &[usize]) -> Vec<usize> {
    let ends = counts.iter().scan(0, |end: &mut usize, count| {
        let start = *end;
        *end = end.saturating_add(*count);
        Some(start)
    });
    ends.collect()
}
