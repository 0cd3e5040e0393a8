//! Production functions: the energy of water, by plant and stage.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::conversion::{self, EnergyConversion, ProductivityRows, StageNumbers};
use super::fit::{Fit, FitGrid};
use super::geometry::{ProductionFunction, Reservoir};
use super::index::Index;
use super::tailrace;
use super::time::Stage;
use crate::finding::{Findings, Place};
use crate::hydrothermal::files::Files;
use crate::hydrothermal::files::production::{
    EnergyProductivity, FittingWindow, FphaConfig, Geometry, Hyperplanes, PRODUCTION_MODELS,
    PlaneSource, ProductionModel, ReferenceVolume, SelectionMode,
};
use crate::hydrothermal::files::system::{GenerationModel, HYDROS, Hydro};
use crate::hydrothermal::number::{Id, Positive};
use crate::hydrothermal::table::Row;

/// Points of storage and of turbined flow of a fit, if the file gives none, and the most.
const USUAL_POINTS: Id = 5;
const MOST_POINTS: Id = 30;

/// The production function of a plant in a stage.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Production {
    /// Generation is turbined flow times this, MW/(m³/s).
    Constant(f64),
    /// Generation is below every plane.
    Planes(Arc<[Plane]>),
}

impl Production {
    /// The most that one more m³/s through the turbines gives, MW/(m³/s).
    pub(crate) fn per_flow(&self) -> f64 {
        match self {
            Self::Constant(productivity) => *productivity,
            Self::Planes(planes) => planes
                .iter()
                .map(|plane| plane.turbined)
                .fold(0.0, f64::max),
        }
    }

    /// The most that one more hm³ in store gives, MW/hm³.
    pub(crate) fn per_storage(&self) -> f64 {
        match self {
            Self::Constant(_) => 0.0,
            Self::Planes(planes) => planes.iter().map(|plane| plane.storage).fold(0.0, f64::max),
        }
    }

    /// The hyperplanes; none where productivity is constant.
    pub(crate) fn planes(&self) -> &[Plane] {
        match self {
            Self::Constant(_) => &[],
            Self::Planes(planes) => planes,
        }
    }
}

/// A hyperplane above generation, MW: constant + storage · (mean of storages before and after) + turbined · flow +
/// spilled · flow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Plane {
    /// MW.
    pub(crate) constant: f64,
    /// MW/hm³.
    pub(crate) storage: f64,
    /// MW/(m³/s).
    pub(crate) turbined: f64,
    /// MW/(m³/s); not above zero.
    pub(crate) spilled: f64,
}

impl Plane {
    /// The plane through three points (storage, turbined flow, generation). If two are the same, or all have one
    /// storage, storage does not count.
    pub(super) fn through(corners: [[f64; 3]; 3]) -> Self {
        let [first, second, third] = corners;
        let less = |point: [f64; 3]| [0, 1, 2].map(|axis| point[axis] - first[axis]);
        let (along, across) = (less(second), less(third));
        let minor = |one: usize, two: usize| along[one] * across[two] - along[two] * across[one];
        let size = minor(0, 1);
        let (storage, turbined) = if size == 0.0 {
            let flat = along[1] == 0.0;
            (0.0, if flat { 0.0 } else { along[2] / along[1] })
        } else {
            (minor(2, 1) / size, minor(0, 2) / size)
        };
        Self {
            constant: first[2] - storage * first[0] - turbined * first[1],
            storage,
            turbined,
            spilled: 0.0,
        }
    }

    /// Its value without spillage, MW.
    pub(crate) fn at(&self, storage: f64, turbined: f64) -> f64 {
        self.constant + self.storage * storage + self.turbined * turbined
    }
}

/// Fitted planes of a plant.
#[derive(Debug, Clone)]
pub(crate) struct PlantFit {
    /// The stages that have them: places of the first and the last.
    pub(crate) stages: (usize, usize),
    pub(crate) grid: FitGrid,
    pub(crate) fit: Fit,
}

/// The production functions of a plant.
#[derive(Debug, Default)]
pub(crate) struct PlantProduction {
    /// By stage.
    pub(crate) stages: Vec<Production>,
    /// By stage.
    pub(crate) conversions: Vec<EnergyConversion>,
    /// Those of its functions that are fitted.
    pub(crate) fits: Vec<PlantFit>,
    /// The exact function, if there is a level curve.
    pub(crate) exact: Option<ProductionFunction>,
}

/// A model of a file, and where it is.
struct ModelEntry<'f> {
    model: GenerationModel,
    config: Option<&'f FphaConfig>,
    productivity: Option<Positive>,
    reference: Option<&'f ReferenceVolume>,
    /// True for that of seasons which are not listed.
    is_default: bool,
    at: Place,
}

/// Finds the production functions of all plants.
pub(super) fn resolve(
    files: &Files,
    plants: &Index,
    reservoirs: &[Option<Reservoir>],
    (stages, stage_index): (&[Stage], &Index),
    findings: &mut Findings,
) -> Vec<PlantProduction> {
    let given = hyperplanes(files, plants, stage_index, findings);
    let entries = entries(files, plants, findings);
    let productivities = conversion::rows(files, plants, stage_index, findings);
    let mut tailraces = tailrace::resolve(files, plants, reservoirs, findings);
    let list = Place::file(HYDROS).key("hydros");
    let mut used = vec![false; plants.len()];
    let found: Vec<PlantProduction> = files
        .hydros
        .hydros
        .iter()
        .enumerate()
        .map(|(place, plant)| {
            let at = list.index(place);
            let exact = reservoirs[place].as_ref().map(|reservoir| {
                let families = tailraces[place].take();
                ProductionFunction::new(reservoir.height.clone(), plant, families, &at, findings)
            });
            let mut resolver = PlantResolver {
                plant,
                at,
                planes: &given[place],
                rows: &productivities[place],
                stages,
                exact: exact.as_ref(),
                mean_inflow: mean_inflow(files, plant),
                fits: Vec::new(),
                used: &mut used[place],
                findings,
            };
            let (functions, conversions) = resolver.all(entries[place]);
            let fits = std::mem::take(&mut resolver.fits);
            PlantProduction {
                stages: functions,
                conversions,
                fits: fits.into_iter().flatten().collect(),
                exact,
            }
        })
        .collect();
    for (place, own) in given.iter().enumerate() {
        if !own.is_empty() && !used[place] {
            let plant = &files.hydros.hydros[place];
            let at = Place::file(Hyperplanes::FILE)
                .rows(format!("hydro plant {} ({})", plant.id, plant.name));
            findings.doubtful(&at, "no stage uses its hyperplanes");
        }
    }
    found
}

/// The entry of each plant in the file of production models, with its place in the list.
fn entries<'f>(
    files: &'f Files,
    plants: &Index,
    findings: &mut Findings,
) -> Vec<Option<(usize, &'f ProductionModel)>> {
    let mut found = vec![None; plants.len()];
    let list = Place::file(PRODUCTION_MODELS).key("production_models");
    let models = files.production_models.iter();
    for (number, entry) in models.flat_map(|file| &file.production_models).enumerate() {
        let at = list.index(number).key("hydro_id");
        if let Some(plant) = plants.find(entry.hydro_id, &at, findings)
            && found[plant].replace((number, entry)).is_some()
        {
            findings.wrong(
                &at,
                format!("hydro plant {} has an entry already", entry.hydro_id),
            );
        }
    }
    found
}

/// The hyperplanes of a plant by stage, those of all stages under none; in the order of their numbers.
type PlanesByStage = HashMap<Option<Id>, Vec<Plane>>;

fn hyperplanes(
    files: &Files,
    plants: &Index,
    stages: &Index,
    findings: &mut Findings,
) -> Vec<PlanesByStage> {
    let mut found: Vec<HashMap<Option<Id>, BTreeMap<Id, Plane>>> =
        vec![HashMap::new(); plants.len()];
    for (number, row) in files.hyperplanes.iter().enumerate() {
        let at = Place::file(Hyperplanes::FILE).row(number);
        let plant = plants.find(row.hydro_id, &at, findings);
        let stage = row.stage_id.map(|id| stages.find(id, &at, findings));
        let (Some(plant), None | Some(Some(_))) = (plant, stage) else {
            continue;
        };
        if let (Some(least), Some(most)) = (row.valid_v_min_hm3, row.valid_v_max_hm3)
            && least.0 > most.0
        {
            let message = format!(
                "valid_v_min_hm3, {}, is above valid_v_max_hm3, {}",
                least.0, most.0
            );
            findings.wrong(&at, message);
        }
        let hyperplane = Plane {
            constant: row.kappa.map_or(1.0, |kappa| kappa.0) * row.gamma_0.0,
            storage: row.gamma_v.0,
            turbined: row.gamma_q.0,
            spilled: row.gamma_s.0,
        };
        let own = found[plant].entry(row.stage_id).or_default();
        if own.insert(row.plane_id, hyperplane).is_some() {
            let stage = row.stage_id.map(|id| format!(", stage {id}"));
            let message = format!(
                "there is a plane {} of hydro plant {}{} already",
                row.plane_id,
                row.hydro_id,
                stage.unwrap_or_default()
            );
            findings.wrong(&at, message);
        }
    }
    let sorted = found.into_iter().map(|of_plant| {
        let sorted = of_plant.into_iter();
        sorted
            .map(|(stage, planes)| (stage, planes.into_values().collect()))
            .collect()
    });
    sorted.collect()
}

/// Finds the production functions of one plant.
struct PlantResolver<'f, 'r> {
    plant: &'f Hydro,
    at: Place,
    planes: &'r PlanesByStage,
    rows: &'r ProductivityRows,
    stages: &'r [Stage],
    exact: Option<&'r ProductionFunction>,
    /// The mean of its observed inflows, m³/s, if there are any.
    mean_inflow: Option<f64>,
    /// By model of the file.
    fits: Vec<Option<PlantFit>>,
    used: &'r mut bool,
    findings: &'r mut Findings,
}

impl<'f> PlantResolver<'f, '_> {
    fn all(
        &mut self,
        entry: Option<(usize, &'f ProductionModel)>,
    ) -> (Vec<Production>, Vec<EnergyConversion>) {
        if entry.is_none() && self.plant.generation.model == GenerationModel::Fpha {
            let at = self.at.key("generation.model");
            let message = format!("fpha needs an entry of the plant in {PRODUCTION_MODELS}");
            self.findings.wrong(&at, message);
            let nothing = vec![Production::Constant(1.0); self.stages.len()];
            return (
                nothing,
                vec![EnergyConversion::default(); self.stages.len()],
            );
        }
        let models = entry.map_or(Vec::new(), |entry| self.models(entry));
        self.fits = models.iter().map(|_| None).collect();
        let mut seen = vec![false; models.len()];
        let mut lacking = Vec::new();
        let (mut found, mut conversions) = (Vec::new(), Vec::new());
        for (place, stage) in self.stages.iter().enumerate() {
            let number = entry.and_then(|(_, entry)| model_of(entry, stage));
            let wanted = number.map(|number| (number, &models[number]));
            let reference = wanted.and_then(|(_, wanted)| wanted.reference);
            let numbers = StageNumbers::new(self.rows, stage.id);
            let conversion = EnergyConversion::new(self.plant, &numbers, reference, self.exact);
            let function = match wanted {
                Some((number, wanted)) => {
                    seen[number] = true;
                    self.function(number, wanted, place, &conversion)
                }
                None => self.constant(None, &conversion),
            };
            if function.is_none() {
                lacking.push(stage.id.to_string());
            }
            let function = function.unwrap_or(Production::Constant(1.0));
            conversions.push(conversion.with(&function));
            found.push(function);
        }
        if !lacking.is_empty() {
            let at = self.at.key("generation.productivity_mw_per_m3s");
            let message = format!(
                "the key is missing, and stages {} have constant productivity",
                lacking.join(", ")
            );
            self.findings.wrong(&at, message);
        }
        // A default may be there for seasons that come in no stage.
        let listed = models.iter().zip(&seen);
        let listed = listed.filter(|(wanted, _)| !wanted.is_default);
        for (wanted, _) in listed.filter(|(_, seen)| !**seen) {
            self.findings
                .doubtful(&wanted.at, "no stage has this model");
        }
        (found, conversions)
    }

    /// The models of an entry: its ranges or its seasons, and the default.
    fn models(&mut self, (number, entry): (usize, &'f ProductionModel)) -> Vec<ModelEntry<'f>> {
        let at = Place::file(PRODUCTION_MODELS)
            .key("production_models")
            .index(number);
        let ranges = entry.selection_mode == SelectionMode::StageRanges;
        for (key, given, wanted) in [
            ("stage_ranges", entry.stage_ranges.is_some(), ranges),
            ("default_model", entry.default_model.is_some(), !ranges),
            ("seasons", entry.seasons.is_some(), !ranges),
        ] {
            if given != wanted {
                let message = if wanted {
                    "the key is missing"
                } else {
                    "it does not go with this selection_mode; remove the key"
                };
                self.findings.wrong(&at.key(key), message);
            }
        }
        let mut found = Vec::new();
        let list = at.key("stage_ranges");
        for (place, range) in entry.stage_ranges.iter().flatten().enumerate() {
            let at = list.index(place);
            if range
                .end_stage_id
                .is_some_and(|end| end < range.start_stage_id)
            {
                let message = format!("it is before start_stage_id, {}", range.start_stage_id);
                self.findings.wrong(&at.key("end_stage_id"), message);
            }
            found.push(ModelEntry {
                model: range.model,
                config: range.fpha_config.as_ref(),
                productivity: range.productivity_override,
                reference: range.reference_volume.as_ref(),
                is_default: false,
                at,
            });
        }
        let list = at.key("seasons");
        let seasons = entry.seasons.as_deref().unwrap_or_default();
        for (place, season) in seasons.iter().enumerate() {
            let at = list.index(place);
            if seasons[..place]
                .iter()
                .any(|other| other.season_id == season.season_id)
            {
                let message = format!("season {} has a model already", season.season_id);
                self.findings.wrong(&at.key("season_id"), message);
            }
            found.push(ModelEntry {
                model: season.model,
                config: season.fpha_config.as_ref(),
                productivity: season.productivity_override,
                reference: season.reference_volume.as_ref(),
                is_default: false,
                at,
            });
        }
        if let Some(model) = entry.default_model.filter(|_| !ranges) {
            found.push(ModelEntry {
                model,
                config: None,
                productivity: None,
                reference: None,
                is_default: true,
                at: at.key("default_model"),
            });
        }
        for wanted in &found {
            self.check(wanted);
        }
        found
    }

    fn check(&mut self, wanted: &ModelEntry<'_>) {
        let fpha = wanted.model == GenerationModel::Fpha;
        let config = wanted.at.key("fpha_config");
        if let Some(given) = wanted.reference
            && given.volume_hm3.is_some() == given.percentile.is_some()
        {
            let message = "one of volume_hm3 and percentile is expected";
            self.findings
                .wrong(&wanted.at.key("reference_volume"), message);
        }
        if !fpha && wanted.config.is_some() {
            self.findings
                .wrong(&config, "it does not go with this model; remove the key");
        }
        if fpha && wanted.productivity.is_some() {
            let message = "it does not go with fpha; remove the key";
            self.findings
                .wrong(&wanted.at.key("productivity_override"), message);
        }
        let Some(given) = wanted.config else { return };
        let points = [
            (
                "volume_discretization_points",
                given.volume_discretization_points,
                2,
                MOST_POINTS,
            ),
            (
                "turbine_discretization_points",
                given.turbine_discretization_points,
                2,
                MOST_POINTS,
            ),
            (
                "spillage_discretization_points",
                given.spillage_discretization_points,
                2,
                Id::MAX,
            ),
            (
                "max_planes_per_hydro",
                given.max_planes_per_hydro,
                1,
                Id::MAX,
            ),
        ];
        for (key, value, least, most) in points {
            if let Some(value) = value.filter(|value| !(least..=most).contains(value)) {
                let range = if most == Id::MAX {
                    format!("at least {least}")
                } else {
                    format!("from {least} to {most}")
                };
                let message = format!("a whole number {range} is expected, {value} is found");
                self.findings.wrong(&config.key(key), message);
            }
        }
    }

    /// Constant productivity; none if nothing gives it.
    fn constant(&self, own: Option<Positive>, conversion: &EnergyConversion) -> Option<Production> {
        let usual = self.plant.generation.productivity_mw_per_m3s;
        let given = own.map(|own| own.0).or(conversion.given);
        let given = given.or(usual.map(|usual| usual.0));
        given.or(conversion.equivalent).map(Production::Constant)
    }

    fn function(
        &mut self,
        number: usize,
        wanted: &ModelEntry<'_>,
        stage: usize,
        conversion: &EnergyConversion,
    ) -> Option<Production> {
        if wanted.model != GenerationModel::Fpha {
            if wanted.productivity.is_some() && conversion.given.is_some() {
                let message = format!(
                    "{} has one for stage {} as well; keep one of them",
                    EnergyProductivity::FILE,
                    self.stages[stage].id
                );
                let at = wanted.at.key("productivity_override");
                self.findings.wrong(&at, message);
            }
            return self.constant(wanted.productivity, conversion);
        }
        let nothing = Some(Production::Constant(1.0));
        let Some(config) = wanted
            .config
            .filter(|config| config.source == PlaneSource::Computed)
        else {
            *self.used = true;
            return self.given(stage).or(nothing);
        };
        if self.fits[number].is_none() {
            self.fits[number] = self.fit(config, &wanted.at.key("fpha_config"), stage);
        }
        let Some(fit) = &mut self.fits[number] else {
            return nothing;
        };
        fit.stages.1 = stage;
        Some(Production::Planes(fit.fit.planes.clone().into()))
    }

    /// The planes of the table for a stage.
    fn given(&mut self, stage: usize) -> Option<Production> {
        let id = self.stages[stage].id;
        let found = self
            .planes
            .get(&Some(id))
            .or_else(|| self.planes.get(&None));
        if found.is_none() {
            let at = Place::file(Hyperplanes::FILE).rows(format!(
                "hydro plant {} ({})",
                self.plant.id, self.plant.name
            ));
            let message =
                format!("there is no plane for stage {id}, whose model is precomputed fpha");
            self.findings.wrong(&at, message);
        }
        found.map(|planes| Production::Planes(planes.as_slice().into()))
    }

    /// Fits planes to the geometry.
    fn fit(&mut self, config: &FphaConfig, at: &Place, stage: usize) -> Option<PlantFit> {
        let Some(exact) = self.exact else {
            let thing = format!("hydro plant {} ({})", self.plant.id, self.plant.name);
            let message = "there is no row, which computed hyperplanes need";
            self.findings
                .wrong(&Place::file(Geometry::FILE).rows(thing), message);
            return None;
        };
        let points = |given: Option<Id>| -> Option<usize> {
            let points = given.unwrap_or(USUAL_POINTS);
            (2..=MOST_POINTS)
                .contains(&points)
                .then(|| usize::try_from(points).ok())?
        };
        let storages = self.window(config.fitting_window.as_ref(), exact, at)?;
        let generation = &self.plant.generation;
        let most_planes = config
            .max_planes_per_hydro
            .and_then(|most| usize::try_from(most).ok());
        let grid = FitGrid {
            storages,
            max_turbined: generation.max_turbined_m3s.0,
            max_generation: generation.max_generation_mw.0,
            max_spilled: 2.0 * self.mean_inflow.unwrap_or(generation.max_turbined_m3s.0),
            points: (
                points(config.volume_discretization_points)?,
                points(config.turbine_discretization_points)?,
            ),
            most_planes: most_planes.unwrap_or(usize::MAX),
        };
        if grid.max_turbined == 0.0 {
            let at = self.at.key("generation.max_turbined_m3s");
            self.findings
                .wrong(&at, "0, which leaves nothing to fit hyperplanes to");
            return None;
        }
        let fit = grid.fit(exact);
        Some(PlantFit {
            stages: (stage, stage),
            grid,
            fit,
        })
    }

    /// The storages that a fit covers, within the level curve.
    fn window(
        &mut self,
        window: Option<&FittingWindow>,
        exact: &ProductionFunction,
        at: &Place,
    ) -> Option<(f64, f64)> {
        let least = self.plant.reservoir.min_storage_hm3.0;
        let most = self.plant.reservoir.max_storage_hm3.0;
        let known = exact.storages();
        let at = at.key("fitting_window");
        let mut end = |usual: f64, storage: Option<f64>, share: Option<f64>, key: &str| {
            if storage.is_some() && share.is_some() {
                let message = "this end is given both as a storage and as a percentile; keep one";
                self.findings.wrong(&at.key(key), message);
            }
            let share = share.map(|share| least + share * (most - least));
            storage.or(share).unwrap_or(usual)
        };
        let of = |pick: fn(&FittingWindow) -> Option<f64>| window.and_then(pick);
        let from = end(
            known.0,
            of(|own| own.volume_min_hm3.map(|value| value.0)),
            of(|own| own.volume_min_percentile.map(|value| value.0)),
            "volume_min_percentile",
        );
        let to = end(
            known.1,
            of(|own| own.volume_max_hm3.map(|value| value.0)),
            of(|own| own.volume_max_percentile.map(|value| value.0)),
            "volume_max_percentile",
        );
        if from > to {
            let message = format!("the window begins at {from} hm³ and ends at {to} hm³");
            self.findings.wrong(&at, message);
            return None;
        }
        let within = |storage: f64| storage.clamp(known.0, known.1);
        Some((within(from), within(to)))
    }
}

/// The mean of the observed inflows of a plant, if it is above zero.
fn mean_inflow(files: &Files, plant: &Hydro) -> Option<f64> {
    let rows = files.inflow_history.iter();
    let values = rows.filter(|row| row.hydro_id == plant.id);
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), row| {
        (sum + row.value_m3s.0, count + 1.0)
    });
    Some(sum / count).filter(|mean| *mean > 0.0)
}

/// The place of the model of a stage among those of an entry; none if productivity is constant.
fn model_of(entry: &ProductionModel, stage: &Stage) -> Option<usize> {
    match entry.selection_mode {
        SelectionMode::StageRanges => entry.stage_ranges.iter().flatten().position(|range| {
            range.start_stage_id <= stage.id && range.end_stage_id.is_none_or(|end| stage.id <= end)
        }),
        SelectionMode::Seasonal => {
            let seasons = entry.seasons.as_deref().unwrap_or_default();
            let mut own = seasons.iter();
            let own = own.position(|season| Some(season.season_id) == stage.season);
            own.or(entry.default_model.map(|_| seasons.len()))
        }
    }
}
