//! Policies between Python, the engine and files.

use std::path::PathBuf;

use cobre_results::layout;
use cobre_sddp::{InitialState, Manifest, Policy, StoredCut, read_policy, write_policy};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;

use crate::errors;

/// A policy as Python holds it: what it belongs to, and a row per cut, to be minimised.
#[derive(IntoPyObject, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct PolicyFields<'py> {
    sense: String,
    risk: String,
    seed: u64,
    forward_passes: usize,
    iterations: usize,
    bound: f64,
    states: Vec<(String, f64)>,
    nodes: Vec<String>,
    start_dates: Vec<String>,
    sha256: String,
    /// The number of each cut's node.
    node: Bound<'py, PyArray1<i64>>,
    slot: Bound<'py, PyArray1<i64>>,
    intercept: Bound<'py, PyArray1<f64>>,
    /// A row of slopes per cut.
    gradient: Bound<'py, PyArray2<f64>>,
}

impl<'py> PolicyFields<'py> {
    pub(crate) fn new(py: Python<'py>, policy: Policy) -> PyResult<Self> {
        let Policy { manifest, cuts } = policy;
        let (mut node, mut slot) = (Vec::new(), Vec::new());
        let (mut intercept, mut gradient) = (Vec::new(), Vec::new());
        for (number, cuts) in cuts.into_iter().enumerate() {
            for cut in cuts {
                node.push((number as u64).cast_signed());
                slot.push(i64::from(cut.slot));
                intercept.push(cut.intercept);
                gradient.extend(cut.gradient);
            }
        }
        let shape = [intercept.len(), manifest.states.len()];
        let states = manifest.states.into_iter();
        Ok(Self {
            sense: manifest.sense,
            risk: manifest.risk,
            seed: manifest.seed,
            forward_passes: manifest.forward_passes,
            iterations: manifest.iterations,
            bound: manifest.bound,
            states: states.map(|state| (state.name, state.initial)).collect(),
            nodes: manifest.nodes,
            start_dates: manifest.start_dates,
            sha256: manifest.sha256,
            node: node.into_pyarray(py),
            slot: slot.into_pyarray(py),
            intercept: intercept.into_pyarray(py),
            gradient: gradient.into_pyarray(py).reshape(shape)?,
        })
    }

    pub(crate) fn policy(self) -> PyResult<Policy> {
        let (node, slot) = (self.node.readonly(), self.slot.readonly());
        let (intercept, gradient) = (self.intercept.readonly(), self.gradient.readonly());
        let (node, slot) = (node.as_array(), slot.as_array());
        let (intercept, gradient) = (intercept.as_array(), gradient.as_array());
        let lengths = [node.len(), slot.len(), intercept.len()];
        if lengths.iter().any(|length| *length != gradient.nrows()) {
            let finding = "the arrays of the policy have different lengths".to_owned();
            return Err(errors::invalid(&[finding]));
        }
        let mut cuts: Vec<Vec<StoredCut>> = vec![Vec::new(); self.nodes.len()];
        for (number, row) in gradient.outer_iter().enumerate() {
            let place = usize::try_from(node[number]).ok();
            let of_node = place.and_then(|place| cuts.get_mut(place));
            let (Some(of_node), Ok(slot)) = (of_node, u32::try_from(slot[number])) else {
                let finding = format!("cut {number} of the policy belongs to no node");
                return Err(errors::invalid(&[finding]));
            };
            of_node.push(StoredCut {
                slot,
                intercept: intercept[number],
                gradient: row.to_vec(),
            });
        }
        let states = self.states.into_iter();
        Ok(Policy {
            manifest: Manifest {
                format: Manifest::FORMAT,
                sense: self.sense,
                risk: self.risk,
                seed: self.seed,
                forward_passes: self.forward_passes,
                iterations: self.iterations,
                bound: self.bound,
                states: states
                    .map(|(name, initial)| InitialState { name, initial })
                    .collect(),
                nodes: self.nodes,
                start_dates: self.start_dates,
                cuts: cuts.iter().map(Vec::len).sum(),
                sha256: self.sha256,
            },
            cuts,
        })
    }
}

/// Reads a policy from its directory.
#[pyfunction]
pub(crate) fn load_policy(py: Python<'_>, path: PathBuf) -> PyResult<PolicyFields<'_>> {
    let policy = py.detach(|| {
        let inside = path.join(layout::POLICY);
        read_policy(if inside.is_dir() { &inside } else { &path })
    });
    PolicyFields::new(py, policy.map_err(|error| errors::of(&error))?)
}

/// Writes a policy into a directory.
#[pyfunction]
pub(crate) fn save_policy(py: Python<'_>, policy: PolicyFields<'_>, path: PathBuf) -> PyResult<()> {
    let policy = policy.policy()?;
    py.detach(|| write_policy(&path, &policy))
        .map_err(|error| errors::of(&error))
}
