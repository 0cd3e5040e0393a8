//! Days of the calendar, counted from 1970-01-01, as tables of results and `run.json` have them.

/// Days from 1970-01-01 to the first of a month, from 1.
pub fn first_of(year: i64, month: i64) -> i64 {
    let before = year - 1;
    let to_year = 365 * before + before / 4 - before / 100 + before / 400 - 719_162;
    to_year + (1..month).map(|month| length(year, month)).sum::<i64>()
}

/// Days of a month, from 1.
pub fn length(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The year, the month from 1 and the day of the month from 1 of a day.
pub fn date(day: i64) -> (i64, i64, i64) {
    // No year after 1970 has more than 366 days and none before it fewer than 365, so this one is not after that of the day.
    let mut year = 1970 + day.div_euclid(if day < 0 { 365 } else { 366 });
    while first_of(year + 1, 1) <= day {
        year += 1;
    }
    let month = (1..=12).rev().find(|month| first_of(year, *month) <= day);
    let month = month.unwrap_or(1);
    (year, month, day - first_of(year, month) + 1)
}

/// A day as `2026-01-31`.
pub fn text(day: i64) -> String {
    let (year, month, day) = date(day);
    format!("{year:04}-{month:02}-{day:02}")
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_of_ten_thousand_years_has_the_date_after_that_of_the_day_before() {
        let mut expected = (1, 1, 1);
        for day in first_of(1, 1)..first_of(10_000, 1) {
            assert_eq!(date(day), expected, "{day}");
            expected = match expected {
                (year, 12, 31) => (year + 1, 1, 1),
                (year, month, day) if day == length(year, month) => (year, month + 1, 1),
                (year, month, day) => (year, month, day + 1),
            };
        }
        assert_eq!(expected, (10_000, 1, 1));
        assert_eq!(text(0), "1970-01-01");
    }
}
