//! Tables in the form that pandas, polars and pyarrow take as they are.
#![expect(
    unsafe_code,
    reason = "an Arrow array over memory that NumPy owns has no safe form"
)]

use std::panic::AssertUnwindSafe;
use std::ptr::NonNull;
use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    ArrayRef, Float64Array, Int64Array, RecordBatch, RecordBatchIterator, StringArray,
};
use arrow_buffer::{ArrowNativeType, Buffer, ScalarBuffer};
use numpy::{Element, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// A column of a table.
#[derive(FromPyObject)]
pub(crate) enum Column<'py> {
    Integers(PyReadonlyArray1<'py, i64>),
    /// NaN stands for no number where `None` would.
    Numbers(PyReadonlyArray1<'py, f64>),
    Texts(Vec<String>),
}

impl Column<'_> {
    fn array(&self) -> PyResult<ArrayRef> {
        Ok(match self {
            Self::Integers(values) => Arc::new(Int64Array::new(lent(values)?, None)),
            Self::Numbers(values) => Arc::new(Float64Array::new(lent(values)?, None)),
            Self::Texts(values) => Arc::new(StringArray::from_iter_values(values)),
        })
    }
}

/// The numbers of a column where they are.
fn lent<T: Element + ArrowNativeType>(
    values: &PyReadonlyArray1<'_, T>,
) -> PyResult<ScalarBuffer<T>> {
    let numbers = values.as_slice()?;
    let (start, bytes) = (NonNull::from(numbers).cast(), size_of_val(numbers));
    let owner = Arc::new(AssertUnwindSafe((**values).clone().unbind()));
    // SAFETY: these bytes stay where they are as long as their owner, whom the buffer holds, and a
    // column of a table is read-only.
    let buffer = unsafe { Buffer::from_custom_allocation(start, bytes, owner) };
    Ok(buffer.into())
}

/// The stream of the Arrow PyCapsule interface over these columns.
#[pyfunction]
pub(crate) fn arrow_stream<'py>(
    py: Python<'py>,
    columns: Vec<(String, Column<'py>)>,
) -> PyResult<Bound<'py, PyCapsule>> {
    let columns = columns
        .iter()
        .map(|(name, column)| Ok((name.as_str(), column.array()?)));
    let columns: PyResult<Vec<(&str, ArrayRef)>> = columns.collect();
    let batch = RecordBatch::try_from_iter(columns?)
        .map_err(|error| PyValueError::new_err(error.to_string()))?;
    let schema = batch.schema();
    let reader = RecordBatchIterator::new([Ok(batch)], schema);
    let stream = FFI_ArrowArrayStream::new(Box::new(reader));
    PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
}
