//! HiGHS: the calls of its C interface that the solver makes, with their lengths checked.
#![expect(unsafe_code, reason = "HiGHS is a C library")]

use std::ffi::{CStr, CString, c_void};
use std::ptr::NonNull;

use highs_sys as c;

/// Converts a count to the 32 bits of HiGHS.
pub(super) fn number(count: usize) -> i32 {
    i32::try_from(count).expect("a linear program has fewer than 2³¹ entries")
}

/// A linear program by columns.
#[derive(Debug, Default, Clone)]
pub(super) struct ColumnwiseLp {
    pub(super) costs: Vec<f64>,
    pub(super) lower: Vec<f64>,
    pub(super) upper: Vec<f64>,
    pub(super) row_lower: Vec<f64>,
    pub(super) row_upper: Vec<f64>,
    /// The start of each column in `index` and `value`.
    pub(super) start: Vec<i32>,
    /// The row of each entry.
    pub(super) index: Vec<i32>,
    pub(super) value: Vec<f64>,
}

/// The status after a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ModelStatus {
    Optimal,
    Infeasible,
    Unbounded,
    /// Infeasible or unbounded: HiGHS did not find out which.
    Either,
    /// Any other status, by its number.
    Other(i32),
}

/// A solution, in the order of HiGHS.
#[derive(Debug, Default, Clone)]
pub(super) struct HighsSolution {
    pub(super) columns: Vec<f64>,
    pub(super) column_duals: Vec<f64>,
    pub(super) rows: Vec<f64>,
    pub(super) row_duals: Vec<f64>,
}

/// A call that HiGHS refused; the cause is a programming error or a lack of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HighsRefusal(pub(super) &'static str);

/// One solver object with one linear program.
#[derive(Debug)]
pub(super) struct Highs {
    raw: NonNull<c_void>,
    columns: usize,
    rows: usize,
    /// True if a solution and a basis of the present sizes exist.
    solved: bool,
}

// SAFETY: the object belongs to one owner, every call needs that owner, and HiGHS keeps nothing of
// an object in the thread that made it.
unsafe impl Send for Highs {}

impl Highs {
    pub(super) fn new() -> Result<Self, HighsRefusal> {
        // SAFETY: takes nothing, and returns a new object or null.
        let raw = unsafe { c::Highs_create() };
        let raw = NonNull::new(raw).ok_or(HighsRefusal("create"))?;
        let mut highs = Self {
            raw,
            columns: 0,
            rows: 0,
            solved: false,
        };
        highs.set_flag(c"output_flag", false)?;
        Ok(highs)
    }

    fn raw(&self) -> *mut c_void {
        self.raw.as_ptr()
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    pub(super) fn set_flag(&mut self, name: &CStr, value: bool) -> Result<(), HighsRefusal> {
        // SAFETY: the object lives, and the name ends in a zero byte.
        let code = unsafe { c::Highs_setBoolOptionValue(self.raw(), name.as_ptr(), value.into()) };
        accepted(code, "set a flag")
    }

    pub(super) fn set_integer(&mut self, name: &CStr, value: i32) -> Result<(), HighsRefusal> {
        // SAFETY: the object lives, and the name ends in a zero byte.
        let code = unsafe { c::Highs_setIntOptionValue(self.raw(), name.as_ptr(), value) };
        accepted(code, "set an integer")
    }

    pub(super) fn set_number(&mut self, name: &CStr, value: f64) -> Result<(), HighsRefusal> {
        // SAFETY: the object lives, and the name ends in a zero byte.
        let code = unsafe { c::Highs_setDoubleOptionValue(self.raw(), name.as_ptr(), value) };
        accepted(code, "set a number")
    }

    pub(super) fn set_text(&mut self, name: &CStr, value: &CStr) -> Result<(), HighsRefusal> {
        let (name, value) = (name.as_ptr(), value.as_ptr());
        // SAFETY: the object lives, and both texts end in a zero byte.
        let code = unsafe { c::Highs_setStringOptionValue(self.raw(), name, value) };
        accepted(code, "set a text")
    }

    /// Replaces the linear program, to be minimised.
    pub(super) fn pass(&mut self, lp: &ColumnwiseLp) -> Result<(), HighsRefusal> {
        let (columns, rows) = (lp.costs.len(), lp.row_lower.len());
        assert!(lp.lower.len() == columns && lp.upper.len() == columns);
        assert!(lp.row_upper.len() == rows && lp.start.len() == columns);
        assert!(lp.index.len() == lp.value.len());
        let in_order = lp.start.windows(2).all(|pair| pair[0] <= pair[1]);
        let last = lp
            .start
            .last()
            .is_none_or(|&start| start as usize <= lp.index.len());
        assert!(in_order && last && lp.start.first().is_none_or(|&start| start == 0));
        assert!(lp.index.iter().all(|&row| (row as usize) < rows));
        self.solved = false;
        // SAFETY: the object lives; every array has the length that the counts before it say, and
        // starts and indices stay inside them.
        let code = unsafe {
            c::Highs_passLp(
                self.raw(),
                number(columns),
                number(rows),
                number(lp.index.len()),
                c::MATRIX_FORMAT_COLUMN_WISE,
                c::OBJECTIVE_SENSE_MINIMIZE,
                0.0,
                lp.costs.as_ptr(),
                lp.lower.as_ptr(),
                lp.upper.as_ptr(),
                lp.row_lower.as_ptr(),
                lp.row_upper.as_ptr(),
                lp.start.as_ptr(),
                lp.index.as_ptr(),
                lp.value.as_ptr(),
            )
        };
        accepted(code, "pass a linear program")?;
        (self.columns, self.rows) = (columns, rows);
        Ok(())
    }

    /// Adds rows `Σ value × column ≥ lower`; `start` is the start of each row.
    pub(super) fn add_rows(
        &mut self,
        lower: &[f64],
        start: &[i32],
        index: &[i32],
        value: &[f64],
    ) -> Result<(), HighsRefusal> {
        if lower.is_empty() {
            return Ok(());
        }
        assert!(start.len() == lower.len() && index.len() == value.len());
        let in_order = start.windows(2).all(|pair| pair[0] <= pair[1]);
        assert!(in_order && start[0] == 0 && start[start.len() - 1] as usize <= index.len());
        assert!(index.iter().all(|&column| (column as usize) < self.columns));
        let upper = vec![f64::INFINITY; lower.len()];
        self.solved = false;
        // SAFETY: the object lives; arrays have the lengths given, and starts and indices are in
        // range.
        let code = unsafe {
            c::Highs_addRows(
                self.raw(),
                number(lower.len()),
                lower.as_ptr(),
                upper.as_ptr(),
                number(index.len()),
                start.as_ptr(),
                index.as_ptr(),
                value.as_ptr(),
            )
        };
        accepted(code, "add rows")?;
        self.rows += lower.len();
        Ok(())
    }

    /// Removes these rows, given in ascending order.
    pub(super) fn delete_rows(&mut self, set: &[i32]) -> Result<(), HighsRefusal> {
        if set.is_empty() {
            return Ok(());
        }
        assert_set(set, self.rows);
        self.solved = false;
        // SAFETY: the object lives, and the set has the length given and names existing rows.
        let code = unsafe { c::Highs_deleteRowsBySet(self.raw(), number(set.len()), set.as_ptr()) };
        accepted(code, "delete rows")?;
        self.rows -= set.len();
        Ok(())
    }

    /// Sets the bounds of these columns, given in ascending order.
    pub(super) fn set_column_bounds(
        &mut self,
        set: &[i32],
        lower: &[f64],
        upper: &[f64],
    ) -> Result<(), HighsRefusal> {
        if set.is_empty() {
            return Ok(());
        }
        assert_set(set, self.columns);
        assert!(lower.len() == set.len() && upper.len() == set.len());
        let (count, lower, upper) = (number(set.len()), lower.as_ptr(), upper.as_ptr());
        self.solved = false;
        // SAFETY: the object lives, the arrays have the length given, and the columns exist.
        let code = unsafe {
            c::Highs_changeColsBoundsBySet(self.raw(), count, set.as_ptr(), lower, upper)
        };
        accepted(code, "change bounds of columns")
    }

    /// Sets the bounds of these rows, given in ascending order.
    pub(super) fn set_row_bounds(
        &mut self,
        set: &[i32],
        lower: &[f64],
        upper: &[f64],
    ) -> Result<(), HighsRefusal> {
        if set.is_empty() {
            return Ok(());
        }
        assert_set(set, self.rows);
        assert!(lower.len() == set.len() && upper.len() == set.len());
        let (count, lower, upper) = (number(set.len()), lower.as_ptr(), upper.as_ptr());
        self.solved = false;
        // SAFETY: the object lives, the arrays have the length given, and the rows exist.
        let code = unsafe {
            c::Highs_changeRowsBoundsBySet(self.raw(), count, set.as_ptr(), lower, upper)
        };
        accepted(code, "change bounds of rows")
    }

    /// Sets the costs of these columns, given in ascending order.
    pub(super) fn set_costs(&mut self, set: &[i32], costs: &[f64]) -> Result<(), HighsRefusal> {
        if set.is_empty() {
            return Ok(());
        }
        assert_set(set, self.columns);
        assert!(costs.len() == set.len());
        let (count, costs) = (number(set.len()), costs.as_ptr());
        self.solved = false;
        // SAFETY: the object lives, the arrays have the length given, and the columns exist.
        let code = unsafe { c::Highs_changeColsCostBySet(self.raw(), count, set.as_ptr(), costs) };
        accepted(code, "change costs")
    }

    /// Sets one entry of the matrix.
    pub(super) fn set_coefficient(
        &mut self,
        row: usize,
        column: usize,
        value: f64,
    ) -> Result<(), HighsRefusal> {
        assert!(row < self.rows && column < self.columns);
        self.solved = false;
        // SAFETY: the object lives, and the row and the column exist.
        let code = unsafe { c::Highs_changeCoeff(self.raw(), number(row), number(column), value) };
        accepted(code, "change a coefficient")
    }

    /// Clears the basis and the solution of earlier runs.
    pub(super) fn clear_solver(&mut self) -> Result<(), HighsRefusal> {
        self.solved = false;
        // SAFETY: the object lives.
        let code = unsafe { c::Highs_clearSolver(self.raw()) };
        accepted(code, "clear the solver")
    }

    /// Sets the basis to start from. A linear program without rows has none.
    pub(super) fn set_basis(&mut self, columns: &[i32], rows: &[i32]) -> Result<(), HighsRefusal> {
        assert!(columns.len() == self.columns && rows.len() == self.rows);
        if self.rows == 0 {
            return Ok(());
        }
        let (columns, rows) = (columns.as_ptr(), rows.as_ptr());
        // SAFETY: the object lives, and there is one status per column and per row.
        let code = unsafe { c::Highs_setBasis(self.raw(), columns, rows) };
        accepted(code, "set the basis")
    }

    /// Solves.
    pub(super) fn run(&mut self) -> ModelStatus {
        // SAFETY: the object lives. The model's status says what the code does, and more.
        let _ = unsafe { c::Highs_run(self.raw()) };
        // SAFETY: the object lives.
        let status = unsafe { c::Highs_getModelStatus(self.raw()) };
        let status = match status {
            // Without rows and columns.
            c::MODEL_STATUS_OPTIMAL | c::MODEL_STATUS_MODEL_EMPTY => ModelStatus::Optimal,
            c::MODEL_STATUS_INFEASIBLE => ModelStatus::Infeasible,
            c::MODEL_STATUS_UNBOUNDED => ModelStatus::Unbounded,
            c::MODEL_STATUS_UNBOUNDED_OR_INFEASIBLE => ModelStatus::Either,
            other => ModelStatus::Other(other),
        };
        self.solved = status == ModelStatus::Optimal;
        status
    }

    /// The solution of the last run.
    ///
    /// # Panics
    /// Unless that run was optimal and nothing has changed since.
    pub(super) fn solution(&self, into: &mut HighsSolution) {
        assert!(self.solved, "there is no solution");
        into.columns.resize(self.columns, 0.0);
        into.column_duals.resize(self.columns, 0.0);
        into.rows.resize(self.rows, 0.0);
        into.row_duals.resize(self.rows, 0.0);
        // SAFETY: the object lives and has a solution with one entry per column and row, which is
        // the length of the arrays. The code says nothing new.
        let _ = unsafe {
            c::Highs_getSolution(
                self.raw(),
                into.columns.as_mut_ptr(),
                into.column_duals.as_mut_ptr(),
                into.rows.as_mut_ptr(),
                into.row_duals.as_mut_ptr(),
            )
        };
    }

    /// The basis of the last run.
    ///
    /// # Panics
    /// Unless that run was optimal and nothing has changed since.
    pub(super) fn basis(&self, columns: &mut Vec<i32>, rows: &mut Vec<i32>) {
        assert!(self.solved, "there is no basis");
        columns.resize(self.columns, 0);
        rows.resize(self.rows, 0);
        let (columns, rows) = (columns.as_mut_ptr(), rows.as_mut_ptr());
        // SAFETY: the object lives and has a basis with one status per column and row, which is the
        // length of the arrays. The code says nothing new.
        let _ = unsafe { c::Highs_getBasis(self.raw(), columns, rows) };
    }

    /// Names a column, for people who read the written file.
    pub(super) fn name_column(&mut self, column: usize, name: &CStr) {
        assert!(column < self.columns);
        // SAFETY: the object lives, the column exists, and the name ends in a zero byte. A name
        // that is refused is only missed by people.
        let _ = unsafe { c::Highs_passColName(self.raw(), number(column), name.as_ptr()) };
    }

    /// Names a row, for people who read the written file.
    pub(super) fn name_row(&mut self, row: usize, name: &CStr) {
        assert!(row < self.rows);
        // SAFETY: the object lives, the row exists, and the name ends in a zero byte. A name that
        // is refused is only missed by people.
        let _ = unsafe { c::Highs_passRowName(self.raw(), number(row), name.as_ptr()) };
    }

    /// Writes the linear program to a file, in the format of its extension.
    pub(super) fn write(&mut self, path: &CString) -> Result<(), HighsRefusal> {
        // SAFETY: the object lives, and the name ends in a zero byte.
        let code = unsafe { c::Highs_writeModel(self.raw(), path.as_ptr()) };
        accepted(code, "write the linear program")
    }
}

impl Drop for Highs {
    fn drop(&mut self) {
        // SAFETY: the object lives and is not used again.
        unsafe { c::Highs_destroy(self.raw()) };
    }
}

fn accepted(code: i32, what: &'static str) -> Result<(), HighsRefusal> {
    if code == c::STATUS_ERROR {
        Err(HighsRefusal(what))
    } else {
        Ok(())
    }
}

/// Asserts that a set is in ascending order and within range.
fn assert_set(set: &[i32], count: usize) {
    assert!(set.windows(2).all(|pair| pair[0] < pair[1]));
    assert!(set[0] >= 0 && (set[set.len() - 1] as usize) < count);
}
