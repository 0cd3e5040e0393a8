//! The declaration of a table: each column once, with its name, type, unit and meaning.

pub(super) const SCENARIO_MEANING: &str = "number of the simulated path, from 1";
pub(super) const STAGE_MEANING: &str =
    "number of the stage in the case; from 1 if the case numbers none";
pub(super) const START_DATE_MEANING: &str =
    "first day of the stage (YYYY-MM-DD); empty if the case has no dates";

/// Declares the module of a table: `CONSTANT column: type, "unit", "meaning";` for each column, in order.
macro_rules! table {
    (
        $(#[$about:meta])*
        $module:ident $(<$life:lifetime>)? in $path:literal {
            $($constant:ident $column:ident: $type:ty, $unit:expr, $meaning:expr;)+
        }
    ) => {
        $(#[$about])*
        pub mod $module {
            use crate::rows::{Cell, CellValue};
            use crate::schema::{Column, Kind, TableSchema};

            /// The path of the table below the results directory, without the ending.
            pub const TABLE: &str = $path;
            $(
                #[doc = concat!("The column `", stringify!($column), "`.")]
                pub const $constant: &str = stringify!($column);
            )+
            const COUNT: usize = [$($constant),+].len();

            /// The columns of the table.
            pub fn schema() -> TableSchema {
                let columns = [$(($constant, $unit, $meaning)),+].into_iter().zip(Row::KINDS);
                let columns = columns.map(|((name, unit, meaning), kind)| {
                    Column::new(name, kind, meaning).in_unit(unit)
                });
                TableSchema::new(TABLE, columns.collect())
            }

            /// A row of the table.
            #[derive(Debug, Clone, Copy)]
            pub struct Row $(<$life>)? {
                $(
                    #[doc = concat!("The value of [`", stringify!($constant), "`].")]
                    pub $column: $type,
                )+
            }

            impl $(<$life>)? Row $(<$life>)? {
                const KINDS: [Kind; COUNT] = [$(<$type as CellValue>::KIND),+];

                /// The values in the order of the columns.
                pub fn cells(&self) -> [Cell<'_>; COUNT] {
                    [$(self.$column.into()),+]
                }
            }
        }
    };
}

/// Declares a table with a row per stage of a path.
macro_rules! stage_table {
    (
        $(#[$about:meta])*
        $module:ident $(<$life:lifetime>)? in $path:literal { $($columns:tt)+ }
    ) => {
        table! {
            $(#[$about])*
            $module $(<$life>)? in $path {
                SCENARIO scenario: usize, "", crate::layout::declare::SCENARIO_MEANING;
                STAGE stage: i64, "", crate::layout::declare::STAGE_MEANING;
                START_DATE start_date: &'a str, "", crate::layout::declare::START_DATE_MEANING;
                $($columns)+
            }
        }
    };
}

/// Declares a table with rows per block of a stage of a path.
macro_rules! block_table {
    (
        $(#[$about:meta])*
        $module:ident $(<$life:lifetime>)? in $path:literal { $($columns:tt)+ }
    ) => {
        stage_table! {
            $(#[$about])*
            $module $(<$life>)? in $path {
                BLOCK block: i32, "", "number of the block in the stage, as in the case";
                HOURS hours: f64, "h", "length of the block";
                $($columns)+
            }
        }
    };
}
