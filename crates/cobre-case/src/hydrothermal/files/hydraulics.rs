//! The hydraulic keys of a plant in `system/hydros.json`: evaporation, diversion, filling, tailrace, losses and
//! efficiency.

use crate::hydrothermal::json::{choice, object};
use crate::hydrothermal::number::{Id, NonNegative, Number, Share};

object! {
    /// Evaporation of a reservoir; its area is in system/hydro_geometry.parquet.
    Evaporation {
        /// Water that evaporates, mm per month, from January to December: 12 numbers; below 0 where more rain
        /// falls on the lake than evaporates.
        coefficients_mm: Vec<Number>,
        /// The storage at which the area curve is made linear, hm³, by month: 12 numbers; the middle of the storage
        /// range if left out.
        reference_volumes_hm3: Option<Vec<NonNegative>>,
    }
}

object! {
    /// A channel that takes water past the turbines to another plant.
    Diversion {
        /// The plant that gets the water.
        downstream_id: Id,
        /// The most diverted flow, m³/s.
        max_flow_m3s: NonNegative,
    }
}

object! {
    /// First filling of a reservoir up to its least storage, before the plant enters at entry_stage_id.
    Filling {
        /// The first stage of filling; before it the plant does not exist.
        start_stage_id: Id,
        /// The flow that filling has to keep back, m³/s; 0 if left out.
        filling_inflow_m3s: Option<NonNegative>,
        /// The same under its later name.
        filling_min_rate_m3s: Option<NonNegative>,
    }
}

choice! {
    /// Kinds of tailrace.
    TailraceKind {
        /// A polynomial of the outflow.
        Polynomial = "polynomial",
        /// Straight lines between points.
        Piecewise = "piecewise",
    }
}

object! {
    /// The level of the water below a plant, by its outflow (turbined and spilled).
    Tailrace {
        /// The kind of curve.
        r#type: TailraceKind,
        /// For a polynomial: the level at no outflow, m, then the coefficients of the outflow, its square and so on.
        coefficients: Option<Vec<Number>>,
        /// For piecewise: the points, outflows ascending.
        points: Option<Vec<TailracePoint>>,
    }
}

object! {
    /// A point of a tailrace curve.
    TailracePoint {
        /// The outflow, m³/s.
        outflow_m3s: NonNegative,
        /// The level, m.
        height_m: Number,
    }
}

choice! {
    /// Kinds of hydraulic losses.
    LossKind {
        /// A share of the gross head.
        Factor = "factor",
        /// A height.
        Constant = "constant",
    }
}

object! {
    /// Head lost between reservoir and turbine.
    HydraulicLosses {
        /// The kind of losses.
        r#type: LossKind,
        /// For a factor: the share of the gross head that is lost.
        value: Option<Share>,
        /// For a constant: the height that is lost, m.
        value_m: Option<NonNegative>,
    }
}

choice! {
    /// Kinds of efficiency.
    EfficiencyKind {
        /// One number.
        Constant = "constant",
    }
}

object! {
    /// Efficiency of turbines and generators.
    Efficiency {
        /// The kind of efficiency.
        r#type: EfficiencyKind,
        /// The share of the energy of the water that becomes electric energy.
        value: Share,
    }
}
