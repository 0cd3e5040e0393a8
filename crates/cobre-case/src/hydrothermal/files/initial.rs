//! `initial_conditions.json`: what there is before the first stage.

use super::inflow::RecentObservation;
use crate::hydrothermal::date::Date;
use crate::hydrothermal::json::object;
use crate::hydrothermal::number::{Id, NonNegative, Number};

pub(crate) const FILE: &str = "initial_conditions.json";

object! {
    /// The state of the system before the first stage.
    InitialConditions {
        /// Water in reservoirs; a plant without an entry has none.
        storage: Vec<Storage>,
        /// Water in reservoirs that are filled for the first time; a plant without an entry has none.
        filling_storage: Vec<Storage>,
        /// Inflows of the stages before the first.
        past_inflows: Option<Vec<PastInflows>>,
        /// Generation of the first stages that thermal plants are committed to already.
        past_anticipated_commitments: Option<Vec<PastCommitments>>,
        /// Releases before the first stage, of plants with a travel time.
        past_defluences: Option<Vec<PastDefluence>>,
        /// Inflows of the season in which the first stage begins, before it.
        recent_observations: Option<Vec<RecentObservation>>,
    }
}

object! {
    /// Water in a reservoir.
    Storage {
        /// The plant.
        hydro_id: Id,
        /// The water, hm³.
        value_hm3: NonNegative,
    }
}

object! {
    /// Commitments of a thermal plant that were made before the first stage: of whole stages, or of days.
    PastCommitments {
        /// The plant.
        thermal_id: Id,
        /// Mean power, MW, of the first stage, of the second, and so on; or else value_mw between two dates.
        values_mw: Option<Vec<NonNegative>>,
        /// The first day.
        start_date: Option<Date>,
        /// The day after the last.
        end_date: Option<Date>,
        /// Mean power of these days, MW.
        value_mw: Option<NonNegative>,
    }
}

object! {
    /// Inflows of a plant in the stages before the first.
    PastInflows {
        /// The plant.
        hydro_id: Id,
        /// Inflows, m³/s, the most recent first.
        values_m3s: Vec<Number>,
        /// The season of each of them, where pre_study_stages do not say it.
        season_ids: Option<Vec<Id>>,
    }
}

object! {
    /// The release of a plant, turbined and spilled, over some days before the first stage.
    PastDefluence {
        /// The plant.
        hydro_id: Id,
        /// The first day.
        start_date: Date,
        /// The day after the last; not after the start of the first stage.
        end_date: Date,
        /// The release, m³/s.
        value_m3s: NonNegative,
    }
}
