//! `system/hydro_production_models.json` and the tables of hyperplanes, productivities, reservoirs and tailraces: how
//! water becomes energy.

use crate::hydrothermal::json::{choice, object};
use crate::hydrothermal::number::{
    Id, NonNegative, NonPositive, Number, Positive, PositiveShare, Share,
};
use crate::hydrothermal::table::{Sizes, table};

use super::system::GenerationModel;

pub(crate) const PRODUCTION_MODELS: &str = "system/hydro_production_models.json";

object! {
    /// Production functions that differ by stage or season.
    ProductionModels {
        /// One entry per plant at most; a plant without any is as in system/hydros.json.
        production_models: Vec<ProductionModel>,
    }
    refused {
        fpha_plane_reduction: "all facets of the hull are kept, or max_planes_per_hydro of them",
    }
}

choice! {
    /// The way in which the model of a stage is found.
    SelectionMode {
        /// By ranges of stages.
        StageRanges = "stage_ranges",
        /// By the season of the stage.
        Seasonal = "seasonal",
    }
}

object! {
    /// The production functions of a plant.
    ProductionModel {
        /// The plant.
        hydro_id: Id,
        /// The way in which the model of a stage is found.
        selection_mode: SelectionMode,
        /// For stage_ranges: the first range that a stage is in counts; a stage in none has constant productivity.
        stage_ranges: Option<Vec<StageRange>>,
        /// For seasonal: the model of a stage whose season is not listed, or that has none.
        default_model: Option<GenerationModel>,
        /// For seasonal: models by season_id of stages.json.
        seasons: Option<Vec<SeasonModel>>,
    }
}

object! {
    /// The production function of a range of stages.
    StageRange {
        /// The first stage.
        start_stage_id: Id,
        /// The last stage; null if the range has no end.
        end_stage_id: Option<Id>,
        /// The production function.
        model: GenerationModel,
        /// For fpha: where the hyperplanes come from; system/fpha_hyperplanes.parquet if left out.
        fpha_config: Option<FphaConfig>,
        /// Energy of water in these stages, MW/(m³/s); not with fpha.
        productivity_override: Option<Positive>,
        /// The storage at which a specific productivity becomes one of flow, and at which the water of the plant stands below the one above.
        reference_volume: Option<ReferenceVolume>,
    }
}

object! {
    /// The production function of a season.
    SeasonModel {
        /// The season.
        season_id: Id,
        /// The production function.
        model: GenerationModel,
        /// For fpha: where the hyperplanes come from; system/fpha_hyperplanes.parquet if left out.
        fpha_config: Option<FphaConfig>,
        /// Energy of water in this season, MW/(m³/s); not with fpha.
        productivity_override: Option<Positive>,
        /// The storage at which a specific productivity becomes one of flow, and at which the water of the plant stands below the one above.
        reference_volume: Option<ReferenceVolume>,
    }
}

object! {
    /// A storage, or a share of the storage range.
    ReferenceVolume {
        /// The storage, hm³.
        volume_hm3: Option<Positive>,
        /// The share of the way from least to most storage of the plant; 0.65 if neither is given.
        percentile: Option<Share>,
    }
}

choice! {
    /// Sources of hyperplanes.
    PlaneSource {
        /// The rows of system/fpha_hyperplanes.parquet.
        Precomputed = "precomputed",
        /// A fit to the geometry of the plant.
        Computed = "computed",
    }
}

object! {
    /// Hyperplanes of a plant.
    FphaConfig {
        /// Where they come from.
        source: PlaneSource,
        /// Computed: storages of the grid, 2 to 30; 5 if left out.
        volume_discretization_points: Option<Id>,
        /// Computed: turbined flows of the grid, 2 to 30; 5 if left out.
        turbine_discretization_points: Option<Id>,
        /// Computed: accepted, 2 or more; the slope by spillage always has 9 points.
        spillage_discretization_points: Option<Id>,
        /// Computed: the most planes that are kept; all facets of the hull if left out.
        max_planes_per_hydro: Option<Id>,
        /// Computed: the storages that the grid covers; those of the level curve if left out.
        fitting_window: Option<FittingWindow>,
    }
}

object! {
    /// A range of storages: each end as a storage or as a share of the storage range, not both.
    FittingWindow {
        /// The least storage, hm³.
        volume_min_hm3: Option<NonNegative>,
        /// The most storage, hm³.
        volume_max_hm3: Option<NonNegative>,
        /// The least storage, as a share of the way from least to most storage of the plant.
        volume_min_percentile: Option<Share>,
        /// The most storage, as a share of the way from least to most storage of the plant.
        volume_max_percentile: Option<Share>,
    }
}

table! {
    /// Hyperplanes above the generation of plants.
    Hyperplanes in "system/fpha_hyperplanes.parquet", rows |sizes| sizes.by_plane(sizes.hydros), {
        /// The plant.
        hydro_id: Id,
        /// The stage; empty for all stages that have no rows of their own.
        stage_id: Option<Id>,
        /// The number of the plane, unique within plant and stage.
        plane_id: Id,
        /// Generation at no storage and no flow, MW.
        gamma_0: Number,
        /// Slope in the mean of the storages before and after, MW/hm³.
        gamma_v: NonNegative,
        /// Slope in the turbined flow, MW/(m³/s).
        gamma_q: Positive,
        /// Slope in the spilled flow, MW/(m³/s); not above 0.
        gamma_s: NonPositive,
        /// Factor of gamma_0 alone; 1 if left out.
        kappa: Option<PositiveShare>,
        /// The least storage it is meant for, hm³; a note that no linear program uses.
        valid_v_min_hm3: Option<Number>,
        /// The most storage it is meant for, hm³; a note that no linear program uses.
        valid_v_max_hm3: Option<Number>,
        /// The most turbined flow it is meant for, m³/s; a note that no linear program uses.
        valid_q_max_m3s: Option<Number>,
    }
}

table! {
    /// Energy of water in stages with constant productivity.
    EnergyProductivity in "system/hydro_energy_productivity.parquet", rows |sizes| sizes.by_past_stage(sizes.hydros), {
        /// The plant.
        hydro_id: Id,
        /// The stage; empty for all stages that have no row of their own.
        stage_id: Option<Id>,
        /// Energy of water, MW/(m³/s), in place of that of system/hydros.json; 0 in an outage.
        equivalent_productivity_mw_per_m3s: Option<NonNegative>,
        /// The outflow at which a specific productivity becomes one of flow, m³/s; max_turbined_m3s if empty.
        reference_outflow_m3s: Option<NonNegative>,
        /// Energy of water and head, MW/(m³/s) per m: times net head it is the productivity where no other is given.
        specific_productivity_mw_per_m3s_per_m: Option<NonNegative>,
    }
}

table! {
    /// Level and area of reservoirs by storage; straight lines between rows.
    Geometry in "system/hydro_geometry.parquet", rows |sizes| Sizes::by_curve(sizes.hydros), {
        /// The plant.
        hydro_id: Id,
        /// The storage, hm³; ascends within a plant.
        volume_hm3: NonNegative,
        /// The level of the water, m; does not fall as storage ascends.
        height_m: Number,
        /// The area of the water, km²; does not fall as storage ascends.
        area_km2: NonNegative,
    }
}

table! {
    /// Levels of the water below plants by outflow: pieces of polynomials, in families by the level of the reservoir below.
    TailraceCurves in "system/tailrace_curves.parquet", rows |sizes| Sizes::by_curve(sizes.hydros), {
        /// The plant.
        hydro_id: Id,
        /// The number of the family.
        family_id: Id,
        /// The level of the reservoir below at which the family holds, m; may be empty where the plant has one family.
        downstream_reference_level_m: Option<NonNegative>,
        /// The number of the piece in its family, in the order of outflow.
        segment_id: Id,
        /// The outflow at which the piece begins, m³/s.
        outflow_min_m3s: NonNegative,
        /// The outflow at which it ends, m³/s.
        outflow_max_m3s: NonNegative,
        /// The constant of its polynomial, m.
        coefficient_0: Number,
        /// The coefficient of the outflow.
        coefficient_1: Number,
        /// That of its square.
        coefficient_2: Number,
        /// That of its third power.
        coefficient_3: Number,
        /// That of its fourth power.
        coefficient_4: Number,
    }
}
