//! The files of a case in the making.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{Compression, Repetition, Type as Physical, ZstdLevel};
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
    /// Numbers, or none.
    Maybe(Vec<Option<f64>>),
}

impl TemplateColumn {
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

fn table(columns: &[(&str, TemplateColumn)]) -> Result<Vec<u8>, ParquetError> {
    let field = |(name, column): &(&str, TemplateColumn)| {
        let (physical, repetition) = match column {
            TemplateColumn::Ids(_) => (Physical::INT32, Repetition::REQUIRED),
            TemplateColumn::Numbers(_) => (Physical::DOUBLE, Repetition::REQUIRED),
            TemplateColumn::Maybe(_) => (Physical::DOUBLE, Repetition::OPTIONAL),
        };
        let kind = Type::primitive_type_builder(name, physical);
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
                TemplateColumn::Ids(values) => writer
                    .typed::<Int32Type>()
                    .write_batch(values, None, None)?,
                TemplateColumn::Numbers(values) => writer
                    .typed::<DoubleType>()
                    .write_batch(values, None, None)?,
                TemplateColumn::Maybe(values) => {
                    let there: Vec<f64> = values.iter().flatten().copied().collect();
                    let levels: Vec<i16> = values
                        .iter()
                        .map(|value| i16::from(value.is_some()))
                        .collect();
                    writer
                        .typed::<DoubleType>()
                        .write_batch(&there, Some(&levels), None)?
                }
            };
            writer.close()?;
        }
    }
    group.close()?;
    file.close()?;
    Ok(bytes)
}
