//! The page about estimated inflow models: what is left in residuals, and what the models make.

use crate::chart::{Panel, Positions, Section, Series, SeriesMark, TextTable, View};

/// The probability below which residuals are told to be not normal.
const NOT_NORMAL: f64 = 0.05;

/// The estimated inflow model of a plant.
#[derive(Debug, Clone, PartialEq)]
pub struct InflowPlant {
    /// Its name.
    pub name: String,
    /// The models of its seasons, in the order of the year.
    pub seasons: Vec<InflowSeason>,
    /// Autocorrelation of standardised inflows, from lag 1.
    pub autocorrelation: Vec<f64>,
    /// The same of residuals.
    pub residual_autocorrelation: Vec<f64>,
    /// Autocorrelations within this of zero can be chance.
    pub chance: f64,
    /// Skewness of the residuals.
    pub skewness: f64,
    /// Excess kurtosis of the residuals.
    pub kurtosis: f64,
    /// The probability of such residuals if they are normal.
    pub normality: f64,
    /// The factor by which a deviation from the means grows in a year.
    pub growth: f64,
}

/// The estimated inflow model of a season.
#[derive(Debug, Clone, PartialEq)]
pub struct InflowSeason {
    /// Its name.
    pub name: String,
    /// Observations.
    pub observations: usize,
    /// Mean and standard deviation of the observations, m³/s.
    pub observed: (f64, f64),
    /// The same of simulated inflows.
    pub simulated: (f64, f64),
    /// Coefficients, from lag 1.
    pub coefficients: Vec<f64>,
    /// The coefficient of the annual mean.
    pub annual: Option<f64>,
    /// The part of the standard deviation that is new.
    pub residual: f64,
}

pub(crate) fn headline(plants: &[InflowPlant]) -> Vec<(String, String)> {
    let seasons = plants.iter().flat_map(|plant| &plant.seasons);
    let order = seasons
        .clone()
        .map(|season| season.coefficients.len())
        .max();
    let least = seasons.map(|season| season.observations).min();
    let growth = plants.iter().map(|plant| plant.growth).fold(0.0, f64::max);
    let told = |count: Option<usize>| count.unwrap_or(0).to_string();
    vec![
        ("Plants".to_owned(), plants.len().to_string()),
        ("Highest order".to_owned(), told(order)),
        ("Fewest observations of a season".to_owned(), told(least)),
        (
            "Largest growth of a deviation in a year".to_owned(),
            format!("{growth:.3}"),
        ),
    ]
}

pub(crate) fn sections(plants: &[InflowPlant]) -> Vec<Section> {
    let mut residuals = Section::new("residuals", "Autocorrelation and residuals");
    residuals.text.push(
        "A model that fits leaves residuals without autocorrelation: values within the dashed lines can be chance, at 95 %. \
         Residuals are drawn from a normal distribution; where the probability is below 0.05 the observed ones are not \
         normal, and sampling_method historical_residuals draws them as they were."
            .to_owned(),
    );
    residuals.panels.push(autocorrelation(plants));
    residuals.tables.push(judged(plants));
    let mut moments = Section::new("moments", "Simulated against observed inflows");
    moments.text.push(
        "Means and deviations of 1000 years that the model makes, without truncation, beside those of the history."
            .to_owned(),
    );
    moments
        .panels
        .push(compared(plants, "mean", "Mean inflow", |(mean, _)| mean));
    moments.panels.push(compared(
        plants,
        "deviation",
        "Standard deviation",
        |(_, deviation)| deviation,
    ));
    let mut models = Section::new("models", "Models");
    models.text.push(
        "Coefficients are of deviations divided by standard deviations, from lag 1; the part that is new is \
         residual_std_ratio."
            .to_owned(),
    );
    models.tables.extend(plants.iter().map(coefficients));
    vec![residuals, moments, models]
}

fn autocorrelation(plants: &[InflowPlant]) -> Panel {
    let lags = plants.iter().map(|plant| plant.autocorrelation.len()).max();
    let lags = lags.unwrap_or(0);
    let views = plants.iter().map(|plant| {
        let limit = |sign: f64| vec![sign * plant.chance; lags];
        let line = |name: &str, color, values: &[f64]| {
            Series::new(name, SeriesMark::Line, color, values.to_vec())
        };
        let series = vec![
            line("inflows", 0, &plant.autocorrelation),
            line("residuals", 1, &plant.residual_autocorrelation),
            Series::new("chance", SeriesMark::Dashes, 2, limit(1.0)),
            Series::new("chance, below", SeriesMark::Dashes, 2, limit(-1.0)),
        ];
        View::scaled(plant.name.clone(), "Autocorrelation", "", series)
    });
    Panel {
        id: "autocorrelation".to_owned(),
        title: "Autocorrelation before and after".to_owned(),
        about: "Of inflows divided by the deviation of their season, and of what the model leaves of them.".to_owned(),
        pick: "Plant".to_owned(),
        x: "Lag, seasons".to_owned(),
        at: Positions::Numbers((1..=lags).map(|lag| lag as f64).collect()),
        views: views.collect(),
    }
}

fn compared(plants: &[InflowPlant], id: &str, what: &str, of: impl Fn((f64, f64)) -> f64) -> Panel {
    let seasons = plants.iter().map(|plant| plant.seasons.len()).max();
    let views = plants.iter().map(|plant| {
        let values = |pick: fn(&InflowSeason) -> (f64, f64)| {
            plant
                .seasons
                .iter()
                .map(|season| of(pick(season)))
                .collect()
        };
        let series = vec![
            Series::new(
                "history",
                SeriesMark::Line,
                0,
                values(|season| season.observed),
            ),
            Series::new(
                "simulated",
                SeriesMark::Dashes,
                1,
                values(|season| season.simulated),
            ),
        ];
        let mut view = View::scaled(plant.name.clone(), what, "m³/s", series);
        view.zero = true;
        view
    });
    Panel {
        id: id.to_owned(),
        title: format!("{what} by season"),
        about: "Seasons are in the order of the year.".to_owned(),
        pick: "Plant".to_owned(),
        x: "Season of the year, from 1".to_owned(),
        at: Positions::Numbers(
            (1..=seasons.unwrap_or(0))
                .map(|season| season as f64)
                .collect(),
        ),
        views: views.collect(),
    }
}

/// Residuals and stationarity of each plant, in words.
fn judged(plants: &[InflowPlant]) -> TextTable {
    let rows = plants.iter().map(|plant| {
        let normal = if plant.normality < NOT_NORMAL {
            "no"
        } else {
            "yes"
        };
        let stationary = if plant.growth < 1.0 { "yes" } else { "no" };
        vec![
            plant.name.clone(),
            format!("{:.2}", plant.skewness),
            format!("{:.2}", plant.kurtosis),
            format!("{normal} ({:.3})", plant.normality),
            format!("{stationary} ({:.3})", plant.growth),
        ]
    });
    TextTable {
        caption: "Residuals (Jarque-Bera) and stationarity (growth of a deviation in a year)"
            .to_owned(),
        head: [
            "Plant",
            "Skewness",
            "Excess kurtosis",
            "Normal",
            "Stationary",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows: rows.collect(),
    }
}

fn coefficients(plant: &InflowPlant) -> TextTable {
    let rows = plant.seasons.iter().map(|season| {
        let factors = season.coefficients.iter();
        let factors: Vec<String> = factors.map(|factor| format!("{factor:.4}")).collect();
        vec![
            season.name.clone(),
            season.observations.to_string(),
            format!("{:.2}", season.observed.0),
            format!("{:.2}", season.observed.1),
            factors.join(", "),
            season
                .annual
                .map_or(String::new(), |factor| format!("{factor:.4}")),
            format!("{:.4}", season.residual),
        ]
    });
    TextTable {
        caption: plant.name.clone(),
        head: [
            "Season",
            "Observations",
            "Mean, m³/s",
            "Deviation, m³/s",
            "Coefficients",
            "Annual",
            "New",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows: rows.collect(),
    }
}
