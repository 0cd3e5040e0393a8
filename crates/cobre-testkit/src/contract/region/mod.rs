//! Regions: who writes what, who reads what, and when.

pub mod epochs;
pub mod leader;
pub mod lifetime;
pub mod partitioned;

use cobre_comm::{CommData, SharedRegion};

use super::World;
use crate::check::succeeded;

/// A leader region, which must come about.
pub(super) fn led<T: CommData, C: World>(comm: &C, count: usize) -> C::Region<T> {
    let created = comm.create_shared_region(count);
    let name = std::any::type_name::<T>();
    succeeded(
        comm.rank(),
        format_args!("leader region of {count} {name}"),
        created,
    )
}

/// A partitioned region, which must come about.
pub(super) fn parted<T: CommData, C: World>(comm: &C, counts: &[usize]) -> C::Region<T> {
    let created = comm.create_partitioned_region(counts);
    let name = std::any::type_name::<T>();
    succeeded(
        comm.rank(),
        format_args!("region of {name}, counts {counts:?}"),
        created,
    )
}

/// Fences a region, which must succeed.
pub(super) fn fence<T: CommData>(rank: usize, region: &mut impl SharedRegion<T>) {
    succeeded(rank, format_args!("fence"), region.fence());
}
