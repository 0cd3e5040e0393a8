//! Many scenarios in one chart: ribbons of percentiles, and single scenarios over them.

use cobre_results::ResultsError;
use cobre_results::layout::{SCENARIO, STAGE, START_DATE};
use cobre_results::statistics::mean;

use crate::chart::{Panel, Section, Series, SeriesMark, View};
use crate::grid::Grid;
use crate::palette;
use crate::simulation::{Gathered, Quantity, SimulationData};
use crate::statistics::{LEVELS, Quantiles};

/// Most entities compared in one chart.
const MAX_COMPARED: usize = 8;

/// The colour of ribbons, and those of single scenarios: the same in all charts.
const RIBBON: usize = palette::BLUE;
const SINGLES: [usize; 5] = [
    palette::GREEN,
    palette::SKY,
    palette::PURPLE,
    palette::ORANGE,
    palette::VERMILION,
];

/// A section with the ribbons of a quantity.
pub(super) struct Ribbons {
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    pub(super) chart: &'static str,
    pub(super) about: &'static str,
    /// The noun for an entity.
    pub(super) pick: &'static str,
    /// Name of the sum over all entities, if it means something.
    pub(super) all: Option<&'static str>,
    pub(super) what: &'static str,
    pub(super) unit: &'static str,
    pub(super) quantity: Quantity,
    /// Lines of other columns of the table: their names, and the value of the first stage in place of all.
    pub(super) levels: &'static [(&'static str, Quantity, bool)],
    /// True if the axis of values begins at zero.
    pub(super) zero: bool,
}

impl Ribbons {
    /// The section; none if the case has no such entities.
    pub(super) fn section(
        &self,
        simulation: &SimulationData,
    ) -> Result<Option<Section>, ResultsError> {
        let Some(gathered) = simulation.gather(self.quantity)? else {
            return Ok(None);
        };
        let mut levels = Vec::new();
        for (name, quantity, first) in self.levels {
            if let Some(level) = simulation.gather(*quantity)? {
                levels.push((*name, level, *first));
            }
        }
        Ok(Some(self.of(simulation, &gathered, &levels)))
    }

    /// The section of a quantity that is collected already.
    pub(super) fn of(
        &self,
        simulation: &SimulationData,
        gathered: &Gathered,
        levels: &[(&str, Gathered, bool)],
    ) -> Section {
        let view = |name: &str, grid: &Grid, id: Option<i64>| {
            let mut series = series(simulation, grid);
            series.extend(levels.iter().filter_map(|level| line(level, id)));
            let mut view = View::scaled(name, self.what, self.unit, series);
            view.zero = self.zero;
            view
        };
        let mut views = Vec::new();
        if gathered.entities.len() > 1 {
            match self.all {
                Some(name) => views.push(view(name, &gathered.total, None)),
                None => {
                    let mut all = compared(gathered, self.what, self.unit);
                    all.zero = self.zero;
                    views.push(all);
                }
            }
        }
        let single = gathered.entities.iter();
        views.extend(single.map(|entity| view(&entity.name, &entity.grid, Some(entity.id))));
        let first = match self.all {
            None if views.len() > 1 => "First all side by side, then each by itself. ",
            _ => "",
        };
        let about = format!("{first}{}{}", about(simulation), spaced(self.about));
        let panel = over_stages(simulation, self.id, self.chart, &about, self.pick, views);
        let which = "those with the largest values,";
        with(self.id, self.title, panel, gathered, which)
    }
}

/// The mean of another quantity as a line, of one entity or of all; none where the entity has no such value.
fn line((name, level, first): &(&str, Gathered, bool), id: Option<i64>) -> Option<Series> {
    let grid = match id {
        None => &level.total,
        Some(id) => &level.entities.iter().find(|entity| entity.id == id)?.grid,
    };
    let means = grid.stages().map(|values| mean(values.iter().copied()));
    let mut means: Vec<f64> = means.collect();
    let mark = if *first {
        SeriesMark::Dashes
    } else {
        SeriesMark::Line
    };
    if let (true, Some(value)) = (*first, means.first().copied()) {
        means.fill(value);
    }
    let color = if *first {
        palette::ORANGE
    } else {
        palette::INK
    };
    means
        .iter()
        .any(|value| *value > 0.0)
        .then(|| Series::new(*name, mark, color, means))
}

/// A section of a table that has one column per state, control or row.
pub(super) fn columns(
    simulation: &SimulationData,
    id: &'static str,
    title: &str,
    chart: &str,
    pick: &str,
    table: &str,
) -> Result<Option<Section>, ResultsError> {
    let known = [SCENARIO, STAGE, START_DATE];
    let gathered = simulation.gather_columns(table, &known)?;
    let Some(gathered) = gathered.filter(|gathered| gathered.count > 0) else {
        return Ok(None);
    };
    let views = gathered.entities.iter().map(|entity| {
        let series = series(simulation, &entity.grid);
        View::scaled(&entity.name, "value", "", series)
    });
    let views = views.collect();
    let panel = over_stages(simulation, id, chart, &about(simulation), pick, views);
    Ok(Some(with(id, title, panel, &gathered, "the first")))
}

/// The value of each stage, for problems whose values have no kinds.
pub(super) fn stage_values(simulation: &SimulationData, grid: &Grid) -> Panel {
    let series = series(simulation, grid);
    let views = vec![View::scaled("", "value", "", series)];
    let title = "Value of each stage";
    over_stages(
        simulation,
        "stage-value",
        title,
        &about(simulation),
        "",
        views,
    )
}

/// A panel over the stages.
pub(super) fn over_stages(
    simulation: &SimulationData,
    id: &str,
    title: &str,
    about: &str,
    pick: &str,
    views: Vec<View>,
) -> Panel {
    let (at, word) = simulation.axis();
    Panel {
        id: id.to_owned(),
        title: title.to_owned(),
        about: about.to_owned(),
        pick: pick.to_owned(),
        x: word.to_owned(),
        at,
        views,
    }
}

/// The section of a panel that shows some of the entities: the `which` of them.
fn with(id: &'static str, title: &str, panel: Panel, gathered: &Gathered, which: &str) -> Section {
    let mut section = Section::new(id, title);
    let shown = gathered.entities.len();
    if gathered.count > shown {
        section.text.push(format!(
            "Of {}, {which} {shown} can be picked; the tables have them all.",
            gathered.count
        ));
    }
    section.panels.push(panel);
    section
}

fn spaced(text: &str) -> String {
    if text.is_empty() {
        String::new()
    } else {
        format!(" {text}")
    }
}

fn about(simulation: &SimulationData) -> String {
    match simulation.scenarios() {
        1 => "The one simulated scenario.".to_owned(),
        count => format!(
            "{count} simulated scenarios: ribbons hold all, 90 % and half of them; \
             lines are the median, the mean and single scenarios."
        ),
    }
}

/// The ribbons of a grid, the median, the mean, and the single scenarios.
fn series(simulation: &SimulationData, grid: &Grid) -> Vec<Series> {
    let mut all = Vec::new();
    if simulation.scenarios() > 1 {
        let quantiles: Vec<Quantiles> = grid
            .stages()
            .map(|values| Quantiles::of(values.iter().copied()))
            .collect();
        let level = |at: usize| -> Vec<f64> {
            quantiles
                .iter()
                .map(|quantile| quantile.percentiles[at])
                .collect()
        };
        let names = ["all scenarios", "90 % (P5 to P95)", "half (P25 to P75)"];
        for (at, (name, tint)) in names.into_iter().zip([14, 22, 32]).enumerate() {
            let high = level(LEVELS.len() - 1 - at);
            all.push(Series::band(name, RIBBON, tint, level(at), high));
        }
        all.push(Series::new(
            "median",
            SeriesMark::Line,
            RIBBON,
            level(LEVELS.len() / 2),
        ));
        let means = quantiles.iter().map(|quantile| quantile.mean).collect();
        all.push(Series::new("mean", SeriesMark::Dashes, palette::INK, means));
    }
    for (number, (single, color)) in simulation.single.iter().zip(SINGLES).enumerate() {
        let values = grid.scenario(single.scenario);
        all.push(Series {
            scenario: Some(number),
            ..Series::new(&single.name, SeriesMark::Line, color, values)
        });
    }
    all
}

/// The mean of each of the largest entities, side by side.
fn compared(gathered: &Gathered, what: &str, unit: &str) -> View {
    let lines = gathered.entities.iter().take(MAX_COMPARED).enumerate();
    let lines = lines.map(|(number, entity)| {
        let stages = entity.grid.stages();
        let means = stages.map(|values| mean(values.iter().copied())).collect();
        Series::new(&entity.name, SeriesMark::Line, palette::nth(number), means)
    });
    let lines: Vec<Series> = lines.collect();
    let name = if lines.len() < gathered.count {
        format!("The first {MAX_COMPARED}, mean of all scenarios")
    } else {
        "All, mean of all scenarios".to_owned()
    };
    View::scaled(name, what, unit, lines)
}
