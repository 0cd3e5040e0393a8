//! `cobre.Communicator`: the collectives on NumPy arrays, in place.

use cobre_comm::{
    BackendKind, CommBackend, Communicator as _, ErrorKind, ReduceOp, create_communicator,
};
use numpy::{Element, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::element::{choose_element, kind, to_read, to_write, with_element};
use crate::errors;
use crate::shared::{RegionLayout, SharedArray};

/// The ranks of the job that this process belongs to, or this process alone.
#[pyclass(frozen, module = "cobre")]
pub(crate) struct Communicator {
    comm: CommBackend,
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
    /// Joins the job that the environment makes this process a rank of; else it is alone.
    #[new]
    fn new(py: Python<'_>) -> PyResult<Self> {
        let connected = py.detach(|| BackendKind::from_env().and_then(create_communicator));
        let comm = connected.map_err(|error| errors::of(&error))?;
        Ok(Self { comm })
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

    /// Combines the ranks' arrays element by element, in rank order; returns `recv`.
    #[pyo3(signature = (send, recv=None, op="sum"))]
    fn allreduce<'py>(
        &self,
        py: Python<'py>,
        send: &Bound<'py, PyAny>,
        recv: Option<Bound<'py, PyAny>>,
        op: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let op = operator(op)?;
        with_element!(send, "allreduce", "send", T => {
            let from = to_read::<T>("allreduce", "send", send)?;
            let recv = recv.map_or_else(|| zeros::<T>(py, from.shape()), Ok)?;
            let mut into = to_write::<T>("allreduce", "recv", &recv)?;
            let (from, into) = (from.as_slice()?, into.as_slice_mut()?);
            py.detach(|| self.comm.allreduce(from, into, op))
                .map_err(|error| errors::of(&error))?;
            Ok(recv)
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
            let recv = recv.map_or_else(|| {
                let ends = counts.iter().zip(&displs).map(|(count, start)| start.saturating_add(*count));
                zeros::<T>(py, &[ends.max().unwrap_or(0)])
            }, Ok)?;
            let mut into = to_write::<T>("allgatherv", "recv", &recv)?;
            let into = into.as_slice_mut()?;
            py.detach(|| self.comm.allgatherv(from, into, &counts, &displs))
                .map_err(|error| errors::of(&error))?;
            Ok(recv)
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

/// Where blocks of these lengths start that follow each other.
fn starts(counts: &[usize]) -> Vec<usize> {
    let ends = counts.iter().scan(0, |end: &mut usize, count| {
        let start = *end;
        *end = end.saturating_add(*count);
        Some(start)
    });
    ends.collect()
}
