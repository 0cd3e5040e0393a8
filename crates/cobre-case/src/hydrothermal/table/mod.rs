//! Reading Parquet tables so that everything wrong is found at once.
//!
//! As with JSON, a row is declared once: its columns, what they mean, and what is refused.

mod columns;
mod csv;
mod sizes;

use std::path::Path;

pub(crate) use columns::{Column, Columns};
pub(crate) use sizes::Sizes;

use super::date::Date;
use super::is_there;
use crate::finding::{Findings, Place};
use crate::template::TemplateColumn;

/// A type of the cells of a row.
pub(crate) trait Cell: Sized {
    /// The kind of a column of it.
    const COLUMN: Column;
    /// The expected value, in words.
    const WHAT: &'static str;
    /// True if rows may have none, and the column may be left out.
    const OPTIONAL: bool = false;

    /// The value, if it is allowed.
    fn of(value: f64) -> Option<Self>;

    /// The value of a row that has none, if that is allowed.
    fn none() -> Option<Self> {
        None
    }
}

impl<T: Cell> Cell for Option<T> {
    const COLUMN: Column = T::COLUMN;
    const WHAT: &'static str = T::WHAT;
    const OPTIONAL: bool = true;

    fn of(value: f64) -> Option<Self> {
        T::of(value).map(Some)
    }

    fn none() -> Option<Self> {
        Some(None)
    }
}

/// A row of a table.
pub(crate) trait Row: Sized {
    /// The file, as a path below the case.
    const FILE: &'static str;
    /// Columns of the format that this version refuses.
    const REFUSED: &'static [&'static str];

    /// The most rows that a case of these sizes can need.
    fn needed(sizes: &Sizes) -> Option<u64>;
    /// The rows of a table whose schema is sound.
    fn rows(columns: Columns<'_>) -> Option<Vec<Self>>;
    /// Columns with what they hold, whether they may be left out, and what they mean.
    fn columns() -> Vec<(&'static str, Column, bool, &'static str)>;
}

/// Reads the table of a case; `None` if it is not there or wrong.
pub(crate) fn read<R: Row>(case: &Path, sizes: &Sizes, findings: &mut Findings) -> Option<Vec<R>> {
    let (path, csv) = (case.join(R::FILE), case.join(R::FILE).with_extension(CSV));
    let (parquet, csv_there) = (is_there(&path), is_there(&csv));
    let beside = R::FILE.replace(".parquet", ".csv");
    if parquet && csv_there {
        let message = format!("nothing reads it: {} is there too", R::FILE);
        findings.doubtful(&Place::file(&beside), message);
    }
    let (path, at) = match (parquet, csv_there) {
        (true, _) => (path, Place::file(R::FILE)),
        (false, true) => (csv, Place::file(&beside)),
        (false, false) => return None,
    };
    let most = Sizes::most_rows(R::needed(sizes));
    let columns = Columns::open::<R>(&path, most, at, findings);
    let rows = columns.and_then(R::rows);
    if rows.is_none() {
        // What is missing because of it is no error of its own.
        findings.close(R::FILE);
    }
    rows
}

/// Reads the table of a file that is no part of the case, with its name in messages; `None` if it is wrong.
pub(crate) fn read_file<R: Row>(
    path: &Path,
    name: &str,
    sizes: &Sizes,
    findings: &mut Findings,
) -> Option<Vec<R>> {
    let most = Sizes::most_rows(R::needed(sizes));
    let columns = Columns::open::<R>(path, most, Place::file(name), findings);
    columns.and_then(R::rows)
}

/// All columns of a table of a case; none if it is not there.
///
/// # Errors
/// A file that is no table.
pub(crate) fn all_columns(
    case: &Path,
    file: &str,
) -> Result<Option<Vec<(String, TemplateColumn)>>, String> {
    let (parquet, csv) = (case.join(file), case.join(file).with_extension(CSV));
    let path = [parquet, csv].into_iter().find(|path| is_there(path));
    let days = ["date", "start_date", "end_date"];
    path.map(|path| columns::all(&path, &days)).transpose()
}

/// The day after the month of a day, both in days since 1970-01-01.
pub(crate) fn month_end(day: i32) -> i32 {
    let (year, month, _) = Date(day.into()).calendar();
    let next = if month == 12 {
        Date::of(year + 1, 1, 1)
    } else {
        Date::of(year, month + 1, 1)
    };
    i32::try_from(next.0).unwrap_or(i32::MAX)
}

/// The names of the columns of a file.
///
/// # Errors
/// A file that is no table.
pub(crate) fn column_names(path: &Path) -> Result<Vec<String>, String> {
    columns::names(path)
}

/// The ending of tables that are read where there is no Parquet file.
const CSV: &str = "csv";

/// Declares the rows of a table.
macro_rules! table {
    (
        $(#[doc = $about:literal])+
        $name:ident in $file:literal, rows $needed:expr, {
            $( $(#[doc = $means:literal])+ $key:ident: $kind:ty, )*
        }
        $( refused { $( $other:ident: $why:literal, )* } )?
    ) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone, Copy)]
        pub(crate) struct $name {
            $( $(#[doc = $means])+ pub(crate) $key: $kind, )*
        }

        impl $crate::hydrothermal::table::Row for $name {
            const FILE: &'static str = $file;
            const REFUSED: &'static [&'static str] = &[ $( $( stringify!($other), )* )? ];

            fn needed(sizes: &$crate::hydrothermal::table::Sizes) -> Option<u64> {
                let needed: fn(&$crate::hydrothermal::table::Sizes) -> Option<u64> = $needed;
                needed(sizes)
            }

            fn rows(mut columns: $crate::hydrothermal::table::Columns<'_>) -> Option<Vec<Self>> {
                $( let $key = columns.take::<$kind>(stringify!($key)); )*
                $( $( columns.refuse(stringify!($other), $why)?; )* )?
                let count = columns.rows();
                $( let mut $key = $key?.into_iter(); )*
                (0..count).map(|_| Some(Self { $( $key: $key.next()?, )* })).collect()
            }

            fn columns() -> Vec<(&'static str, $crate::hydrothermal::table::Column, bool, &'static str)> {
                use $crate::hydrothermal::table::Cell;
                vec![ $( (
                    stringify!($key),
                    <$kind>::COLUMN,
                    <$kind>::OPTIONAL,
                    concat!($($means),+).trim(),
                ), )* ]
            }
        }
    };
}
pub(crate) use table;
