"""Writes small Parquet files: required columns, one row group, plain values, no compression."""
import struct

KINDS = {"int32": (1, "<i"), "int64": (2, "<q"), "double": (5, "<d"), "text": (6, None)}


def varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes(out + bytes([number]))


def zigzag(number):
    return varint((number << 1) ^ (number >> 63))


def struct_of(*fields):
    """A Thrift structure of fields (number, type, bytes), in the compact protocol."""
    out, last = bytearray(), 0
    for number, kind, content in fields:
        out += bytes([(number - last) << 4 | kind]) + content
        last = number
    return bytes(out) + b"\0"


def whole(number, field, kind=5):
    return field, kind, zigzag(number)


def text(field, content):
    return field, 8, varint(len(content)) + content


def items(field, kind, contents):
    head = bytes([len(contents) << 4 | kind]) if len(contents) < 15 else bytes([0xF0 | kind]) + varint(len(contents))
    return field, 9, head + b"".join(contents)


def plain(kind, values):
    if kind == "text":
        return b"".join(struct.pack("<I", len(value)) + value for value in values)
    form = KINDS[kind][1]
    return b"".join(struct.pack(form, value) for value in values)


def table(columns, rows=None, claimed=None):
    """The bytes of a table of columns (name, kind, values). `claimed` is what it says its number of values is."""
    rows = len(columns[0][2]) if rows is None else rows
    claimed = rows if claimed is None else claimed
    out, chunks = bytearray(b"PAR1"), []
    schema = [struct_of(text(4, b"schema"), whole(len(columns), 5))]
    for name, kind, values in columns:
        name = name.encode() if isinstance(name, str) else name
        data, place = plain(kind, values), len(out)
        page = struct_of(whole(claimed, 1), whole(0, 2), whole(3, 3), whole(3, 4))
        head = struct_of(whole(0, 1), whole(len(data), 2), whole(len(data), 3), (5, 12, page))
        out += head + data
        number = KINDS[kind][0]
        size = len(head) + len(data)
        meta = struct_of(whole(number, 1), items(2, 5, [zigzag(0)]), items(3, 8, [varint(len(name)) + name]), whole(0, 4),
                         whole(claimed, 5, 6), whole(size, 6, 6), whole(size, 7, 6), whole(place, 9, 6))
        chunks.append(struct_of(whole(place, 2, 6), (3, 12, meta)))
        logical = [whole(0, 6)] if kind == "text" else []
        schema.append(struct_of(whole(number, 1), whole(0, 3), text(4, name), *logical))
    group = struct_of(items(1, 12, chunks), whole(len(out), 2, 6), whole(claimed, 3, 6))
    footer = struct_of(whole(1, 1), items(2, 12, schema), whole(claimed, 3, 6), items(4, 12, [group]))
    return bytes(out) + footer + struct.pack("<I", len(footer)) + b"PAR1"
