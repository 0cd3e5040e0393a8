//! The region with a fault.

use cobre_comm::{CommData, CommError, SharedRegion};

use super::fault::Fault;
use super::outcome::kept_back;

/// A region that is right but for one fault.
#[derive(Debug)]
pub struct MutantRegion<T, R> {
    inner: R,
    fault: Option<Fault>,
    readable: bool,
    poisoned: bool,
    /// Contents of the read epoch before.
    shown: Vec<T>,
    /// Contents of this read epoch.
    current: Vec<T>,
    /// Where writes go that must not be.
    stray: Vec<T>,
}

impl<T: CommData, R: SharedRegion<T>> MutantRegion<T, R> {
    pub(super) fn new(mut inner: R, fault: Option<Fault>) -> Self {
        let ones = bytemuck::cast_slice_mut::<T, u8>(inner.as_mut_slice());
        match fault {
            Some(Fault::RegionNotZeroed) => ones.fill(1),
            Some(Fault::RegionEndNotZeroed) if ones.len() > 4096 => ones[4096] = 1,
            _ => {}
        }
        Self {
            inner,
            fault,
            readable: false,
            poisoned: false,
            shown: Vec::new(),
            current: Vec::new(),
            stray: Vec::new(),
        }
    }
}

impl<T: CommData, R: SharedRegion<T>> SharedRegion<T> for MutantRegion<T, R> {
    fn as_slice(&self) -> &[T] {
        match self.fault {
            Some(Fault::ReadAnyTime) if !self.readable => &self.stray,
            Some(Fault::PoisonIgnored) if self.poisoned => &self.stray,
            Some(Fault::RegionStale) if self.readable && self.shown.len() == self.current.len() => {
                &self.shown
            }
            _ => self.inner.as_slice(),
        }
    }

    fn as_mut_slice(&mut self) -> &mut [T] {
        match self.fault {
            Some(Fault::WriteAnyTime) if self.readable => &mut self.stray,
            _ => self.inner.as_mut_slice(),
        }
    }

    fn fence(&mut self) -> Result<(), CommError> {
        if self.fault == Some(Fault::FenceIdle) {
            return Ok(());
        }
        if self.fault == Some(Fault::BusyPoisons) && self.poisoned {
            return Err(kept_back(None));
        }
        let outcome = self.inner.fence();
        if outcome.is_err() {
            self.poisoned = true;
            return match self.fault {
                Some(Fault::MismatchSwallowed) => Ok(()),
                _ => outcome,
            };
        }
        self.readable = !self.readable;
        if self.readable && self.fault == Some(Fault::RegionStale) {
            self.shown = std::mem::take(&mut self.current);
            self.current = self.inner.as_slice().to_vec();
        }
        if !self.readable && self.fault == Some(Fault::RegionForgets) {
            self.inner.as_mut_slice().fill(T::zeroed());
        }
        outcome
    }
}
