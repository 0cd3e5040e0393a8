//! The inflow model of one plant.

use super::buses::Spread;
use super::inflow::{CarriedInflow, Inflow, InflowModel, InflowSources, Lags, Stats};
use super::inflow_lags::{KnownInflow, LagStates, SeasonTimeline};
use super::seasons::Period;
use super::time::Stage;
use crate::finding::{Findings, Place};
use crate::hydrothermal::estimation::MONTHS;
use crate::hydrothermal::files::Files;
use crate::hydrothermal::files::inflow::AnnualComponent;
use crate::hydrothermal::files::initial;
use crate::hydrothermal::files::scenarios::InflowStats;
use crate::hydrothermal::number::Id;
use crate::hydrothermal::table::Row;

/// The inflow data of one plant.
pub(super) struct PlantInflow<'a> {
    pub(super) files: &'a Files,
    pub(super) sources: &'a InflowSources<'a>,
    pub(super) place: usize,
    pub(super) stats: &'a Stats,
    /// By stage.
    pub(super) own: &'a [Spread],
    pub(super) stages: &'a [Stage],
    /// Past inflows, the most recent first, and their seasons where they are given.
    pub(super) past: &'a [f64],
    pub(super) seasons: &'a [Id],
    /// Observations of the season in which the first stage begins.
    pub(super) recent: &'a [KnownInflow],
    /// By stage.
    pub(super) annual: &'a [Option<AnnualComponent>],
    pub(super) thing: &'a str,
}

/// The coefficients of a stage, and the part of its deviation that is new.
struct StageLags {
    coefficients: Vec<f64>,
    residual: f64,
    annual: Option<AnnualComponent>,
}

impl StageLags {
    fn order(&self) -> usize {
        let annual = if self.annual.is_some() { MONTHS } else { 0 };
        self.coefficients.len().max(annual)
    }
}

impl PlantInflow<'_> {
    pub(super) fn resolve(&self, mut lags: Lags, findings: &mut Findings) -> Inflow {
        let by_stage = self.stages.iter().enumerate();
        let by_stage = by_stage.map(|(number, stage)| {
            let (coefficients, residual) = lags.remove(&stage.id).unwrap_or((Vec::new(), 1.0));
            StageLags {
                coefficients,
                residual,
                annual: self.annual[number].filter(|row| row.annual_coefficient.0 != 0.0),
            }
        });
        let by_stage: Vec<StageLags> = by_stage.collect();
        let orders: Vec<usize> = by_stage.iter().map(StageLags::order).collect();
        let states = match self.sources.timeline {
            Some(timeline) => self.season_states(timeline, &orders, findings),
            None => self.stage_states(&orders, findings),
        };
        let mut models = Vec::new();
        for (number, lags) in by_stage.iter().enumerate() {
            let mut model = self.model(number, lags, findings);
            model.coefficients = vec![0.0; states.initial.len()];
            for (state, factor) in states.lags[number].iter().zip(&model.by_lag) {
                if let Some(state) = state {
                    model.coefficients[*state] = *factor;
                }
            }
            model.carried.clone_from(&states.carried[number]);
            models.push(model);
        }
        Inflow {
            stages: models,
            past: states.initial,
            names: states.names,
            known: true,
            ..Inflow::default()
        }
    }

    /// The states where lags are stages.
    fn stage_states(&self, orders: &[usize], findings: &mut Findings) -> LagStates {
        let order = orders.iter().copied().max().unwrap_or(0);
        let needed = orders.iter().enumerate();
        let needed = needed.map(|(number, order)| order.saturating_sub(number));
        let needed = needed.max().unwrap_or(0);
        let observed = self.latest();
        let past = if self.past.is_empty() {
            &observed
        } else {
            self.past
        };
        if past.len() < needed {
            self.too_few(needed, past.len(), findings);
        }
        let mut initial = past.to_vec();
        initial.resize(order, 0.0);
        let kept = (1..order).map(|place| CarriedInflow::kept(place - 1));
        let newest = std::iter::once(CarriedInflow::newest());
        let carried: Vec<CarriedInflow> = newest.chain(kept).take(order).collect();
        LagStates {
            names: (1..=order).map(|lag| format!("inflow_lag{lag}")).collect(),
            initial,
            carried: vec![carried; orders.len()],
            lags: vec![(0..order).map(Some).collect(); orders.len()],
        }
    }

    /// The observations before the first stage, the most recent first.
    fn latest(&self) -> Vec<f64> {
        let start = self.stages.first().map(|stage| stage.start_date);
        let id = self.files.hydros.hydros[self.place].id;
        let rows = self.files.inflow_history.iter();
        let rows = rows.filter(|row| row.hydro_id == id && Some(row.date) < start);
        let mut rows: Vec<_> = rows.map(|row| (row.date, row.value_m3s.0)).collect();
        rows.sort_by_key(|(date, _)| std::cmp::Reverse(*date));
        rows.into_iter().map(|(_, value)| value).collect()
    }

    fn too_few(&self, needed: usize, given: usize, findings: &mut Findings) {
        let at = Place::file(initial::FILE).key("past_inflows");
        let message = format!(
            "{} needs {needed} past inflows, the most recent first; it has {given}",
            self.thing
        );
        findings.wrong(&at, message);
    }

    /// The states where lags are seasons.
    fn season_states(
        &self,
        timeline: &SeasonTimeline,
        orders: &[usize],
        findings: &mut Findings,
    ) -> LagStates {
        let order = orders.iter().copied().max().unwrap_or(0);
        let mut known = self.recent.to_vec();
        let mut means = Vec::new();
        for lag in 1..=order.max(self.past.len()) {
            let Some(period) = timeline.before(0, lag) else {
                break;
            };
            let given = self.past.get(lag - 1).copied();
            let history = self.sources.history;
            let mean = given.or_else(|| {
                let (mean, observed) = history.inflow(self.place, &period, timeline)?;
                if !observed {
                    means.push(lag);
                }
                Some(mean)
            });
            known.extend(mean.map(|mean| KnownInflow {
                start: period.start,
                end: period.end,
                mean,
            }));
        }
        let states = timeline.states(orders, &known);
        self.check_lags(orders, &states, findings);
        if order > 0 {
            self.check_recent(timeline, findings);
        }
        if let (Some(first), Some(last)) = (means.first(), means.last()) {
            let at = Place::file(initial::FILE).key("past_inflows");
            let message = format!(
                "{} has {} values and its model goes back {order} seasons: {first} to {last} before the first stage are \
                 taken as the means of their seasons",
                self.thing,
                self.past.len()
            );
            findings.doubtful(&at, message);
        }
        states
    }

    /// Says how much of the season in which the first stage begins is not known.
    fn check_recent(&self, timeline: &SeasonTimeline, findings: &mut Findings) {
        let (start, _, period) = timeline.stages[0];
        let observed = self.recent.iter();
        let observed: i64 = observed
            .map(|known| period.overlap(known.start, known.end))
            .sum();
        let over = (start.0 - period.start.0).max(0);
        if observed < over {
            let at = Place::file(initial::FILE).key("recent_observations");
            let message = format!(
                "{over} days of the season of the first stage are over, and {observed} of them are observed for {}: the \
                 mean of the season is that of the days that are known",
                self.thing
            );
            findings.doubtful(&at, message);
        }
    }

    /// Says which lags nothing is known of.
    fn check_lags(&self, orders: &[usize], states: &LagStates, findings: &mut Findings) {
        let lacking = orders.iter().zip(&states.lags).zip(self.stages);
        let mut lacking = lacking.filter_map(|((order, lags), stage)| {
            let lag = (0..*order).find(|lag| lags.get(*lag).copied().flatten().is_none());
            Some((stage.id, lag? + 1))
        });
        if let Some((stage, lag)) = lacking.next() {
            let at = Place::file(initial::FILE).key("past_inflows");
            let message = format!(
                "{} needs the inflow of the season {lag} before that of stage {stage}; {} past inflows are given, the most \
                 recent first",
                self.thing,
                self.past.len()
            );
            findings.wrong(&at, message);
        }
    }

    /// The model of a stage, with a coefficient for each of its lags.
    fn model(&self, number: usize, lags: &StageLags, findings: &mut Findings) -> InflowModel {
        let own = self.own[number];
        let mut model = InflowModel {
            constant: own.mean,
            deviation: own.deviation * lags.residual,
            overall: Some(own),
            standardised: lags.coefficients.clone(),
            residual: lags.residual,
            ..InflowModel::default()
        };
        let at = Place::file(InflowStats::FILE).rows(self.thing);
        let annual = self.annual_part(number, lags, findings);
        model.standardised.resize(lags.order(), 0.0);
        for lag in 1..=lags.order() {
            let coefficient = lags.coefficients.get(lag - 1).copied().unwrap_or(0.0);
            let Some(before) = self.before(number, lag) else {
                let message = self.unknown_lag(number, lag);
                findings.wrong(&at, message);
                model.by_lag.push(0.0);
                continue;
            };
            if before.deviation == 0.0 && coefficient != 0.0 {
                let stage = self.stages[number].id;
                let message = format!(
                    "std_m3s is 0, {lag} stages before stage {stage}; lag {lag} is in units of it and has no meaning"
                );
                findings.wrong(&at, message);
            }
            let scaled = if before.deviation == 0.0 {
                annual
            } else {
                coefficient * own.deviation / before.deviation + annual
            };
            if own.deviation > 0.0 && annual != 0.0 {
                model.standardised[lag - 1] += annual * before.deviation / own.deviation;
            }
            model.constant -= scaled * before.mean;
            model.by_lag.push(scaled);
        }
        model
    }

    /// Says how mean and deviation of a lag can be given.
    fn unknown_lag(&self, number: usize, lag: usize) -> String {
        let stage = self.stages[number].id;
        let period = self.sources.timeline.and_then(|timeline| {
            let period = timeline.before(number, lag)?;
            // Seasons before the first stage's have the numbers of stages before it.
            let counted = (1..=lag).any(|back| timeline.before(0, back) == Some(period));
            period
                .season
                .filter(|_| !counted)
                .map(|season| (season, period))
        });
        match period {
            Some((season, Period { start, end, .. })) => format!(
                "lag {lag} of stage {stage} needs mean and deviation of season {season}, which no stage has: add it to \
                 pre_study_stages of stages.json, from {start} to {end}, and a row of its number"
            ),
            None => format!(
                "lag {lag} of stage {stage} needs mean and deviation of a stage before the first: add a row for stage \
                 {}, or its season to pre_study_stages of stages.json",
                number.cast_signed() - lag.cast_signed()
            ),
        }
    }

    /// The coefficient that the annual component adds to each of twelve lags.
    fn annual_part(&self, number: usize, lags: &StageLags, findings: &mut Findings) -> f64 {
        let Some(row) = lags.annual else {
            return 0.0;
        };
        let at = Place::file(AnnualComponent::FILE).rows(self.thing);
        let timeline = self.sources.timeline;
        if timeline.is_some_and(|timeline| !timeline.seasons.are_months()) {
            findings.wrong(
                &at,
                "an annual component needs seasons of cycle_type monthly",
            );
            return 0.0;
        }
        if row.annual_std_m3s.0 == 0.0 {
            let message = format!(
                "annual_std_m3s of stage {} is 0; annual_coefficient is in units of it and has no meaning",
                row.stage_id
            );
            findings.wrong(&at, message);
            return 0.0;
        }
        let own = self.own[number].deviation;
        row.annual_coefficient.0 * own / row.annual_std_m3s.0 / MONTHS as f64
    }

    /// Mean and deviation of what a lag of a stage is the inflow of.
    fn before(&self, number: usize, lag: usize) -> Option<Spread> {
        match self.sources.timeline {
            Some(timeline) => self.season_before(timeline, number, lag),
            None => self.stage_before(number, lag),
        }
    }

    /// The statistics of the season that is `lag` seasons before that of a stage.
    fn season_before(
        &self,
        timeline: &SeasonTimeline,
        number: usize,
        lag: usize,
    ) -> Option<Spread> {
        let period = timeline.before(number, lag)?;
        let stages = timeline.stages.iter();
        let mut same = stages.clone().map(|(_, _, own)| own);
        if let Some(stage) = same.position(|own| *own == period) {
            return Some(self.own[stage]);
        }
        let back = (1..=lag).find(|back| timeline.before(0, *back) == Some(period));
        let by_number = back.and_then(|back| Id::try_from(back).ok());
        let by_number = by_number.and_then(|back| self.stats.get(&(self.place, -back)));
        if let Some(given) = by_number {
            return Some(*given);
        }
        let mut same = stages.map(|(_, _, own)| own);
        let alike = same.position(|own| own.season.is_some() && own.season == period.season);
        if let Some(stage) = alike {
            return Some(self.own[stage]);
        }
        let before = self.files.stages.pre_study_stages.iter().flatten();
        let mut before = before.filter(|stage| {
            let alike = stage.season_id.is_some() && stage.season_id == period.season;
            alike || (stage.start_date, stage.end_date) == (period.start, period.end)
        });
        let given = before.find_map(|stage| self.stats.get(&(self.place, stage.id)));
        given.copied()
    }

    /// The statistics of the stage that is `lag` stages before this one.
    fn stage_before(&self, number: usize, lag: usize) -> Option<Spread> {
        if lag <= number {
            return Some(self.own[number - lag]);
        }
        let back = lag - number;
        let id = Id::try_from(back).ok().map(|back| -back);
        if let Some(given) = id.and_then(|id| self.stats.get(&(self.place, id))) {
            return Some(*given);
        }
        let before = self.files.stages.pre_study_stages.iter().flatten();
        let mut before = before.filter(|stage| usize::try_from(-i64::from(stage.id)) == Ok(back));
        let season = before.next().and_then(|stage| stage.season_id);
        let season = season.or_else(|| self.seasons.get(back - 1).copied())?;
        let same = self
            .stages
            .iter()
            .position(|stage| stage.season == Some(season))?;
        Some(self.own[same])
    }
}
