//! Tables in the form that pandas, polars and pyarrow take as they are.

use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    ArrayRef, Float64Array, Int64Array, RecordBatch, RecordBatchIterator, StringArray,
};
use numpy::PyReadonlyArray1;
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
    fn array(&self) -> ArrayRef {
        match self {
            Self::Integers(values) => Arc::new(Int64Array::from_iter_values(
                values.as_array().iter().copied(),
            )),
            Self::Numbers(values) => Arc::new(Float64Array::from_iter_values(
                values.as_array().iter().copied(),
            )),
            Self::Texts(values) => Arc::new(StringArray::from_iter_values(values)),
        }
    }
}

/// The stream of the Arrow PyCapsule interface over these columns.
#[pyfunction]
pub(crate) fn arrow_stream<'py>(
    py: Python<'py>,
    columns: Vec<(String, Column<'py>)>,
) -> PyResult<Bound<'py, PyCapsule>> {
    let columns = columns
        .iter()
        .map(|(name, column)| (name.as_str(), column.array()));
    let batch = RecordBatch::try_from_iter(columns)
        .map_err(|error| PyValueError::new_err(error.to_string()))?;
    let schema = batch.schema();
    let reader = RecordBatchIterator::new([Ok(batch)], schema);
    let stream = FFI_ArrowArrayStream::new(Box::new(reader));
    PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
}
