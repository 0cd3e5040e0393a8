//! Headers of a Parquet file, checked before the Parquet library believes them: the schema is flat, and
//! no page is larger than its rows can make it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::thrift::{Broken, FieldKind, ThriftReader};

/// The bytes after the footer: its length, and `PAR1`.
const TAIL: u64 = 8;
/// The largest footer, in bytes.
const LARGEST_FOOTER: u64 = 256 << 20;
/// The largest header of a page, in bytes.
const LARGEST_HEADER: u64 = 1 << 20;
/// Bytes that are read for the header of a page at first.
const USUAL_HEADER: u64 = 1 << 10;
/// Bytes of a page beyond those of its values.
const PAGE_SLACK: u64 = 1 << 16;
/// The most bytes of a number and its levels in a page.
const NUMBER_BYTES: u64 = 16;
/// The most bytes of a text in a page, on average over the rows of a group, beyond [`TEXT_SLACK`].
const TEXT_BYTES: u64 = 4096;
const TEXT_SLACK: u64 = 1 << 20;

/// Numbers that the format gives to pages and encodings.
const DATA_PAGE: i64 = 0;
const INDEX_PAGE: i64 = 1;
const DICTIONARY_PAGE: i64 = 2;
const DATA_PAGE_V2: i64 = 3;
/// Plain, dictionary (two numbers), run lengths, differences of whole numbers, split bytes. The others build
/// lists of a length that is written among the values.
const ENCODINGS: [i64; 6] = [0, 2, 3, 5, 8, 9];

/// The contents of a chunk of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChunkContent {
    Numbers,
    Texts,
}

/// The part of a file that a column has in a row group.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chunk {
    pub(super) start: u64,
    pub(super) length: u64,
    pub(super) rows: u64,
    pub(super) holds: ChunkContent,
}

fn cut_off() -> String {
    "it is cut off".to_owned()
}

fn told(broken: Broken) -> String {
    match broken {
        Broken::End => cut_off(),
        Broken::Form(what) => what.to_owned(),
    }
}

fn read_at(file: &File, at: u64, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
    file.read_exact_at(&mut bytes, at)?;
    Ok(bytes)
}

/// Checks that the footer of a file is as long as it claims and that its schema is flat.
pub(super) fn check_footer(file: &File, length: u64) -> Result<(), String> {
    let end = length.checked_sub(TAIL).ok_or_else(cut_off)?;
    let tail = read_at(file, end, TAIL).map_err(|error| error.to_string())?;
    let (own, mark) = tail.split_at(4);
    if mark != b"PAR1" {
        return Err("its end is not that of a Parquet file".to_owned());
    }
    let own = own
        .iter()
        .rev()
        .fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    let start = end.checked_sub(own).ok_or_else(cut_off)?;
    if own > LARGEST_FOOTER {
        return Err(format!(
            "its footer has {own} bytes; at most {LARGEST_FOOTER} are read"
        ));
    }
    let footer = read_at(file, start, own).map_err(|error| error.to_string())?;
    let mut columns = None;
    let mut reader = ThriftReader::new(&footer);
    let read = reader.structure(0, |number, kind, reader| {
        let schema = number == 2 && kind == FieldKind::List;
        if schema {
            columns = Some(schema_elements(reader)?);
        }
        Ok(schema)
    });
    read.map_err(told)?;
    flat(&columns.ok_or("it has no schema")?)
}

/// The name of an element of a schema, and how many elements are inside it.
type Element<'b> = (&'b [u8], i64);

fn schema_elements<'b>(reader: &mut ThriftReader<'b>) -> Result<Vec<Element<'b>>, Broken> {
    let (count, kind) = reader.list()?;
    if kind != FieldKind::Struct {
        return Err(Broken::Form("its schema is no list of columns"));
    }
    let mut found = Vec::new();
    for _ in 0..count {
        let (mut name, mut inside): Element<'b> = (b"", 0);
        reader.structure(1, |number, kind, reader| {
            match (number, kind) {
                (4, FieldKind::Binary) => name = reader.binary()?,
                (5, FieldKind::Integer) => inside = reader.integer()?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        found.push((name, inside));
    }
    Ok(found)
}

/// A table is one row of columns, without any inside others.
fn flat(elements: &[Element<'_>]) -> Result<(), String> {
    let Some(((_, inside), columns)) = elements.split_first() else {
        return Err("its schema is empty".to_owned());
    };
    if let Some((name, _)) = columns.iter().find(|(_, inside)| *inside != 0) {
        let name = String::from_utf8_lossy(name);
        return Err(format!(
            "column {name} has others inside it; columns of numbers are expected"
        ));
    }
    if usize::try_from(*inside).ok() != Some(columns.len()) {
        return Err("its schema has not as many columns as it says".to_owned());
    }
    Ok(())
}

/// The header of a page.
#[derive(Debug, Default, Clone, Copy)]
struct Page {
    kind: i64,
    plain: i64,
    stored: i64,
    values: i64,
    encoding: i64,
}

fn page(reader: &mut ThriftReader<'_>) -> Result<Page, Broken> {
    let mut page = Page {
        kind: -1,
        plain: -1,
        stored: -1,
        values: -1,
        encoding: -1,
    };
    let inner = |page: &mut Page, encoding: i64, reader: &mut ThriftReader<'_>| {
        reader.structure(1, |number, kind, reader| {
            let is_integer = kind == FieldKind::Integer;
            match number {
                1 if is_integer => page.values = reader.integer()?,
                _ if is_integer && number == encoding => page.encoding = reader.integer()?,
                _ => return Ok(false),
            }
            Ok(true)
        })
    };
    reader.structure(0, |number, kind, reader| {
        match (number, kind) {
            (1, FieldKind::Integer) => page.kind = reader.integer()?,
            (2, FieldKind::Integer) => page.plain = reader.integer()?,
            (3, FieldKind::Integer) => page.stored = reader.integer()?,
            (5, FieldKind::Struct) if page.kind == DATA_PAGE => inner(&mut page, 2, reader)?,
            (7, FieldKind::Struct) if page.kind == DICTIONARY_PAGE => inner(&mut page, 2, reader)?,
            (8, FieldKind::Struct) if page.kind == DATA_PAGE_V2 => inner(&mut page, 4, reader)?,
            // A page has the header of its kind alone.
            (5..=8, FieldKind::Struct) if page.kind != INDEX_PAGE => {
                return Err(Broken::Form("a page has the header of another kind"));
            }
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(page)
}

/// Reads the header of a page, and how many bytes it has.
fn page_at(file: &File, at: u64, left: u64) -> Result<(Page, u64), String> {
    let mut length = USUAL_HEADER.min(left);
    loop {
        let bytes = read_at(file, at, length).map_err(|error| error.to_string())?;
        let mut reader = ThriftReader::new(&bytes);
        match page(&mut reader) {
            Ok(page) => return Ok((page, reader.position() as u64)),
            Err(Broken::End) if length < left.min(LARGEST_HEADER) => {
                length = (length * 16).min(left).min(LARGEST_HEADER);
            }
            Err(broken) => return Err(told(broken)),
        }
    }
}

/// Checks the headers of all pages of a chunk: they lie inside it, have one value per row, and claim no more bytes
/// than these can have.
pub(super) fn check_pages(file: &File, chunk: Chunk) -> Result<(), String> {
    let (mut at, mut left) = (chunk.start, chunk.length);
    let (mut values, mut texts) = (0_u64, 0_u64);
    while left > 0 {
        let (page, header) = page_at(file, at, left)?;
        left = left.checked_sub(header).ok_or_else(cut_off)?;
        let size = |size: i64| u64::try_from(size).map_err(|_| "a page has no size".to_owned());
        let (plain, stored) = (size(page.plain)?, size(page.stored)?);
        left = left.checked_sub(stored).ok_or_else(cut_off)?;
        at += header + stored;
        if page.kind == INDEX_PAGE {
            continue;
        }
        let count = size(page.values)?;
        match page.kind {
            DATA_PAGE | DATA_PAGE_V2 => values = values.saturating_add(count),
            DICTIONARY_PAGE => {}
            other => return Err(format!("a page is of unknown kind {other}")),
        }
        if count > chunk.rows || values > chunk.rows {
            let rows = chunk.rows;
            let found = count.max(values);
            return Err(format!("a page claims {found} values of {rows} rows"));
        }
        if !ENCODINGS.contains(&page.encoding) {
            let number = page.encoding;
            return Err(format!(
                "its values are encoded in a way (number {number}) that is not read; write it with plain or \
                 dictionary encoding"
            ));
        }
        let most = match chunk.holds {
            ChunkContent::Numbers => count * NUMBER_BYTES + PAGE_SLACK,
            ChunkContent::Texts => {
                texts = texts.saturating_add(plain);
                TEXT_SLACK + chunk.rows * TEXT_BYTES
            }
        };
        let found = plain.max(texts);
        if found > most {
            return Err(format!(
                "a page of {count} values claims {found} bytes; at most {most} are expected"
            ));
        }
    }
    if values == chunk.rows {
        Ok(())
    } else {
        Err(format!("it has {values} values of {} rows", chunk.rows))
    }
}
