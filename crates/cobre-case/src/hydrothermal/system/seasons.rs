//! Seasons: the periods that lags of inflows count.

use crate::finding::{Findings, Place};
use crate::hydrothermal::date::Date;
use crate::hydrothermal::files::inflow::{CycleType, Season, SeasonDefinitions};
use crate::hydrothermal::files::stages;
use crate::hydrothermal::number::Id;

/// Days by which the seasons of a custom cycle may miss each other: 29 February.
const LEAP_DAY: i64 = 1;
const DAYS_OF_YEAR: i64 = 366;

/// A season of a certain year.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Period {
    /// Its first day.
    pub(crate) start: Date,
    /// The day after its last.
    pub(crate) end: Date,
    /// The number of the season; none for a month that the file does not name.
    pub(crate) season: Option<Id>,
    /// The number of its resolution: periods of one follow each other without gap or overlap.
    pub(crate) resolution: usize,
}

impl Period {
    /// Its days.
    pub(crate) fn days(&self) -> i64 {
        self.end.0 - self.start.0
    }

    /// The days that it shares with others.
    pub(crate) fn overlap(&self, start: Date, end: Date) -> i64 {
        (self.end.0.min(end.0) - self.start.0.max(start.0)).max(0)
    }
}

/// The seasons of a case.
#[derive(Debug)]
pub(crate) enum Seasons {
    /// Calendar months, with the season of each.
    Months([Option<Id>; 12]),
    /// ISO weeks; the 53rd belongs to the season of the 52nd.
    Weeks,
    /// Days of the year.
    Days(Vec<DaySeason>),
}

/// A season from a day of the year to another.
#[derive(Debug)]
pub(crate) struct DaySeason {
    id: Id,
    /// Month and day.
    first: (i64, i64),
    last: (i64, i64),
    /// The place of the season before it.
    before: Option<usize>,
    /// The first place of those that follow each other with it.
    resolution: usize,
}

impl DaySeason {
    /// The season that begins in a year.
    fn of(&self, year: i64) -> Period {
        let ends = year + i64::from(self.last < self.first);
        let (month, day) = self.last;
        // 28 February is the last of its month in every year.
        let day = if self.last == (2, 28) { 29 } else { day };
        Period {
            start: Date::of(year, self.first.0, self.first.1),
            end: Date(Date::of(ends, month, day).0 + 1),
            season: Some(self.id),
            resolution: self.resolution,
        }
    }

    /// The day of a common year that follows it.
    fn next_day(&self) -> (i64, i64) {
        let last = Date::of(2023, self.last.0, self.last.1);
        let (_, month, day) = Date(last.0 + 1).calendar();
        (month, day)
    }

    fn days(&self) -> i64 {
        self.of(2022).days()
    }
}

impl Seasons {
    /// The seasons that a file defines; says what is wrong with them.
    pub(crate) fn resolve(file: &SeasonDefinitions, findings: &mut Findings) -> Self {
        let at = Place::file(stages::FILE)
            .key("season_definitions")
            .key("seasons");
        let before = findings.count();
        for (place, season) in file.seasons.iter().enumerate() {
            let earlier = file.seasons[..place].iter();
            if earlier.clone().any(|earlier| earlier.id == season.id) {
                let message = format!("season {} is there already", season.id);
                findings.wrong(&at.index(place).key("id"), message);
            }
        }
        match file.cycle_type {
            CycleType::Weekly => Self::weeks(file, &at, findings),
            CycleType::Monthly => Self::months(file, &at, findings),
            CycleType::Custom => {
                let list = file.seasons.iter().enumerate();
                let list = list
                    .filter_map(|(place, season)| day_season(season, &at.index(place), findings));
                let mut list: Vec<DaySeason> = list.collect();
                if findings.count() == before {
                    link(&mut list);
                }
                Self::Days(list)
            }
        }
    }

    fn weeks(file: &SeasonDefinitions, at: &Place, findings: &mut Findings) -> Self {
        for (place, season) in file.seasons.iter().enumerate() {
            if !(0..=51).contains(&season.id) {
                let message = format!("a week from 0 to 51 is expected, {} is found", season.id);
                findings.wrong(&at.index(place).key("id"), message);
            }
        }
        Self::Weeks
    }

    fn months(file: &SeasonDefinitions, at: &Place, findings: &mut Findings) -> Self {
        let mut months = [None; 12];
        for (place, season) in file.seasons.iter().enumerate() {
            let at = at.index(place).key("month_start");
            let Some(month) = season.month_start else {
                findings.wrong(&at, "the key is missing; a monthly season needs it");
                continue;
            };
            if let Some(other) = months[month.0 - 1].replace(season.id) {
                let message = format!("season {other} has month {} already", month.0);
                findings.wrong(&at, message);
            }
        }
        Self::Months(months)
    }

    /// True if lags are calendar months.
    pub(crate) fn are_months(&self) -> bool {
        matches!(self, Self::Months(_))
    }

    /// The number of seasons of a resolution in a year.
    pub(crate) fn count(&self, resolution: usize) -> usize {
        match self {
            Self::Months(_) => 12,
            Self::Weeks => 52,
            Self::Days(seasons) => {
                let own = seasons.iter();
                own.filter(|season| season.resolution == resolution).count()
            }
        }
    }

    /// The place of a period among the seasons of its resolution, in the order of the year.
    pub(crate) fn place(&self, period: &Period) -> usize {
        match self {
            Self::Months(_) => period.start.month().0,
            Self::Weeks => {
                let (_, week) = period.start.week();
                usize::try_from(week.min(52) - 1).unwrap_or(0)
            }
            Self::Days(seasons) => {
                let own = seasons
                    .iter()
                    .filter(|own| own.resolution == period.resolution);
                let (_, month, day) = period.start.calendar();
                own.filter(|own| own.first < (month, day)).count()
            }
        }
    }

    /// The period of the calendar that has a day: the first of the file, where several have it.
    pub(crate) fn at(&self, day: Date) -> Option<Period> {
        match self {
            Self::Months(months) => Some(month(day, months)),
            Self::Weeks => Some(week(day)),
            Self::Days(seasons) => {
                let found = seasons.iter().map(|season| containing(season, day));
                found.flatten().next()
            }
        }
    }

    /// The period of a resolution that has a day.
    pub(crate) fn at_in(&self, resolution: usize, day: Date) -> Option<Period> {
        let Self::Days(seasons) = self else {
            return self.at(day);
        };
        let own = seasons.iter();
        let mut own = own.filter(|season| season.resolution == resolution);
        own.find_map(|season| containing(season, day))
    }

    /// The period of a season that shares most days with a stage; none if no day is shared.
    pub(crate) fn of_season(&self, season: Id, start: Date, end: Date) -> Option<Period> {
        let (year, _, _) = start.calendar();
        let candidates: Vec<Period> = match self {
            Self::Months(_) | Self::Weeks => self.within(start, end),
            Self::Days(seasons) => {
                let own = seasons.iter().filter(|own| own.id == season);
                own.flat_map(|own| (year - 1..=year + 1).map(|year| own.of(year)))
                    .collect()
            }
        };
        let own = candidates.into_iter();
        let own = own.filter(|period| period.season == Some(season));
        let own = own.filter(|period| period.overlap(start, end) > 0);
        // The first of those that share as many.
        own.rev().max_by_key(|period| period.overlap(start, end))
    }

    /// The period of a season that is nearest to a stage which is shorter than it and has none of its days: the last
    /// week of a month's plan.
    pub(crate) fn nearest(&self, season: Id, start: Date, end: Date) -> Option<Period> {
        let (year, _, _) = start.calendar();
        let candidates: Vec<Period> = match self {
            Self::Months(_) | Self::Weeks => {
                self.within(Date(start.0 - DAYS_OF_YEAR), Date(end.0 + DAYS_OF_YEAR))
            }
            Self::Days(seasons) => {
                let own = seasons.iter().filter(|own| own.id == season);
                own.flat_map(|own| (year - 1..=year + 1).map(|year| own.of(year)))
                    .collect()
            }
        };
        let distance = |period: &Period| (start.0 - period.end.0).max(period.start.0 - end.0);
        let own = candidates.into_iter();
        let own = own.filter(|period| period.season == Some(season));
        let found = own.min_by_key(distance)?;
        let near = distance(&found) < found.days();
        (near && end.0 - start.0 < found.days()).then_some(found)
    }

    /// The periods of the calendar from a day to another.
    fn within(&self, start: Date, end: Date) -> Vec<Period> {
        let mut found = Vec::new();
        let mut next = self.at(start);
        while let Some(period) = next.filter(|period| period.start < end) {
            next = self.at(period.end);
            found.push(period);
        }
        found
    }

    /// The period before another, of the same resolution.
    pub(crate) fn before(&self, period: &Period) -> Option<Period> {
        let day = Date(period.start.0 - 1);
        match self {
            Self::Months(_) | Self::Weeks => self.at(day),
            Self::Days(seasons) => {
                let own = seasons.iter().find(|own| Some(own.id) == period.season)?;
                let before = &seasons[own.before?];
                let (year, _, _) = day.calendar();
                let near = |before: &Period| (period.start.0 - before.end.0).abs() <= LEAP_DAY;
                let mut found = (year - 1..=year + 1).map(|year| before.of(year));
                found.find(near)
            }
        }
    }

    /// The period after another, of the same resolution.
    pub(crate) fn after(&self, period: &Period) -> Option<Period> {
        let after = self.at_in(period.resolution, period.end);
        after.or_else(|| self.at_in(period.resolution, Date(period.end.0 + LEAP_DAY)))
    }
}

fn month(day: Date, months: &[Option<Id>; 12]) -> Period {
    let (year, month, _) = day.calendar();
    let start = Date::of(year, month, 1);
    let (place, days) = start.month();
    Period {
        start,
        end: Date(start.0 + days),
        season: months[place],
        resolution: 0,
    }
}

fn week(day: Date) -> Period {
    let monday = day.monday();
    let (_, number) = monday.week();
    // The 53rd week joins the 52nd.
    let start = Date(monday.0 - if number == 53 { 7 } else { 0 });
    let next = Date(start.0 + 7);
    let joined = next.week().1 == 53;
    Period {
        start,
        end: Date(next.0 + if joined { 7 } else { 0 }),
        season: Id::try_from(number.min(52) - 1).ok(),
        resolution: 0,
    }
}

/// The period of a season that has a day.
fn containing(season: &DaySeason, day: Date) -> Option<Period> {
    let (year, _, _) = day.calendar();
    let periods = (year - 1..=year).map(|year| season.of(year));
    let mut own = periods.filter(|period| (period.start..period.end).contains(&day));
    own.next()
}

fn day_season(season: &Season, at: &Place, findings: &mut Findings) -> Option<DaySeason> {
    let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    let Some(month) = season.month_start else {
        let at = at.key("month_start");
        findings.wrong(&at, "the key is missing; a custom season needs it");
        return None;
    };
    let first_month = number(month.0);
    let last_month = season
        .month_end
        .map_or(first_month, |month| number(month.0));
    let first = season.day_start.map_or(1, |day| number(day.0));
    let last = season.day_end.map_or(31, |day| number(day.0));
    // Of a leap year, so that 29 February can be named.
    let in_month = |month: i64, day: i64| Date::of(2024, month, day).calendar().2;
    for (key, month, day) in [
        ("day_start", first_month, first),
        ("day_end", last_month, last),
    ] {
        let given = key == "day_start" || season.day_end.is_some();
        if given && in_month(month, day) != day {
            findings.wrong(&at.key(key), format!("month {month} has no day {day}"));
            return None;
        }
    }
    Some(DaySeason {
        id: season.id,
        first: (first_month, first),
        last: (last_month, in_month(last_month, last)),
        before: None,
        resolution: 0,
    })
}

/// Finds the season before each, of about the same length, and which follow each other.
fn link(list: &mut [DaySeason]) {
    let before: Vec<Option<usize>> = list
        .iter()
        .map(|own| {
            let adjoining = list.iter().enumerate();
            let adjoining = adjoining.filter(|(_, other)| other.next_day() == own.first);
            let closest = adjoining.min_by_key(|(_, other)| (other.days() - own.days()).abs());
            closest.map(|(place, _)| place)
        })
        .collect();
    for (season, before) in list.iter_mut().zip(&before) {
        season.before = *before;
    }
    for place in 0..list.len() {
        let (mut own, mut least) = (place, place);
        for _ in 0..list.len() {
            let Some(before) = list[own].before else {
                break;
            };
            own = before;
            least = least.min(own);
        }
        list[place].resolution = least;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date(text: &str) -> Date {
        Date::parse(text).expect("a date")
    }

    fn seasons(text: &str) -> Seasons {
        use crate::hydrothermal::json::{Json, Read};
        let json: Json = serde_json::from_str(text).expect("JSON");
        let mut findings = Findings::default();
        let file = SeasonDefinitions::read(&json, &Place::file(""), &mut findings);
        let found = Seasons::resolve(&file.expect("sound"), &mut findings);
        assert_eq!(findings.count(), 0);
        found
    }

    #[test]
    fn weeks_follow_each_other_over_the_end_of_long_years() {
        let weeks = Seasons::Weeks;
        let first = weeks.at(date("2021-01-06")).expect("a week");
        assert_eq!((first.season, first.days()), (Some(0), 7));
        let last = weeks.before(&first).expect("a week");
        assert_eq!((last.season, last.days()), (Some(51), 14));
        assert_eq!(last.start, date("2020-12-21"));
        assert_eq!(weeks.at(date("2021-01-02")), Some(last));
        assert_eq!(weeks.after(&last), Some(first));
    }

    #[test]
    fn months_and_quarters_of_one_file_are_two_resolutions() {
        let month = |id: usize| format!(r#"{{"id": {id}, "month_start": {}}}"#, id + 1);
        let mut list: Vec<String> = (0..12).map(month).collect();
        let quarter = |id: usize| {
            let first = 3 * (id - 12) + 1;
            format!(
                r#"{{"id": {id}, "month_start": {first}, "month_end": {}}}"#,
                first + 2
            )
        };
        list.extend((12..16).map(quarter));
        let found = seasons(&format!(
            r#"{{"cycle_type": "custom", "seasons": [{}]}}"#,
            list.join(",")
        ));
        let quarter = found
            .of_season(14, date("2024-07-01"), date("2024-10-01"))
            .expect("the third quarter");
        assert_eq!((quarter.resolution, quarter.days()), (12, 92));
        let before = found.before(&quarter).expect("the second");
        assert_eq!(
            (before.season, before.start),
            (Some(13), date("2024-04-01"))
        );
        let march = found.at(date("2024-03-01")).expect("March");
        assert_eq!((march.season, march.resolution), (Some(2), 0));
        let february = found.before(&march).expect("February");
        assert_eq!((february.season, february.days()), (Some(1), 29));
        assert_eq!(found.after(&february), Some(march));
        let first = found.at_in(12, date("2024-02-29")).expect("the first");
        assert_eq!(first.season, Some(12));
    }

    #[test]
    fn seasons_may_wrap_around_the_end_of_the_year() {
        let found = seasons(
            r#"{"cycle_type": "custom", "seasons": [
                {"id": 0, "month_start": 11, "day_start": 16, "month_end": 4, "day_end": 15},
                {"id": 1, "month_start": 4, "day_start": 16, "month_end": 11, "day_end": 15}]}"#,
        );
        let wet = found.at(date("2024-02-01")).expect("wet");
        assert_eq!(
            (wet.start, wet.end),
            (date("2023-11-16"), date("2024-04-16"))
        );
        let dry = found.before(&wet).expect("dry");
        assert_eq!((dry.season, dry.start), (Some(1), date("2023-04-16")));
        assert_eq!(found.after(&dry), Some(wet));
        let stage = (date("2024-04-10"), date("2024-04-20"));
        let other = found
            .of_season(1, stage.0, stage.1)
            .expect("it shares days");
        assert_eq!(other.start, date("2024-04-16"));
        assert_eq!(
            found.of_season(1, date("2024-01-01"), date("2024-02-01")),
            None
        );
    }
}
