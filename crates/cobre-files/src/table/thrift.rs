//! Structures of Thrift's compact protocol, gone through without keeping anything.
//!
//! The Parquet library allocates what a header claims and recurses as deep as a schema nests. What is read here
//! first is as long as it claims and as deep as [`DEEPEST`].

/// The greatest depth of nested structures.
const DEEPEST: usize = 16;

/// The reason for which bytes are no such structure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Broken {
    /// They end inside it.
    End,
    /// Something in it is not as Parquet writers have it.
    Form(&'static str),
}

type Read<T> = Result<T, Broken>;

/// Kinds of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldKind {
    Bool,
    Byte,
    Integer,
    Double,
    Binary,
    List,
    Struct,
}

/// Bytes that are gone through.
#[derive(Debug)]
pub(super) struct ThriftReader<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> ThriftReader<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// The number of bytes read.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    fn byte(&mut self) -> Read<u8> {
        let byte = *self.bytes.get(self.at).ok_or(Broken::End)?;
        self.at += 1;
        Ok(byte)
    }

    fn varint(&mut self) -> Read<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Broken::Form("a number has more than 64 bits"))
    }

    /// A whole number.
    pub(super) fn integer(&mut self) -> Read<i64> {
        let value = self.varint()?;
        Ok((value >> 1).cast_signed() ^ -((value & 1).cast_signed()))
    }

    /// A text or other bytes.
    pub(super) fn binary(&mut self) -> Read<&'b [u8]> {
        let length = usize::try_from(self.varint()?).unwrap_or(usize::MAX);
        let bytes = self.bytes[self.at..].get(..length).ok_or(Broken::End)?;
        self.at += length;
        Ok(bytes)
    }

    /// The head of a list: how many elements it has, and of what kind.
    pub(super) fn list(&mut self) -> Read<(usize, FieldKind)> {
        let head = self.byte()?;
        let count = match head >> 4 {
            15 => usize::try_from(self.varint()?).unwrap_or(usize::MAX),
            short => usize::from(short),
        };
        // Each element takes a byte at least.
        if count > self.left() {
            return Err(Broken::End);
        }
        Ok((count, kind(head & 15)?))
    }

    /// Goes through a structure: `field` is asked for every field and says whether it has read it. The numbers
    /// of fields ascend, so none comes twice.
    pub(super) fn structure(
        &mut self,
        depth: usize,
        mut field: impl FnMut(i64, FieldKind, &mut Self) -> Read<bool>,
    ) -> Read<()> {
        let mut last = 0_i64;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Ok(());
            }
            let number = match head >> 4 {
                0 => self.integer()?,
                delta => last + i64::from(delta),
            };
            if number <= last {
                return Err(Broken::Form("the fields of a header are out of order"));
            }
            last = number;
            let kind = kind(head & 15)?;
            if !field(number, kind, self)? {
                self.skip(kind, depth)?;
            }
        }
    }

    /// Goes past a value.
    pub(super) fn skip(&mut self, kind: FieldKind, depth: usize) -> Read<()> {
        if depth >= DEEPEST {
            return Err(Broken::Form("its headers nest too deep"));
        }
        match kind {
            FieldKind::Bool => Ok(()),
            FieldKind::Byte => self.byte().map(drop),
            FieldKind::Integer => self.varint().map(drop),
            FieldKind::Double => {
                let end = self.at + 8;
                if end > self.bytes.len() {
                    return Err(Broken::End);
                }
                self.at = end;
                Ok(())
            }
            FieldKind::Binary => self.binary().map(drop),
            FieldKind::List => {
                let (count, kind) = self.list()?;
                if kind == FieldKind::Bool {
                    return Err(Broken::Form("a header has a list of flags"));
                }
                (0..count).try_for_each(|_| self.skip(kind, depth + 1))
            }
            FieldKind::Struct => self.structure(depth + 1, |_, _, _| Ok(false)),
        }
    }
}

fn kind(number: u8) -> Read<FieldKind> {
    Ok(match number {
        1 | 2 => FieldKind::Bool,
        3 => FieldKind::Byte,
        4..=6 => FieldKind::Integer,
        7 => FieldKind::Double,
        8 => FieldKind::Binary,
        9 | 10 => FieldKind::List,
        12 => FieldKind::Struct,
        _ => return Err(Broken::Form("a header has a field of unknown kind")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skipped(bytes: &[u8]) -> Read<usize> {
        let mut reader = ThriftReader::new(bytes);
        reader.skip(FieldKind::Struct, 0)?;
        Ok(reader.position())
    }

    #[test]
    fn structures_are_gone_through_to_their_end() {
        // Field 1: the integer -3; field 2: a list of two texts; field 5: a structure with a flag.
        let bytes = [
            0x15, 0x05, 0x19, 0x28, 1, b'a', 2, b'b', b'c', 0x3c, 0x11, 0, 0, 9, 9,
        ];
        assert_eq!(skipped(&bytes), Ok(13));
        let mut reader = ThriftReader::new(&bytes);
        let mut found = None;
        let read = reader.structure(0, |number, _, reader| {
            if number == 1 {
                found = Some(reader.integer()?);
            }
            Ok(number == 1)
        });
        assert_eq!((read, found), (Ok(()), Some(-3)));
        for cut in 0..13 {
            assert_eq!(skipped(&bytes[..cut]), Err(Broken::End), "{cut}");
        }
    }

    #[test]
    fn claims_beyond_the_bytes_and_deep_nesting_are_refused() {
        assert_eq!(
            skipped(&[0x19, 0xfc, 0xff, 0xff, 0xff, 0x0f]),
            Err(Broken::End)
        );
        assert_eq!(
            skipped(&[0x18, 0xff, 0xff, 0xff, 0xff, 0x0f]),
            Err(Broken::End)
        );
        let deep = vec![0x1c; 100_000];
        assert_eq!(
            skipped(&deep),
            Err(Broken::Form("its headers nest too deep"))
        );
    }
}
