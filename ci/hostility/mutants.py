"""Mutants of bytes, of JSON and of words, drawn from a generator."""
import json
import re

# Texts that steer a terminal, break lines or formats, or are taken for formulas and markup.
TEXTS = [
    "\x1b[2J\x1b[31mred", "\x1b]0;title\x07", "bell\x07\x08\x08", "two\nlines: all is well", "\rcobre: done", "tab\tbed",
    "nul\x00inside", "\x7f\x9b31m", "\u202egnp.exe", "\u2066\u2069\u200e", "\u2028\u2029", "\ufeffbom", "=1+1", "+cmd",
    "-2+3", "@SUM(A1)", "'=x", "a,b\"c", "<script>alert(1)</script>", "&amp;&#x1b;", "%s%n{}{0}", "../../etc/passwd", "",
    " ", "." * 300, "\U000e0041\U000e0042", "é日本👩‍🔧", "\ud800",
]
# Texts of one line of JSON that stand for a value: too large, too deep, too long, or no JSON at all.
RAW = [
    "1e999", "-1e999", "1e308", "-1e308", "1e31", "-1e31", "1e-320", "-0.0", "0", "-1", "1.5", "2147483647", "2147483648",
    "4294967295", "4294967296", "9007199254740993", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
    "18446744073709551616", "1" * 400, "1" * 40_000, "0." + "3" * 5000, "NaN", "Infinity", "-Infinity", "null", "true", "[]", "{}",
    "[" * 200 + "]" * 200, "[" * 20_000 + "]" * 20_000, '{"a":' * 5000 + "1" + "}" * 5000, "[[],{},null,1]",
    '"\\ud800"', '"\\u0000"', "01", "+1", "1.", "'x'", '"open', "", "/* */1", "[1,]", '{"a":1,"a":2}', "1e5",
]
HOLE = "@@hole@@"


def of_bytes(chance, data):
    """Bytes with something done to them."""
    data = bytearray(data)
    way = chance.choice(["flip", "flip", "flip", "bytes", "cut", "lose", "twice", "insert", "zero", "end", "empty", "noise"])
    place = chance.randrange(len(data) + 1) if data else 0
    length = chance.choice([1, 2, 4, 8, 64, max(1, len(data) // 4)])
    if way == "flip":
        for _ in range(chance.choice([1, 1, 1, 2, 8])):
            if data:
                data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    elif way == "bytes":
        for _ in range(chance.choice([1, 2, 16])):
            if data:
                data[chance.randrange(len(data))] = chance.randrange(256)
    elif way == "cut":
        del data[place:]
    elif way == "lose":
        del data[place:place + length]
    elif way == "twice":
        data[place:place] = data[place:place + length]
    elif way == "insert":
        data[place:place] = chance.randbytes(length)
    elif way == "zero":
        data[place:place + length] = bytes(len(data[place:place + length]))
    elif way == "end":
        data += chance.choice([b"\0", b"}", b"\xff" * 64, chance.randbytes(1000), bytes(data)])
    elif way == "empty":
        data = bytearray()
    else:
        data = bytearray(chance.randbytes(chance.choice([1, 12, 1000, 100_000])))
    return bytes(data)


def places(value, path=()):
    """The paths of all values inside one."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield from places(item, path + (key,))


def at(value, path):
    for key in path:
        value = value[key]
    return value


def of_json(chance, text):
    """The text of JSON with a value, a key or the shape changed."""
    value = json.loads(text)
    paths = [path for path in places(value) if path]
    if not paths:
        return chance.choice(RAW)
    path = chance.choice(paths)
    around, key = at(value, path[:-1]), path[-1]
    way = chance.choice(["raw", "raw", "raw", "raw", "text", "type", "gone", "rename", "twice", "swap", "grow", "many"])
    raw = json.dumps(around[key])
    if way == "raw":
        around[key], raw = HOLE, chance.choice(RAW)
    elif way == "text":
        around[key] = chance.choice(TEXTS)
    elif way == "type":
        old = around[key]
        around[key] = [old] if chance.random() < 0.3 else {"x": old} if chance.random() < 0.3 else str(old)
    elif way == "gone":
        del around[key]
    elif way == "rename" and isinstance(around, dict):
        around[chance.choice(TEXTS + ["id", "name"])] = around.pop(key)
    elif way == "twice" and isinstance(around, dict):
        name = json.dumps(key)
        around[key], raw = HOLE, f"{raw},{name}:{chance.choice([raw, '1', 'null'])}"
    elif way == "swap":
        other = chance.choice(paths)
        if other[:len(path)] != path and path[:len(other)] != other:
            there, place = at(value, other[:-1]), other[-1]
            around[key], there[place] = there[place], around[key]
    elif way == "grow":
        copies = chance.choice([2, 50, 3000])
        if isinstance(around, list):
            around.extend(around[key] for _ in range(copies))
        else:
            around[key] = [around[key]] * copies
    elif way == "many" and isinstance(around, dict):
        around.update({f"unknown_{number}": number for number in range(chance.choice([30, 20_000]))})
    text = json.dumps(value, ensure_ascii=chance.random() < 0.5)
    return text.replace(f'"{HOLE}"', raw)


def of_text_file(chance, data):
    """A mutant of a file of JSON, as bytes."""
    if chance.random() < 0.3:
        return of_bytes(chance, data)
    return of_json(chance, data.decode()).encode("utf-8", "surrogatepass")


def of_parquet(chance, data, others=()):
    """A mutant of a Parquet file: bytes, the numbers of its footer, names of columns, or another table in its place."""
    way = chance.choice(["bytes", "bytes", "bytes", "footer", "footer", "names", "rename", "other"])
    footer = int.from_bytes(data[-8:-4], "little") if len(data) > 12 else 0
    start = max(4, len(data) - 8 - footer)
    if way == "footer":
        mutant = bytearray(data)
        for _ in range(chance.choice([1, 1, 2, 4])):
            mutant[chance.randrange(start, len(data))] = chance.choice([0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)])
        return bytes(mutant)
    names = sorted(set(re.findall(rb"[a-z][a-z0-9_:.]{3,30}", data[start:])) - {b"schema"})
    if way == "names" and len(names) > 1:
        # Names of one length change places, and the footer keeps its own.
        one = chance.choice(names)
        same = [name for name in names if len(name) == len(one) and name != one]
        if same:
            other, hole = chance.choice(same), b"\0" * len(one)
            end = data[start:].replace(one, hole).replace(other, one).replace(hole, other)
            return data[:start] + end
    if way == "rename" and names:
        name = chance.choice(names)
        fresh = bytes(chance.choice(b"\x1b\x00\n=az\xff") for _ in name)
        return data[:start] + data[start:].replace(name, fresh)
    if way == "other" and others:
        return chance.choice(others)
    return of_bytes(chance, data)
