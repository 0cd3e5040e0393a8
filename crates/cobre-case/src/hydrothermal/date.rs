//! Days of the calendar.

use std::fmt;

use cobre_results::calendar;
use serde_json::{Value, json};

use super::json::{Json, Read, expected};
use super::table::{Cell, Column};
use crate::finding::{Findings, Place};

/// A day, counted from 1970-01-01.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Date(pub(crate) i64);

impl Date {
    /// The day of a text such as `2026-01-31`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let parts: Vec<&str> = text.split('-').collect();
        let [year, month, day] = parts[..] else {
            return None;
        };
        let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if (year.len(), month.len(), day.len()) != (4, 2, 2)
            || !parts.iter().all(|part| digits(part))
        {
            return None;
        }
        let (year, month, day) = (year.parse().ok()?, month.parse().ok()?, day.parse().ok()?);
        let valid = (1..=12).contains(&month) && (1..=calendar::length(year, month)).contains(&day);
        valid.then(|| Self(calendar::first_of(year, month) + day - 1))
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&calendar::text(self.0))
    }
}

impl Date {
    /// The year, the month from 1 and the day of the month from 1.
    pub(crate) fn calendar(self) -> (i64, i64, i64) {
        calendar::date(self.0)
    }

    /// A day by its year, month from 1 and day; days beyond the end of the month are its last.
    pub(crate) fn of(year: i64, month: i64, day: i64) -> Self {
        Self(calendar::first_of(year, month) + day.min(calendar::length(year, month)) - 1)
    }

    /// Its month, from 0, and the days of that month.
    pub(crate) fn month(self) -> (usize, i64) {
        let (year, month, _) = self.calendar();
        let month_from_0 = usize::try_from(month - 1).unwrap_or(0);
        (month_from_0, calendar::length(year, month))
    }

    /// The first day of its ISO week, a Monday.
    pub(crate) fn monday(self) -> Self {
        // 1970-01-01 is a Thursday.
        Self(self.0 - (self.0 + 3).rem_euclid(7))
    }

    /// Its ISO year, and its week from 1.
    pub(crate) fn week(self) -> (i64, i64) {
        // The year of a week is that of its Thursday.
        let thursday = Self(self.monday().0 + 3);
        let (year, _, _) = thursday.calendar();
        (year, (thursday.0 - calendar::first_of(year, 1)) / 7 + 1)
    }
}

/// The first and the last day that files may have: 0001-01-01 and 9999-12-31.
const DAYS: std::ops::RangeInclusive<f64> = -719_162.0..=2_932_896.0;

impl Cell for Date {
    const COLUMN: Column = Column::Date;
    const WHAT: &'static str = "a day (date32) from 0001-01-01 to 9999-12-31";

    fn of(value: f64) -> Option<Self> {
        DAYS.contains(&value).then_some(Self(value as i64))
    }
}

impl Read for Date {
    fn read(json: &Json, at: &Place, findings: &mut Findings) -> Option<Self> {
        let date = match json {
            Json::Text(text) => Self::parse(text),
            _ => None,
        };
        date.or_else(|| expected("a date such as \"2026-01-31\"", json, at, findings))
    }

    fn schema() -> Value {
        json!({"type": "string", "format": "date"})
    }
}

#[cfg(test)]
mod tests {
    use super::Date;

    #[test]
    fn days_are_counted_across_leap_years() {
        let day = |text| Date::parse(text).map(|date| date.0);
        assert_eq!(day("1970-01-01"), Some(0));
        assert_eq!(day("2000-03-01"), Some(11_017));
        assert_eq!(
            day("2024-03-01").zip(day("2024-02-01")).map(|(b, a)| b - a),
            Some(29)
        );
        assert_eq!(
            day("2100-03-01").zip(day("2100-02-01")).map(|(b, a)| b - a),
            Some(28)
        );
    }

    #[test]
    fn months_are_those_of_the_calendar() {
        let month = |text| Date::parse(text).map(Date::month);
        assert_eq!(month("1970-01-01"), Some((0, 31)));
        assert_eq!(month("2024-02-29"), Some((1, 29)));
        assert_eq!(month("2023-12-31"), Some((11, 31)));
        assert_eq!(month("2100-02-01"), Some((1, 28)));
        assert_eq!(month("1969-12-31"), Some((11, 31)));
        assert_eq!(month("0001-01-01"), Some((0, 31)));
        assert_eq!(month("9999-11-30"), Some((10, 30)));
    }

    #[test]
    fn weeks_are_those_of_iso_8601() {
        let week = |text| Date::parse(text).map(Date::week);
        assert_eq!(week("2024-01-01"), Some((2024, 1)));
        assert_eq!(week("2023-01-01"), Some((2022, 52)));
        assert_eq!(week("2021-01-03"), Some((2020, 53)));
        assert_eq!(week("2018-12-31"), Some((2019, 1)));
        let day = Date::of(2024, 2, 31);
        assert_eq!(day.to_string(), "2024-02-29");
        assert_eq!(day.calendar(), (2024, 2, 29));
        assert_eq!(day.monday().to_string(), "2024-02-26");
    }

    #[test]
    fn what_is_no_day_is_refused() {
        for text in [
            "2023-02-29",
            "2023-13-01",
            "2023-1-01",
            "20230101",
            "2023-01-00",
            "+023-01-01",
            "",
        ] {
            assert_eq!(Date::parse(text), None, "{text}");
        }
    }
}
