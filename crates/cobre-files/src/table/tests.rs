use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Encoding, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int32Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use super::*;

const SCHEMA: &str =
    "message t { required int32 id; optional double x; required binary name (UTF8); }";

/// A table of `rows` rows in groups of `group`; x is missing in every fifth row.
fn bytes(rows: i32, group: i32, properties: WriterProperties) -> Vec<u8> {
    let schema = Arc::new(parse_message_type(SCHEMA).expect("a schema"));
    let mut bytes = Vec::new();
    let mut writer =
        SerializedFileWriter::new(&mut bytes, schema, Arc::new(properties)).expect("it");
    let mut at = 0;
    while at < rows {
        let ids: Vec<i32> = (at..(at + group).min(rows)).collect();
        at += group;
        let mut group = writer.next_row_group().expect("a group");
        let mut column = group.next_column().expect("it").expect("a column");
        column
            .typed::<Int32Type>()
            .write_batch(&ids, None, None)
            .expect("it");
        column.close().expect("it");
        let levels: Vec<i16> = ids.iter().map(|id| i16::from(id % 5 != 0)).collect();
        let there = ids.iter().filter(|id| *id % 5 != 0);
        let numbers: Vec<f64> = there.map(|id| f64::from(*id) * 0.5).collect();
        let mut column = group.next_column().expect("it").expect("a column");
        let typed = column.typed::<DoubleType>();
        typed
            .write_batch(&numbers, Some(&levels), None)
            .expect("it");
        column.close().expect("it");
        let names = ids.iter().map(|id| format!("thing {}", id % 7));
        let names: Vec<ByteArray> = names.map(|name| name.as_str().into()).collect();
        let mut column = group.next_column().expect("it").expect("a column");
        column
            .typed::<ByteArrayType>()
            .write_batch(&names, None, None)
            .expect("it");
        column.close().expect("it");
        group.close().expect("it");
    }
    writer.close().expect("it");
    bytes
}

fn zstd() -> WriterProperties {
    let level = ZstdLevel::try_new(3).expect("a level");
    WriterProperties::builder()
        .set_compression(Compression::ZSTD(level))
        .build()
}

fn snappy() -> WriterProperties {
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY);
    properties.set_dictionary_enabled(false).build()
}

fn opened(bytes: &[u8], most: Most) -> Result<Table, TableError> {
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(bytes).expect("it is written");
    Table::open(file, most)
}

/// Reads everything.
fn all(bytes: &[u8]) -> Result<Vec<Cells>, TableError> {
    let table = opened(bytes, Most::Rows(10_000))?;
    (0..table.columns().len())
        .map(|column| table.read_all(column))
        .collect()
}

#[test]
fn values_and_gaps_come_back_from_all_groups() {
    for properties in [zstd(), snappy()] {
        let bytes = bytes(23, 10, properties);
        let table = opened(&bytes, Most::Written).expect("it is sound");
        assert_eq!(
            (table.groups(), table.rows(), table.group_rows(2)),
            (3, 23, 3)
        );
        let kinds: Vec<&ColumnKind> = table.columns().iter().map(|column| &column.kind).collect();
        assert_eq!(
            kinds,
            [
                &ColumnKind::Integers,
                &ColumnKind::Numbers,
                &ColumnKind::Texts
            ]
        );
        let cells = all(&bytes).expect("it is sound");
        assert_eq!(cells[0].values, Values::Integers((0..23).collect()));
        let there = cells[1].there.as_ref().expect("some are missing");
        assert!(
            there
                .iter()
                .zip(0..)
                .all(|(there, row)| *there == (row % 5 != 0))
        );
        let Values::Numbers(numbers) = &cells[1].values else {
            panic!("numbers are expected");
        };
        assert!(numbers[5].is_nan() && numbers[6] == 3.0);
        let Values::Texts(texts) = &cells[2].values else {
            panic!("texts are expected");
        };
        assert_eq!(texts[8], "thing 1");
    }
}

#[test]
fn more_rows_than_can_be_meant_are_refused_before_anything_is_decoded() {
    let bytes = bytes(100, 100, zstd());
    let error = opened(&bytes, Most::Rows(99)).err().expect("it is refused");
    assert_eq!(
        error.to_string(),
        "it has 100 rows; at most 99 are expected"
    );
}

#[test]
fn a_table_with_columns_inside_others_is_refused_however_deep() {
    let schema = "message t { required group a { required int32 b; } }";
    let schema = Arc::new(parse_message_type(schema).expect("a schema"));
    let mut bytes = Vec::new();
    let writer = SerializedFileWriter::new(&mut bytes, schema, Arc::default()).expect("it");
    writer.close().expect("it");
    let error = opened(&bytes, Most::Written).err().expect("it is refused");
    assert!(
        error.to_string().contains("column a has others inside it"),
        "{error}"
    );
    // 200,000 levels of a schema, each inside the one before, would overflow the stack of whoever recurses.
    let mut footer = vec![0x15, 0x02, 0x19, 0xfc];
    let count = 200_001_u32;
    footer.extend([
        count as u8 | 0x80,
        (count >> 7) as u8 | 0x80,
        (count >> 14) as u8,
    ]);
    for _ in 0..count {
        footer.extend([0x48, 1, b'a', 0x15, 2, 0]);
    }
    footer.extend([0x16, 0, 0x19, 0x0c, 0]);
    let length = u32::try_from(footer.len()).expect("it is short");
    let mut bytes = b"PAR1".to_vec();
    bytes.extend(footer);
    bytes.extend(length.to_le_bytes());
    bytes.extend(b"PAR1");
    let error = opened(&bytes, Most::Written).err().expect("it is refused");
    assert!(
        error.to_string().contains("column a has others inside it"),
        "{error}"
    );
}

/// Writes a number of a header in place of another that takes as many bytes.
fn replace(bytes: &mut [u8], from: &[u8], to: &[u8]) {
    assert_eq!(from.len(), to.len());
    let at = bytes.windows(from.len()).position(|part| part == from);
    let at = at.expect("it is there");
    bytes[at..at + to.len()].copy_from_slice(to);
}

#[test]
fn what_a_page_claims_is_refused_beyond_what_its_rows_can_have() {
    // A dictionary of 1,000 numbers: its header says so in two bytes (2000 as a varint), and so do data pages.
    let whole = bytes(1000, 1000, zstd());
    let zigzag = |number: u32| {
        let double = number * 2;
        [double as u8 | 0x80, (double >> 7) as u8]
    };
    let mut bytes = whole.clone();
    // Field 1 of the header of a dictionary: its values.
    let [one, two] = zigzag(1000);
    let [more, most] = zigzag(8000);
    replace(
        &mut bytes,
        &[0x4c, 0x15, one, two],
        &[0x4c, 0x15, more, most],
    );
    let error = all(&bytes).expect_err("it is refused").to_string();
    assert_eq!(error, "column id: a page claims 8000 values of 1000 rows");
    // The size of its values before compression.
    let mut bytes = whole;
    let size = |number: u32| {
        let double = number * 2;
        [
            double as u8 | 0x80,
            (double >> 7) as u8 | 0x80,
            (double >> 14) as u8,
        ]
    };
    let [first, second] = zigzag(4000);
    let huge = size(1_000_000);
    let at = bytes
        .windows(3)
        .position(|part| part == [0x15, first, second])
        .expect("4000 bytes");
    bytes.splice(at + 1..at + 3, huge);
    // Everything behind it has moved by a byte, but the header comes first.
    let error = all(&bytes).expect_err("it is refused").to_string();
    assert!(
        error.starts_with("column id: a page of 1000 values claims 1000000 bytes"),
        "{error}"
    );
}

#[test]
fn encodings_that_build_lists_of_any_length_are_refused() {
    let properties = WriterProperties::builder()
        .set_dictionary_enabled(false)
        .set_column_encoding("name".into(), Encoding::DELTA_BYTE_ARRAY)
        .build();
    let error = all(&bytes(10, 10, properties)).expect_err("it is refused");
    assert!(
        error
            .to_string()
            .starts_with("column name: its values are encoded"),
        "{error}"
    );
    let properties = WriterProperties::builder()
        .set_dictionary_enabled(false)
        .set_column_encoding("id".into(), Encoding::DELTA_BINARY_PACKED)
        .set_writer_version(parquet::file::properties::WriterVersion::PARQUET_2_0)
        .set_column_encoding("name".into(), Encoding::PLAIN)
        .build();
    assert!(all(&bytes(300, 100, properties)).is_ok());
}

/// Numbers that look random, the same for one seed.
struct TestRandom(u64);

impl TestRandom {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % end
    }
}

#[test]
fn damaged_bytes_are_an_error_or_other_values_and_never_a_panic() {
    let whole: Vec<Vec<u8>> = vec![
        bytes(60, 25, zstd()),
        bytes(60, 25, snappy()),
        bytes(60, 25, WriterProperties::default()),
    ];
    let mut random = TestRandom(0x00c0_b7e5);
    let mut refused = 0;
    for round in 0..6000 {
        let mut bytes = whole[round % whole.len()].clone();
        for _ in 0..=random.below(3) {
            let at = random.below(bytes.len());
            bytes[at] = match random.below(3) {
                0 => bytes[at] ^ (1 << random.below(8)),
                1 => [0, 1, 0x7f, 0x80, 0xff][random.below(5)],
                _ => random.below(256) as u8,
            };
        }
        refused += usize::from(all(&bytes).is_err());
    }
    assert!(refused > 1000, "{refused} of 6000");
}
