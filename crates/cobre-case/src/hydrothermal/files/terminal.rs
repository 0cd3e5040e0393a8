//! `system/terminal_water_values.parquet`: what water is worth after the last stage.

use crate::hydrothermal::number::{Id, NonNegative};
use crate::hydrothermal::table::{Sizes, table};

table! {
    /// Water values after the last stage. The cost after it is never below that of any cut: the sum over plants of value × (storage_hm3 − storage).
    TerminalWaterValues in "system/terminal_water_values.parquet", rows |sizes| Sizes::by_curve(sizes.hydros), {
        /// The plant.
        hydro_id: Id,
        /// The value of stored water, $/hm³.
        water_value: NonNegative,
        /// The storage at which the plant adds nothing to the cost, hm³; the most storage of the last stage if empty.
        storage_hm3: Option<NonNegative>,
        /// The cut that the row belongs to; all rows without one are a cut.
        cut_id: Option<Id>,
    }
}
