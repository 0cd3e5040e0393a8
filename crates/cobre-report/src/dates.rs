//! Dates as the axis of a chart shows them.

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// Labels of days given as YYYY-MM-DD, and the word for what they name: months where all are the first of one, else days.
pub(crate) fn labels<'d>(
    days: impl Iterator<Item = &'d str> + Clone,
) -> (Vec<String>, &'static str) {
    let monthly = days.clone().all(|day| day.ends_with("-01"));
    let label = |day: &str| {
        let mut parts = day.split('-');
        let year = parts.next().unwrap_or_default();
        let month: Option<usize> = parts.next().and_then(|month| month.parse().ok());
        let month = month.and_then(|month| MONTHS.get(month.wrapping_sub(1)));
        match (month, parts.next()) {
            (Some(month), Some(_)) if monthly => format!("{month} {year}"),
            (Some(month), Some(day)) => {
                format!("{} {month} {year}", day.trim_start_matches('0'))
            }
            _ => day.to_owned(),
        }
    };
    let word = if monthly {
        "month"
    } else {
        "first day of the stage"
    };
    (days.map(label).collect(), word)
}

/// The places of labels that fit side by side: every one, or one in two, three, six, twelve and so on.
pub(crate) fn marked(count: usize, room: usize) -> impl Iterator<Item = usize> {
    let steps = [1, 2, 3, 6, 12, 24, 60, 120].into_iter();
    let step = steps.chain((1..).map(|more| 240 * more));
    let step = step
        .into_iter()
        .find(|step| count.div_ceil(*step) <= room.max(1));
    (0..count).step_by(step.unwrap_or(count.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_are_named_and_other_days_are_whole() {
        let (found, word) = labels(["2026-01-01", "2026-02-01"].into_iter());
        assert_eq!(
            (found, word),
            (vec!["Jan 2026".to_owned(), "Feb 2026".to_owned()], "month")
        );
        let (found, _) = labels(["2026-01-05", "2026-01-12"].into_iter());
        assert_eq!(found, ["5 Jan 2026", "12 Jan 2026"]);
    }

    #[test]
    fn labels_have_room() {
        assert_eq!(marked(12, 12).count(), 12);
        assert_eq!(marked(60, 9).collect::<Vec<_>>(), [0, 12, 24, 36, 48]);
        assert_eq!(marked(0, 4).count(), 0);
    }
}
