//! The files of a case in the making.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{DoubleType, Int32Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use serde_json::Value;

/// The files of a case, by path below it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CaseFiles(BTreeMap<String, Vec<u8>>);

/// A column of a table.
#[derive(Debug, Clone, PartialEq)]
pub enum TemplateColumn {
    /// Whole numbers.
    Ids(Vec<i32>),
    /// Numbers.
    Numbers(Vec<f64>),
    /// Days since 1970-01-01.
    Days(Vec<i32>),
    /// Numbers, or none.
    Maybe(Vec<Option<f64>>),
    /// Whole numbers, or none.
    MaybeIds(Vec<Option<i32>>),
}

impl TemplateColumn {
    /// Its values as numbers, by row.
    pub fn numbers(&self) -> Vec<Option<f64>> {
        let whole = |value: &i32| Some(f64::from(*value));
        match self {
            Self::Ids(values) | Self::Days(values) => values.iter().map(whole).collect(),
            Self::Numbers(values) => values.iter().copied().map(Some).collect(),
            Self::Maybe(values) => values.clone(),
            Self::MaybeIds(values) => {
                let values = values.iter();
                values.map(|value| value.map(f64::from)).collect()
            }
        }
    }

    /// Adds the values of another column, of the same kind or with none among them.
    pub(crate) fn extend(&mut self, more: &Self) {
        match (&mut *self, more) {
            (Self::Ids(own), Self::Ids(more)) | (Self::Days(own), Self::Days(more)) => {
                own.extend_from_slice(more);
            }
            (Self::Numbers(own), Self::Numbers(more)) => own.extend_from_slice(more),
            (Self::Maybe(own), more) => own.extend(more.numbers()),
            (own, more) => {
                let mut all = own.numbers();
                all.extend(more.numbers());
                *own = Self::Maybe(all);
            }
        }
    }

    /// A column of places.
    pub fn of_places(places: Vec<usize>) -> Self {
        let id = |place: usize| i32::try_from(place).unwrap_or(i32::MAX);
        Self::Ids(places.into_iter().map(id).collect())
    }
}

impl CaseFiles {
    /// The files, in the order of their paths.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.0
            .iter()
            .map(|(path, bytes)| (path.as_str(), &bytes[..]))
    }

    /// Writes them below `directory`, which must be empty or not there yet.
    ///
    /// # Errors
    /// When something is there already, or the system refuses; then nothing is left of them.
    pub fn write(&self, directory: &Path) -> io::Result<()> {
        let taken = std::fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_some());
        if taken || directory.is_file() {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "something is there already; choose a new directory",
            ));
        }
        let mut made = Made::default();
        // Half a case is of no use, and would be in the way of the next try.
        self.write_below(directory, &mut made)
            .inspect_err(|_| made.remove())
    }

    fn write_below(&self, directory: &Path, made: &mut Made) -> io::Result<()> {
        for (path, bytes) in &self.0 {
            let path = directory.join(path);
            if let Some(folder) = path.parent() {
                made.directory(folder)?;
            }
            made.file(&path, bytes)?;
        }
        Ok(())
    }

    /// Adds a JSON file of the format, which then names its schema.
    pub fn json(&mut self, path: &str, mut value: Value) {
        let up = if path.contains('/') { "../" } else { "" };
        let schema = format!("{up}schemas/{}", crate::schema_name(path));
        if let Some(object) = value.as_object_mut() {
            object.insert("$schema".to_owned(), schema.into());
        }
        self.0
            .insert(path.to_owned(), format!("{value:#}\n").into_bytes());
    }

    /// The value of a JSON file; null if it is not there.
    pub(super) fn read_json(&self, path: &str) -> Value {
        let bytes = self.0.get(path);
        let value = bytes.and_then(|bytes| serde_json::from_slice(bytes).ok());
        value.unwrap_or_default()
    }

    /// Adds the schemas that JSON files name.
    pub fn schemas(&mut self) {
        for (file, schema) in crate::schemas() {
            let path = format!("schemas/{}", crate::schema_name(file));
            self.0.insert(path, format!("{schema:#}\n").into_bytes());
        }
    }

    /// Adds a table. All columns must have one length; if they have not, the file is not sound.
    pub fn table(&mut self, path: &str, columns: &[(&str, TemplateColumn)]) {
        let bytes = table(columns).unwrap_or_default();
        self.0.insert(path.to_owned(), bytes);
    }

    /// Adds any file.
    pub fn insert(&mut self, path: &str, bytes: impl Into<Vec<u8>>) {
        self.0.insert(path.to_owned(), bytes.into());
    }

    /// Takes a file away; returns what was in it.
    pub fn remove(&mut self, path: &str) -> Option<Vec<u8>> {
        self.0.remove(path)
    }
}

/// The files and directories that were made, in order.
#[derive(Default)]
struct Made {
    files: Vec<PathBuf>,
    directories: Vec<PathBuf>,
}

impl Made {
    fn directory(&mut self, path: &Path) -> io::Result<()> {
        if path.as_os_str().is_empty() || path.is_dir() {
            return Ok(());
        }
        if let Some(around) = path.parent() {
            self.directory(around)?;
        }
        std::fs::create_dir(path)?;
        self.directories.push(path.to_owned());
        Ok(())
    }

    fn file(&mut self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        // A file that came to be meanwhile is somebody else's.
        let mut file = File::create_new(path)?;
        self.files.push(path.to_owned());
        file.write_all(bytes)
    }

    /// Removes them one by one; a directory stays if something else is in it.
    fn remove(&self) {
        for file in &self.files {
            let _ = std::fs::remove_file(file);
        }
        for directory in self.directories.iter().rev() {
            let _ = std::fs::remove_dir(directory);
        }
    }
}

/// The definition level of each value: 1 if it is there.
fn levels<T>(values: &[Option<T>]) -> Vec<i16> {
    let values = values.iter();
    values.map(|value| i16::from(value.is_some())).collect()
}

fn table(columns: &[(&str, TemplateColumn)]) -> Result<Vec<u8>, ParquetError> {
    let field = |(name, column): &(&str, TemplateColumn)| {
        let (physical, repetition) = match column {
            TemplateColumn::Ids(_) | TemplateColumn::Days(_) => {
                (Physical::INT32, Repetition::REQUIRED)
            }
            TemplateColumn::Numbers(_) => (Physical::DOUBLE, Repetition::REQUIRED),
            TemplateColumn::Maybe(_) => (Physical::DOUBLE, Repetition::OPTIONAL),
            TemplateColumn::MaybeIds(_) => (Physical::INT32, Repetition::OPTIONAL),
        };
        let kind = Type::primitive_type_builder(name, physical);
        let kind = match column {
            TemplateColumn::Days(_) => kind.with_logical_type(Some(LogicalType::Date)),
            _ => kind,
        };
        kind.with_repetition(repetition).build().map(Arc::new)
    };
    let fields: Result<Vec<_>, _> = columns.iter().map(field).collect();
    let schema = Type::group_type_builder("schema")
        .with_fields(fields?)
        .build()?;
    let compression = Compression::ZSTD(ZstdLevel::try_new(3)?);
    let properties = WriterProperties::builder()
        .set_compression(compression)
        .build();
    let mut bytes = Vec::new();
    let mut file = SerializedFileWriter::new(&mut bytes, Arc::new(schema), Arc::new(properties))?;
    let mut group = file.next_row_group()?;
    for (_, column) in columns {
        if let Some(mut writer) = group.next_column()? {
            match column {
                TemplateColumn::Ids(values) | TemplateColumn::Days(values) => writer
                    .typed::<Int32Type>()
                    .write_batch(values, None, None)?,
                TemplateColumn::Numbers(values) => writer
                    .typed::<DoubleType>()
                    .write_batch(values, None, None)?,
                TemplateColumn::Maybe(values) => {
                    let there: Vec<f64> = values.iter().flatten().copied().collect();
                    writer
                        .typed::<DoubleType>()
                        .write_batch(&there, Some(&levels(values)), None)?
                }
                TemplateColumn::MaybeIds(values) => {
                    let there: Vec<i32> = values.iter().flatten().copied().collect();
                    writer
                        .typed::<Int32Type>()
                        .write_batch(&there, Some(&levels(values)), None)?
                }
            };
            writer.close()?;
        }
    }
    group.close()?;
    file.close()?;
    Ok(bytes)
}
