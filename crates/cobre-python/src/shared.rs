//! `cobre.SharedArray`: a shared region as NumPy arrays.
#![expect(
    unsafe_code,
    reason = "a NumPy array over memory that it does not own has no safe form"
)]

use std::sync::{Mutex, PoisonError};

use cobre_comm::{CommBackend, CommError, CommRegion, SharedMemoryProvider, SharedRegion};
use numpy::ndarray::{ArrayViewD, ArrayViewMutD};
use numpy::{Element, PyArrayDyn};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyWeakrefMethods, PyWeakrefReference};

use crate::element::{Kind, elements};
use crate::errors;

/// The kind of a region: which rank writes which part.
pub(crate) enum RegionLayout {
    /// The leader writes all of an array of this shape.
    Led(Vec<usize>),
    /// Each rank writes as many elements as this says.
    Partitioned(Vec<usize>),
}

#[derive(Clone, Copy, PartialEq)]
enum Epoch {
    Write,
    Read,
    /// A fence has failed; nothing may be touched.
    Over,
}

/// An array that ranks share, in a write epoch or a read epoch; `fence` passes from one to the other.
#[pyclass(frozen, weakref, module = "cobre")]
pub(crate) struct SharedArray {
    inside: Mutex<RegionState>,
    /// The shape that readers see.
    shape: Vec<usize>,
    kind: Kind,
    /// The shape that this rank writes; `None` if it writes nothing.
    own: Option<Vec<usize>>,
}

struct RegionState {
    region: Region,
    epoch: Epoch,
    /// The array handed out in this write epoch, while somebody has it: the fence makes it read-only.
    view: Option<Py<PyWeakrefReference>>,
}

macro_rules! region {
    ($($variant:ident($element:ty) = $name:literal,)*) => {
        enum Region {
            $($variant(CommRegion<$element>),)*
        }

        impl Region {
            /// A region of elements of this type.
            fn create(comm: &CommBackend, layout: &RegionLayout, kind: Kind) -> Result<Self, CommError> {
                match kind {
                    $(Kind::$variant => create::<$element>(comm, layout).map(Self::$variant),)*
                }
            }

            fn fence(&mut self) -> Result<(), CommError> {
                match self {
                    $(Self::$variant(region) => region.fence(),)*
                }
            }

            fn own_part<'py>(&mut self, shape: &[usize], owner: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                match self {
                    $(Self::$variant(region) => writable(region, shape, owner),)*
                }
            }

            fn whole<'py>(&self, shape: &[usize], owner: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                match self {
                    $(Self::$variant(region) => readable(region, shape, owner),)*
                }
            }
        }
    };
}
elements! { region }

fn create<T: cobre_comm::CommData>(
    comm: &CommBackend,
    layout: &RegionLayout,
) -> Result<CommRegion<T>, CommError> {
    match layout {
        RegionLayout::Led(shape) => {
            // More elements than a number can tell are more than memory has, which is said there.
            let count = shape
                .iter()
                .try_fold(1_usize, |count, extent| count.checked_mul(*extent));
            comm.create_shared_region(count.unwrap_or(usize::MAX))
        }
        RegionLayout::Partitioned(counts) => comm.create_partitioned_region(counts),
    }
}

fn writable<'py, T: Element + cobre_comm::CommData>(
    region: &mut CommRegion<T>,
    shape: &[usize],
    owner: Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let view = ArrayViewMutD::from_shape(shape, region.as_mut_slice())
        .map_err(|error| PyValueError::new_err(error.to_string()))?;
    // SAFETY: the region's memory stays where it is until `owner`, whom the array holds, is dropped.
    Ok(unsafe { PyArrayDyn::borrow_from_array(&view, owner) }.into_any())
}

fn readable<'py, T: Element + cobre_comm::CommData>(
    region: &CommRegion<T>,
    shape: &[usize],
    owner: Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let view = ArrayViewD::from_shape(shape, region.as_slice())
        .map_err(|error| PyValueError::new_err(error.to_string()))?;
    // SAFETY: as above; it is made read-only before anybody else sees it.
    let array = unsafe { PyArrayDyn::borrow_from_array(&view, owner) };
    read_only(&array)?;
    Ok(array.into_any())
}

fn read_only(array: &Bound<'_, PyAny>) -> PyResult<()> {
    array.getattr("flags")?.setattr("writeable", false)
}

impl SharedArray {
    pub(crate) fn create(
        py: Python<'_>,
        comm: &CommBackend,
        layout: RegionLayout,
        kind: Kind,
    ) -> PyResult<Self> {
        use cobre_comm::Communicator as _;
        let created = py.detach(|| Region::create(comm, &layout, kind));
        let region = created.map_err(|error| errors::of(&error))?;
        let (shape, own) = match layout {
            RegionLayout::Led(shape) => (shape.clone(), comm.is_leader().then_some(shape)),
            RegionLayout::Partitioned(counts) => {
                (vec![counts.iter().sum()], Some(vec![counts[comm.rank()]]))
            }
        };
        let inside = RegionState {
            region,
            epoch: Epoch::Write,
            view: None,
        };
        Ok(Self {
            inside: Mutex::new(inside),
            shape,
            kind,
            own,
        })
    }

    /// The contents, for `look`. While a thread is in a fence the others wait here, and let the
    /// interpreter go on meanwhile.
    fn inside<T>(&self, py: Python<'_>, look: impl FnOnce(&mut RegionState) -> T) -> T {
        let inside = self.inside.lock_py_attached(py);
        look(&mut inside.unwrap_or_else(PoisonError::into_inner))
    }
}

#[pymethods]
impl SharedArray {
    /// In a read epoch the whole, read-only; in a write epoch what this rank may write.
    #[getter]
    fn array<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let (this, py) = (slf.get(), slf.py());
        let owner = slf.clone().into_any();
        this.inside(py, |inside| match (inside.epoch, &this.own) {
            (Epoch::Read, _) => inside.region.whole(&this.shape, owner),
            (Epoch::Write, Some(own)) => {
                let view = inside.view.as_ref();
                if let Some(array) = view.and_then(|view| view.bind(py).upgrade()) {
                    return Ok(array);
                }
                let array = inside.region.own_part(own, owner)?;
                inside.view = Some(PyWeakrefReference::new(&array)?.unbind());
                Ok(array)
            }
            (Epoch::Write, None) => Err(PyValueError::new_err(
                "the leader writes this array; call fence() on all ranks, then read it",
            )),
            (Epoch::Over, _) => Err(PyValueError::new_err(
                "a fence of this array has failed; it cannot be used any more",
            )),
        })
    }

    /// True in a write epoch.
    #[getter]
    fn writing(&self, py: Python<'_>) -> bool {
        self.inside(py, |inside| inside.epoch == Epoch::Write)
    }

    /// The shape of the whole.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyTuple>> {
        pyo3::types::PyTuple::new(py, &self.shape)
    }

    /// The name of the elements' type.
    #[getter]
    fn dtype(&self) -> &'static str {
        self.kind.name()
    }

    /// Ends the epoch on all ranks and begins the other. Collective.
    fn fence(&self, py: Python<'_>) -> PyResult<()> {
        let view = self.inside(py, |inside| inside.view.take());
        if let Some(array) = view.and_then(|view| view.bind(py).upgrade()) {
            read_only(&array)?;
        }
        let fenced = py.detach(|| {
            let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
            let fenced = inside.region.fence();
            inside.epoch = match (&fenced, inside.epoch) {
                (Ok(()), Epoch::Write) => Epoch::Read,
                (Ok(()), Epoch::Read) => Epoch::Write,
                _ => Epoch::Over,
            };
            fenced
        });
        fenced.map_err(|error| errors::of(&error))
    }

    fn __repr__(&self) -> String {
        format!(
            "<cobre.SharedArray {:?} of {}>",
            self.shape,
            self.kind.name()
        )
    }
}
