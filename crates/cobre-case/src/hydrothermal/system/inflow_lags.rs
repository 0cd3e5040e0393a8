//! Past inflows as states: means of seasons, and the part of the current one that is over.
//!
//! The inflow of a stage enters the season that it belongs to by its share of the days. The mean of a season becomes
//! lag 1 after the last stage that belongs to it, over the days that are known; days of that stage beyond its end start
//! the next season. Until then lags stand still.

use std::collections::HashMap;

use super::inflow::CarriedInflow;
use super::seasons::{Period, Seasons};
use crate::finding::{Findings, Place};
use crate::hydrothermal::date::Date;
use crate::hydrothermal::files::stages::{self, Stages};
use crate::hydrothermal::number::Id;

/// Days by which stages of one season may differ.
const SIMILAR_DAYS: i64 = 7;

/// Time as lags see it.
#[derive(Debug)]
pub(crate) struct SeasonTimeline {
    pub(crate) seasons: Seasons,
    /// First day, day after the last, and season by stage.
    pub(crate) stages: Vec<(Date, Date, Period)>,
}

/// A mean inflow that is known before the first stage.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KnownInflow {
    pub(crate) start: Date,
    pub(crate) end: Date,
    /// m³/s.
    pub(crate) mean: f64,
}

/// The states of the past inflows of a plant.
#[derive(Debug, Default)]
pub(crate) struct LagStates {
    pub(crate) names: Vec<String>,
    pub(crate) initial: Vec<f64>,
    /// By stage and state.
    pub(crate) carried: Vec<Vec<CarriedInflow>>,
    /// By stage, the states that are its lags, from lag 1; none where nothing is known of one.
    pub(crate) lags: Vec<Vec<Option<usize>>>,
}

impl SeasonTimeline {
    /// The seasons of the stages of a case, if it defines any; says which stages have none.
    pub(super) fn resolve(file: &Stages, findings: &mut Findings) -> Option<Self> {
        let definitions = file.season_definitions.as_ref()?;
        let before = findings.errors();
        let seasons = Seasons::resolve(definitions, findings);
        let known = |id: Id| definitions.seasons.iter().any(|season| season.id == id);
        let mut stages = Vec::new();
        for (place, stage) in file.stages.iter().enumerate() {
            let at = Place::file(stages::FILE).key("stages").index(place);
            let at = at.key("season_id");
            let (start, end) = (stage.start_date, stage.end_date);
            let period = match stage.season_id {
                Some(id) if !known(id) => {
                    findings.wrong(
                        &at,
                        format!("there is no season {id} in season_definitions"),
                    );
                    continue;
                }
                Some(id) => seasons.of_season(id, start, end).ok_or(()).or_else(|()| {
                    let message =
                        format!("no day of the stage, {start} to {end}, is in season {id}");
                    let near = seasons.nearest(id, start, end);
                    if near.is_some() {
                        findings.doubtful(&at, format!("{message}; it counts as a part of it"));
                    }
                    near.ok_or(message)
                }),
                None => seasons.at(start).ok_or_else(|| {
                    format!("the key is missing, and no season of season_definitions has {start}")
                }),
            };
            match period {
                Ok(period) => stages.push((start, end, period)),
                Err(message) => findings.wrong(&at, message),
            }
        }
        let found = (findings.errors() == before).then_some(Self { seasons, stages })?;
        found.compare_lengths(findings);
        Some(found)
    }

    /// Says if stages of one season differ in length, though their statistics are those of the season.
    fn compare_lengths(&self, findings: &mut Findings) {
        let mut first: HashMap<Id, i64> = HashMap::new();
        for (place, (start, end, period)) in self.stages.iter().enumerate() {
            let days = end.0 - start.0;
            let Some(season) = period.season else {
                continue;
            };
            let known = *first.entry(season).or_insert(days);
            if (days - known).abs() > SIMILAR_DAYS {
                let at = Place::file(stages::FILE).key("stages").index(place);
                let message = format!(
                    "the stage has {days} days, an earlier one of season {season} has {known}: inflows of a month and of \
                     a week do not have the same deviation"
                );
                findings.doubtful(&at.key("season_id"), message);
                return;
            }
        }
    }

    /// The period of a stage's resolution that is so many before its own.
    pub(crate) fn before(&self, stage: usize, lag: usize) -> Option<Period> {
        let mut period = self.stages[stage].2;
        for _ in 0..lag {
            period = self.seasons.before(&period)?;
        }
        Some(period)
    }

    /// The period of each lag of the first stage of a resolution: those that a study starts from.
    pub(crate) fn first(&self, resolution: usize) -> Option<Period> {
        let (start, _, first) = self.stages.first()?;
        if first.resolution == resolution {
            return Some(*first);
        }
        self.seasons.at_in(resolution, *start)
    }

    /// The resolutions of stages, in the order of time.
    pub(crate) fn resolutions(&self) -> Vec<usize> {
        let mut found = Vec::new();
        for (_, _, period) in &self.stages {
            if !found.contains(&period.resolution) {
                found.push(period.resolution);
            }
        }
        found
    }

    /// The states of a plant whose stages have so many lags.
    pub(crate) fn states(&self, orders: &[usize], known: &[KnownInflow]) -> LagStates {
        let mut states = LagStates {
            carried: vec![Vec::new(); self.stages.len()],
            lags: vec![Vec::new(); self.stages.len()],
            ..LagStates::default()
        };
        for (number, resolution) in self.resolutions().into_iter().enumerate() {
            let own = self.stages.iter().zip(orders);
            let own = own.filter(|((_, _, period), _)| period.resolution == resolution);
            let order = own.map(|(_, order)| *order).max().unwrap_or(0);
            if order > 0
                && let Some(first) = self.first(resolution)
            {
                let mut walk = LagWalk::new(self, first, order, known);
                walk.run(self);
                walk.add(self, number, resolution, &mut states);
            }
        }
        states
    }
}

/// A sum over the states of a resolution before a stage, and the inflow of the stage.
type Sum = CarriedInflow;

/// The states of one resolution through time: lags by place, and after them the sum of the current period.
struct LagWalk {
    order: usize,
    current: Period,
    /// The part of the current period that is known.
    weight: f64,
    /// By lag, whether anything is known of it.
    known: Vec<bool>,
    initial: Vec<f64>,
    /// By stage.
    carried: Vec<Vec<Sum>>,
    known_before: Vec<Vec<bool>>,
    /// True if the sum is not always zero between stages.
    partial: bool,
}

impl LagWalk {
    fn new(timeline: &SeasonTimeline, first: Period, order: usize, known: &[KnownInflow]) -> Self {
        let mut initial = Vec::new();
        let mut is_known = Vec::new();
        let mut period = Some(first);
        for _ in 0..order {
            period = period.and_then(|period| timeline.seasons.before(&period));
            let mean = period.and_then(|period| mean_of(&period, known));
            initial.push(mean.map_or(0.0, |(mean, _)| mean));
            is_known.push(mean.is_some());
        }
        let begun = mean_of(&first, known);
        let weight = begun.map_or(0.0, |(_, share)| share);
        initial.push(begun.map_or(0.0, |(mean, share)| mean * share));
        Self {
            order,
            current: first,
            weight,
            known: is_known,
            initial,
            carried: Vec::new(),
            known_before: Vec::new(),
            partial: weight > 0.0,
        }
    }

    fn run(&mut self, timeline: &SeasonTimeline) {
        for stage in 0..timeline.stages.len() {
            self.known_before.push(self.known.clone());
            let mut lags: Vec<Sum> = (0..self.order).map(Sum::kept).collect();
            let mut sum = if self.weight > 0.0 {
                Sum::kept(self.order)
            } else {
                Sum::default()
            };
            let (start, end, _) = timeline.stages[stage];
            loop {
                let days = self.current.overlap(start, end);
                let share = days as f64 / self.current.days() as f64;
                sum.own += share;
                self.weight += share;
                if !self.closes(timeline, stage) {
                    break;
                }
                let Some(next) = timeline.seasons.after(&self.current) else {
                    break;
                };
                lags.rotate_right(1);
                self.known.rotate_right(1);
                (lags[0], self.known[0]) = (divided(&sum, self.weight), self.weight > 0.0);
                (sum, self.weight, self.current) = (Sum::default(), 0.0, next);
            }
            self.partial |= self.weight > 0.0 && stage + 1 < timeline.stages.len();
            lags.push(sum);
            self.carried.push(lags);
        }
    }

    /// True if the current period ends with a stage.
    fn closes(&self, timeline: &SeasonTimeline, stage: usize) -> bool {
        let next = timeline.stages.get(stage + 1);
        match next {
            Some((_, _, next)) if next.resolution == self.current.resolution => {
                self.current.start < next.start
            }
            _ => self.current.end <= timeline.stages[stage].1,
        }
    }

    /// Adds its states to those of the plant.
    fn add(self, timeline: &SeasonTimeline, number: usize, resolution: usize, to: &mut LagStates) {
        let offset = to.initial.len();
        let count = self.order + usize::from(self.partial);
        let of = if number == 0 {
            String::new()
        } else {
            format!("_resolution{}", number + 1)
        };
        let names = (1..=self.order).map(|lag| format!("inflow_lag{lag}{of}"));
        to.names.extend(names);
        to.names
            .extend(self.partial.then(|| format!("inflow_sum{of}")));
        to.initial.extend(&self.initial[..count]);
        for (stage, mut carried) in self.carried.into_iter().enumerate() {
            carried.truncate(count);
            for state in &mut carried {
                for (place, _) in &mut state.past {
                    *place += offset;
                }
            }
            to.carried[stage].extend(carried);
            if timeline.stages[stage].2.resolution == resolution {
                let known = self.known_before[stage].iter().enumerate();
                to.lags[stage] = known
                    .map(|(lag, known)| known.then_some(offset + lag))
                    .collect();
            }
        }
    }
}

fn divided(sum: &Sum, weight: f64) -> Sum {
    let scale = |value: f64| if weight > 0.0 { value / weight } else { 0.0 };
    Sum {
        past: sum
            .past
            .iter()
            .map(|(place, factor)| (*place, scale(*factor)))
            .collect(),
        own: scale(sum.own),
    }
}

/// The mean over the known days of a period, and their share of it.
fn mean_of(period: &Period, known: &[KnownInflow]) -> Option<(f64, f64)> {
    let parts = known.iter().map(|known| {
        let days = period.overlap(known.start, known.end) as f64;
        (days, days * known.mean)
    });
    let (days, sum) = parts.fold((0.0, 0.0), |sum, part| (sum.0 + part.0, sum.1 + part.1));
    (days > 0.0).then(|| (sum / days, days / period.days() as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timeline(days: &[&str], seasons: Seasons) -> SeasonTimeline {
        let dates: Vec<Date> = days.iter().filter_map(|day| Date::parse(day)).collect();
        let stages = dates.windows(2).map(|pair| {
            let period = seasons.at(pair[0]).expect("a period");
            (pair[0], pair[1], period)
        });
        let stages = stages.collect();
        SeasonTimeline { seasons, stages }
    }

    fn months() -> Seasons {
        Seasons::Months(std::array::from_fn(|month| i32::try_from(month).ok()))
    }

    /// The values of states after stages with these inflows.
    fn walked(states: &LagStates, inflows: &[f64]) -> Vec<Vec<f64>> {
        let mut past = states.initial.clone();
        let mut found = Vec::new();
        for (carried, inflow) in states.carried.iter().zip(inflows) {
            past = carried
                .iter()
                .map(|carried| carried.value(&past, *inflow))
                .collect();
            found.push(past.clone());
        }
        found
    }

    #[test]
    fn months_shift_with_every_stage() {
        let days = ["2024-01-01", "2024-02-01", "2024-03-01", "2024-04-01"];
        let timeline = timeline(&days, months());
        let known = ["2023-11-01", "2023-12-01", "2024-01-01"].map(|day| Date::parse(day).unwrap());
        let known = [(0, 7.0), (1, 8.0)].map(|(place, mean)| KnownInflow {
            start: known[place],
            end: known[place + 1],
            mean,
        });
        let states = timeline.states(&[2, 1, 2], &known);
        assert_eq!(states.names, ["inflow_lag1", "inflow_lag2"]);
        assert_eq!(states.initial, [8.0, 7.0]);
        assert_eq!(states.carried[0], [Sum::newest(), Sum::kept(0)]);
        assert_eq!(states.lags[2], [Some(0), Some(1)]);
        let found = walked(&states, &[1.0, 2.0, 3.0]);
        assert_eq!(found[2], [3.0, 2.0]);
    }

    #[test]
    fn weeks_of_a_monthly_model_carry_the_part_of_the_month() {
        let days = [
            "2024-01-15",
            "2024-01-22",
            "2024-01-29",
            "2024-02-05",
            "2024-02-12",
        ];
        let timeline = timeline(&days, months());
        let recent = KnownInflow {
            start: Date::of(2024, 1, 8),
            end: Date::of(2024, 1, 15),
            mean: 10.0,
        };
        let december = KnownInflow {
            start: Date::of(2023, 12, 1),
            end: Date::of(2024, 1, 1),
            mean: 5.0,
        };
        let states = timeline.states(&[1; 4], &[december, recent]);
        assert_eq!(states.names, ["inflow_lag1", "inflow_sum"]);
        let found = walked(&states, &[20.0, 30.0, 40.0, 50.0]);
        assert_eq!((found[0][0], found[1][0]), (5.0, 5.0));
        // Days 8 to 31 of January are known: 7, 7 and 7, and 3 of the last week.
        let january = (70.0 + 140.0 + 210.0 + 120.0) / 24.0;
        assert!((found[2][0] - january).abs() < 1e-12, "{found:?}");
        assert!((found[2][1] - 4.0 * 40.0 / 29.0).abs() < 1e-12);
        assert!((found[3][1] - (160.0 + 350.0) / 29.0).abs() < 1e-12);
    }
}
