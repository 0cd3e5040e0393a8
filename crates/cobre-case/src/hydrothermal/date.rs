//! Days of the calendar.

use std::fmt;

use serde_json::{Value, json};

use super::json::{Json, Read, expected};
use crate::finding::{Findings, Place};

/// A day, counted from 1970-01-01.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Date(pub(crate) i64);

impl Date {
    fn parse(text: &str) -> Option<Self> {
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
        let valid = (1..=12).contains(&month) && (1..=length(year, month)).contains(&day);
        valid.then(|| Self(days(year, month) + day - 1))
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The year cannot be later than this, and is that or one before.
        let mut year = 1970 + self.0.div_euclid(365);
        while days(year, 1) > self.0 {
            year -= 1;
        }
        let month = (1..=12).rev().find(|month| days(year, *month) <= self.0);
        let month = month.unwrap_or(1);
        write!(
            f,
            "{year:04}-{month:02}-{:02}",
            self.0 - days(year, month) + 1
        )
    }
}

impl Date {
    /// Its month, from 0, and the days of that month.
    pub(crate) fn month(self) -> (usize, i64) {
        // No year has more than 366 days, so this one is not after that of the date.
        let mut year = 1970 + self.0.div_euclid(366) - i64::from(self.0 < 0);
        while days(year + 1, 1) <= self.0 {
            year += 1;
        }
        let month = (1..=12).rev().find(|month| days(year, *month) <= self.0);
        let month = month.unwrap_or(1);
        (usize::try_from(month - 1).unwrap_or(0), length(year, month))
    }
}

fn leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn length(year: i64, month: i64) -> i64 {
    match month {
        2 if leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 to the first of a month.
fn days(year: i64, month: i64) -> i64 {
    let before = year - 1;
    let to_year = 365 * before + before / 4 - before / 100 + before / 400 - 719_162;
    to_year + (1..month).map(|month| length(year, month)).sum::<i64>()
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
