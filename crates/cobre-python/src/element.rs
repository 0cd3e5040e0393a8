//! The number types of NumPy arrays that ranks exchange, and what an array must be for that.

use numpy::{
    BorrowError, Element, PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn, PyReadwriteArrayDyn,
    PyUntypedArray, PyUntypedArrayMethods,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

/// Calls `$then!` with one row per type: variant, type, NumPy's name. The first is found fastest.
macro_rules! elements {
    ($then:ident $($more:tt)*) => {
        $then! { $($more)*
            F64(f64) = "float64",
            I64(i64) = "int64",
            F32(f32) = "float32",
            I32(i32) = "int32",
            U64(u64) = "uint64",
            U32(u32) = "uint32",
            I16(i16) = "int16",
            U16(u16) = "uint16",
            I8(i8) = "int8",
            U8(u8) = "uint8",
        }
    };
}
pub(crate) use elements;

macro_rules! kinds {
    ($($variant:ident($element:ty) = $name:literal,)*) => {
        /// NumPy's names of the types.
        const NAMES: &[&str] = &[$($name),*];

        /// One of the types.
        #[derive(Clone, Copy)]
        pub(crate) enum Kind {
            $($variant,)*
        }

        impl Kind {
            /// NumPy's name of it.
            pub(crate) fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            fn named(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }
    };
}
elements! { kinds }

/// Runs `$body` with `$element` standing for the type of `$array`'s elements.
macro_rules! with_element {
    ($array:expr, $call:expr, $argument:expr, $element:ident => $body:expr) => {
        $crate::element::elements! {
            choose_element [$array, $call, $argument, $element => $body]
        }
    };
}
macro_rules! choose_element {
    ([$array:expr, $call:expr, $argument:expr, $element:ident => $body:expr]
        $($variant:ident($candidate:ty) = $name:literal,)*) => {
        $(if $array.cast::<numpy::PyArrayDyn<$candidate>>().is_ok() {
            type $element = $candidate;
            $body
        } else)* {
            Err($crate::element::wrong_type($call, $argument, $array))
        }
    };
}
pub(crate) use choose_element;
pub(crate) use with_element;

/// The type that NumPy takes this for; without one it is `float64`.
pub(crate) fn kind(py: Python<'_>, dtype: Option<Bound<'_, PyAny>>) -> PyResult<Kind> {
    let dtype = py.import("numpy")?.call_method1("dtype", (dtype,))?;
    let name: String = dtype.getattr("name")?.extract()?;
    let native = dtype.getattr("isnative")?.is_truthy()?;
    Kind::named(&name).filter(|_| native).ok_or_else(|| {
        let names = NAMES.join(", ");
        PyTypeError::new_err(format!("dtype {dtype}: one of {names} is needed"))
    })
}

/// An array of a type that cannot be exchanged, or no array.
pub(crate) fn wrong_type(call: &str, argument: &str, given: &Bound<'_, PyAny>) -> PyErr {
    let names = NAMES.join(", ");
    let message = match given.cast::<PyUntypedArray>() {
        Ok(array) => format!(
            "{call}: {argument} has dtype {}; one of {names} is needed",
            array.dtype()
        ),
        Err(_) => format!(
            "{call}: {argument} is a {}; a NumPy array is needed",
            given.get_type()
        ),
    };
    PyTypeError::new_err(message)
}

fn typed<'a, 'py, T: Element>(
    call: &str,
    argument: &str,
    given: &'a Bound<'py, PyAny>,
) -> PyResult<&'a Bound<'py, PyArrayDyn<T>>> {
    let Ok(array) = given.cast::<PyArrayDyn<T>>() else {
        let wanted = T::get_dtype(given.py());
        let message = match given.cast::<PyUntypedArray>() {
            Ok(array) => format!(
                "{call}: {argument} has dtype {}, but the other array has {wanted}",
                array.dtype()
            ),
            Err(_) => return Err(wrong_type(call, argument, given)),
        };
        return Err(PyTypeError::new_err(message));
    };
    if !array.is_c_contiguous() {
        return Err(PyValueError::new_err(format!(
            "{call}: {argument} is not contiguous in memory; numpy.ascontiguousarray makes a copy \
             that is"
        )));
    }
    if !array.data().is_aligned() {
        return Err(PyValueError::new_err(format!(
            "{call}: {argument} is not aligned in memory; its copy() is"
        )));
    }
    Ok(array)
}

fn not_lent(call: &str, argument: &str, why: &BorrowError) -> PyErr {
    PyValueError::new_err(match why {
        BorrowError::NotWriteable => format!("{call}: {argument} is read-only"),
        _ => format!("{call}: {argument} shares memory with another array of a call under way"),
    })
}

/// An array to be read in place.
pub(crate) fn to_read<'py, T: Element>(
    call: &str,
    argument: &str,
    given: &Bound<'py, PyAny>,
) -> PyResult<PyReadonlyArrayDyn<'py, T>> {
    let array = typed(call, argument, given)?;
    array
        .try_readonly()
        .map_err(|why| not_lent(call, argument, &why))
}

/// An array to be written in place.
pub(crate) fn to_write<'py, T: Element>(
    call: &str,
    argument: &str,
    given: &Bound<'py, PyAny>,
) -> PyResult<PyReadwriteArrayDyn<'py, T>> {
    let array = typed(call, argument, given)?;
    array
        .try_readwrite()
        .map_err(|why| not_lent(call, argument, &why))
}
