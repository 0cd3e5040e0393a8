"""The kinds of hostile input: what each does to cobre, and what must come of it."""
import csv
import hashlib
import json
import os
import re
import shutil
import struct

from hostility import mutants, network, parquet
from hostility.kind import Kind
from hostility.network import Tcp
from hostility.other_user import OtherUser
from hostility.storage import Disk, Foreign
from hostility.process import LAUNCH_CODES, ROOT, SOF, judge, run, same, tree, unchanged

CASES = ["one-reservoir", "cascade", "four-regions"]
SHORT = ["--threads=1", "--iterations=2", "--forward-passes=1", "--simulate=2"]


def prepare(base):
    """Makes what mutants are made of: cases, results, a policy, a run that can be resumed."""
    made = lambda *words: _made(run(base, [str(word) for word in words]))
    for case in CASES:
        made("init", case, base / case)
        shutil.rmtree(base / case / "schemas")
    case = base / "one-reservoir"
    common = ["--threads=1", "--quiet", "--json", "--csv"]
    made("run", case, *common, "--iterations=3", "--simulate=4", "--output", base / "results")
    made("run", SOF, *common, "--bound=0", "--iterations=3", "--simulate=4", "--output", base / "other")
    made("run", case, *common, "--iterations=3", "--simulate=0", "--checkpoint=iterations:1", "--output", base / "kept")
    (base / "kept/checkpoint/finished").unlink()
    shutil.copytree(base / "kept", base / "whole")
    known = {"resumed": resume(base, base / "whole"), "policy": warm(base, base / "results"), "job": network.PROBLEM}
    for name, words in known.items():
        (base / f"{name}.json").write_text(json.dumps(_made(run(base, words)).line()))
    network.prepare(base)


def _made(ended):
    if ended.code != 0:
        raise RuntimeError(f"the kit cannot begin:\n{ended.told()}")
    return ended


def resume(base, output):
    return ["run", str(base / "one-reservoir"), "--threads=1", "--iterations=5", "--simulate=0", "--checkpoint=none",
            "--quiet", "--json", "--resume", "--output", str(output)]


def warm(base, output):
    return ["run", str(base / "one-reservoir"), "--threads=1", "--simulate=3", "--simulate-only", "--quiet", "--json",
            "--warm-start", str(output)]


def files(directory, ending):
    return sorted(path for path in directory.rglob(f"*{ending}") if "schemas" not in path.parts)


def tried(chance, place, problem, extra=()):
    """Validates or runs a problem that is damaged. It stays as it is, and a run that refuses it writes nothing."""
    problem_before = tree(problem) if problem.is_dir() else {}
    output, is_json = place / "out", chance.random() < 0.9
    words = ["validate", str(problem)]
    if chance.random() < 0.4:
        words = ["run", str(problem), *SHORT, "--quiet", "--checkpoint=none", *extra]
        if chance.random() < 0.5:
            words += ["--output", str(output)]
        if chance.random() < 0.15:
            words += ["-n2", f"--backend={chance.choice(['shm', 'tcp'])}"]
    ended = run(place, words + ["--json"] * is_json)
    wrong = judge(ended, {0, 1, 2, 3}, is_json)
    if problem.is_dir():
        wrong += unchanged(problem_before, problem, "the case changed")
    # A program that cannot be solved is written where the run was started.
    here = [name for name in os.listdir(place / "here") if not (ended.code == 3 and name.startswith("failed-node"))]
    wrong += [f"written here: {ascii(here)}"] * bool(here)
    if ended.code == 1 and output.exists() and any(output.rglob("*.parquet")):
        wrong.append("results of a problem that was refused")
    return wrong, ended.told(), 1


class CaseJson(Kind):
    def attempt(self, chance, base, place):
        case = place / "case"
        shutil.copytree(base / chance.choice(CASES), case)
        file = chance.choice(files(case, ".json"))
        file.write_bytes(mutants.of_text_file(chance, file.read_bytes()))
        return tried(chance, place, case)


# Tables that fit the case of one reservoir.
TABLES = {
    "inflow_seasonal_stats": [("hydro_id", "int32", [0] * 12), ("stage_id", "int32", list(range(12))),
                              ("mean_m3s", "double", [100.0] * 12), ("std_m3s", "double", [10.0] * 12)],
    "load_seasonal_stats": [("bus_id", "int32", [0] * 12), ("stage_id", "int32", list(range(12))),
                            ("mean_mw", "double", [100.0] * 12), ("std_mw", "double", [0.0] * 12)],
}
NUMBERS = [0.0, -0.0, -1.0, 1e308, -1e308, 1e31, 1e-320, float("nan"), float("inf"), float("-inf")]
WHOLE = [-(2**31), 2**31 - 1, -1, 0, 12, 999, 2**31 - 2]


def hostile_table(chance, columns):
    """A sound Parquet file of which the contents are not: values, names, types, columns, counts."""
    columns = [[name, kind, list(values)] for name, kind, values in columns]
    rows, claimed = len(columns[0][2]), None
    way = chance.choice(["value", "value", "name", "type", "less", "more", "swap", "rows", "none", "claim"])
    column = chance.choice(columns)
    if way == "value":
        column[2][chance.randrange(rows)] = chance.choice(NUMBERS if column[1] == "double" else WHOLE)
    elif way == "name":
        column[0] = chance.choice(mutants.TEXTS).encode("utf-8", "surrogatepass")
    elif way == "type":
        texts = [chance.choice(mutants.TEXTS).encode("utf-8", "surrogatepass") for _ in range(rows)]
        column[1:] = chance.choice([["text", texts], ["int64", [2**63 - 1] * rows], ["double", [0.5] * rows], ["int32", [7] * rows]])
    elif way == "less":
        columns.remove(column)
    elif way == "more":
        columns.extend([f"extra_{number}", "double", [1.0] * rows] for number in range(chance.choice([1, 40, 1500])))
    elif way == "swap":
        chance.shuffle(columns)
    elif way == "rows":
        for one in columns:
            one[2] = one[2] * chance.choice([2, 1, 3000])
    elif way == "none":
        columns = [[name, kind, []] for name, kind, _ in columns]
    else:
        claimed = chance.choice([0, 1, rows + 1, 10**6, 2**31 - 1, 2**40, 2**62, -1])
    if not columns:
        return b"PAR1"
    return parquet.table(columns, claimed=claimed)


class CaseParquet(Kind):
    def attempt(self, chance, base, place):
        case = place / "case"
        if chance.random() < 0.5:
            shutil.copytree(base / chance.choice(CASES), case)
            tables = files(case, ".parquet")
            file = chance.choice(tables)
            file.write_bytes(mutants.of_parquet(chance, file.read_bytes(), [table.read_bytes() for table in tables]))
        else:
            shutil.copytree(base / "one-reservoir", case)
            name = chance.choice(sorted(TABLES))
            (case / f"scenarios/{name}.parquet").write_bytes(hostile_table(chance, TABLES[name]))
        return tried(chance, place, case)


class StochOptFormat(Kind):
    def attempt(self, chance, base, place):
        file = place / "problem.sof.json"
        file.write_bytes(mutants.of_text_file(chance, SOF.read_bytes()))
        return tried(chance, place, file, ["--bound=0"] * (chance.random() < 0.9))


def policy_hash(manifest, cuts):
    """The fingerprint of a policy: names, and every bit of the cuts, by node."""
    whole = hashlib.sha256()
    for text in [manifest["sense"], *[state["name"] for state in manifest["states"]], *manifest["nodes"]]:
        whole.update(struct.pack("<Q", len(text.encode())) + text.encode())
    passes = max(1, manifest["forward_passes"])
    for node in manifest["nodes"]:
        own = [cut for cut in cuts if cut[0] == node]
        whole.update(struct.pack("<Q", len(own)))
        for _, iteration, number, *figures in own:
            slot = (iteration - 1) * passes + number - 1
            whole.update(struct.pack("<I", slot & 0xFFFFFFFF) + struct.pack(f"<{len(figures)}d", *figures))
    return whole.hexdigest()


def rehashed(chance, directory):
    """Another policy, of which the fingerprint is right."""
    manifest = json.loads((directory / "manifest.json").read_text())
    with open(directory / "cuts.csv", newline="") as file:
        head, *cuts = list(csv.reader(file))
    cuts = [[row[0], int(row[1]), int(row[2]), *map(float, row[3:])] for row in cuts]
    for _ in range(chance.choice([1, 1, 2, 20])):
        cut, column = chance.choice(cuts), chance.randrange(1, len(head))
        whole = [-(2**63), 2**63 - 1, 0, -1, 2**31, 2**32, 2**40, 5]
        cut[column] = chance.choice(whole if column < 3 else NUMBERS)
    if chance.random() < 0.2:
        cuts = cuts * 50 if chance.random() < 0.5 else []
    if chance.random() < 0.3:
        manifest["forward_passes"] = chance.choice([0, 1, 2**31, 2**63 - 1])
    manifest["sha256"] = policy_hash(manifest, cuts)
    kinds = ["text", "int64", "int64"] + ["double"] * (len(head) - 3)
    columns = [(name, kind, [cut[place] for cut in cuts]) for place, (name, kind) in enumerate(zip(head, kinds))]
    columns[0] = (head[0], "text", [cut[0].encode() for cut in cuts])
    (directory / "cuts.parquet").write_bytes(parquet.table(columns, rows=len(cuts)))
    (directory / "manifest.json").write_text(json.dumps(manifest))


class Policies(Kind):
    def attempt(self, chance, base, place):
        directory = place / "results/policy"
        shutil.copytree(base / "results/policy", directory)
        honest = chance.random() < 0.7
        if honest:
            file = directory / chance.choice(["manifest.json", "cuts.parquet", "cuts.parquet"])
            change = mutants.of_text_file if file.suffix == ".json" else mutants.of_parquet
            file.write_bytes(change(chance, file.read_bytes()))
        else:
            rehashed(chance, directory)
        before = tree(directory)
        words = warm(base, place / "results")
        if chance.random() < 0.3:
            honest = False
            words = [word for word in words if word != "--simulate-only"] + ["--iterations=1", "--forward-passes=1"]
        ended = run(place, words)
        wrong = judge(ended, {0, 1, 2, 3}, True) + unchanged(before, directory, "the policy changed")
        if honest and ended.code == 0 and not same(ended.line(), base / "policy.json"):
            wrong.append("another result than that of the whole policy")
        return wrong, ended.told(), 1


class Checkpoints(Kind):
    def attempt(self, chance, base, place):
        output = place / "kept"
        shutil.copytree(base / "kept", output)
        number = chance.choice(["00000002", "00000003", "00000003", "00000003"])
        manifest, state = (output / f"checkpoint/{number}.{ending}" for ending in ("json", "state"))
        honest, way = True, chance.choice(["state", "state", "manifest", "manifest", "hashed", "hashed", "swap", "both"])
        if way in ("state", "hashed", "both"):
            state.write_bytes(mutants.of_bytes(chance, state.read_bytes()))
        if way in ("manifest", "both"):
            manifest.write_bytes(mutants.of_text_file(chance, manifest.read_bytes()))
        if way == "swap":
            other = output / "checkpoint/00000002.state"
            one, two = state.read_bytes(), other.read_bytes()
            state.write_bytes(two), other.write_bytes(one)
        if way == "hashed":
            honest, told, data = False, json.loads(manifest.read_text()), state.read_bytes()
            told.update(bytes=len(data), sha256=hashlib.sha256(data).hexdigest())
            manifest.write_text(json.dumps(told))
        ended = run(place, resume(base, output))
        wrong = judge(ended, {0, 1, 2, 3, 4}, True)
        if honest and ended.code == 0 and not same(ended.line(), base / "resumed.json"):
            wrong.append("another result than that of the whole checkpoint")
        return wrong, ended.told(), 1


class Results(Kind):
    def attempt(self, chance, base, place):
        name = chance.choice(["results", "results", "other"])
        results = place / "results"
        shutil.copytree(base / name, results)
        tables = files(results, ".parquet")
        chosen = [results / "run.json", results / "policy/manifest.json", results / "dictionary.csv"]
        file = chance.choice(chosen + tables)
        data = file.read_bytes()
        if file.suffix == ".json":
            file.write_bytes(mutants.of_text_file(chance, data))
        elif file.suffix == ".csv":
            file.write_bytes(mutants.of_bytes(chance, data))
        elif chance.random() < 0.1:
            file.unlink()
        else:
            file.write_bytes(mutants.of_parquet(chance, data, [table.read_bytes() for table in tables]))
        before, page = tree(results), place / "report.html"
        words = chance.choice([["summary", results], ["report", results, "--output", page],
                               ["compare", base / name, results], ["compare", results, base / name]])
        ended = run(place, [str(word) for word in words])
        wrong = judge(ended, {0, 1, 2}) + unchanged(before, results, "the results changed")
        if words[0] != "compare" and ended.code == 1 and not ended.err:
            wrong.append("refused without a word on standard error")
        if ended.code != 0 and page.exists():
            wrong.append("a page of results that were refused")
        if page.exists() and b"<script>alert" in page.read_bytes():
            wrong.append("a script from the results in the page")
        return wrong, ended.told(), 1


VALUES = mutants.TEXTS + [
    "-1", "0", "1", "2", "007", "1e3", "1e400", "-1e400", "nan", "inf", "4294967296", "18446744073709551615",
    "18446744073709551616", "99999999999999999999999", "0x10", "1,5", "1 ", "none", "auto", "local", "shm", "tcp", "mpi", "mpi4", "check",
    "iterations:0", "iterations:-1", "iterations:1e9", "iterations:99999999999999999999", "minutes:nan", "minutes:-1", "minutes:1e308",
    "time:-1", "time:nan", "time:1e308", "stalling:0,0", "stalling:5", "stalling:5,nan", "statistical:0",
    "statistical:18446744073709551615", "cvar:2,3", "cvar:nan,0", "cvar:0.5,1e-320", "cvar:,", "level1:0", "lml1:-1",
    "lml1:18446744073709551616", "--", "-", "--json", "-n", "@file", "~", "*", "/dev/null", "/dev/zero", "/", ".", "/proc/self/mem",
]
OPTIONS = {
    "run": ["-n", "--backend", "--threads", "--checkpoint", "--warm-start", "--retries", "--seed", "--forward-passes",
            "--simulate", "--solver", "--bound", "--risk", "--cut-selection", "--stop"],
    "validate": ["--json"], "init": [], "schema": [], "report": ["--output", "--png"], "summary": [], "compare": [],
    "launch": ["-n", "--backend", "--timeout", "--logs", "--bind"], "doctor": [],
    "bench": ["--op", "--bytes", "-n", "--backend"],
}
# Numbers that are legal for these, and would keep the machine busy for long.
HEAVY = {"--simulate", "--threads", "--retries", "--stop", "--timeout", "-n"}
BUSY = {"1e3", "4294967296", "18446744073709551615", "time:1e308", "007"}


def word(chance, option=None):
    value = chance.choice(VALUES)
    while "\0" in value or value == "\ud800" or option in HEAVY and value in BUSY:
        value = chance.choice(VALUES)
    return b"\xff\xfe" + value.encode() if chance.random() < 0.05 else value.encode()


class Arguments(Kind):
    def attempt(self, chance, base, place):
        command = chance.choice(sorted(OPTIONS))
        words = [command]
        problem = os.fsencode(chance.choice([base / "one-reservoir", SOF]))
        if chance.random() < 0.2:
            problem = self.special(chance, place)
        target = problem if chance.random() < 0.8 else word(chance)
        limit = ["--iterations=1"] if chance.random() < 0.9 else [b"--iterations=" + word(chance, "--simulate")]
        words += {
            "run": [target, *limit], "validate": [target], "init": [word(chance), b"new"], "schema": [b"new"],
            "report": [os.fsencode(base / "other"), b"--output=page.html"], "summary": [word(chance)],
            "compare": [os.fsencode(base / "other"), word(chance)], "launch": ["-n1"], "doctor": [],
            "bench": ["collectives", "--seconds=0.001", "--bytes=8"],
        }[command]
        for option in chance.sample(OPTIONS[command], k=min(len(OPTIONS[command]), chance.choice([0, 1, 1, 2]))):
            value = word(chance, option)
            words.append(option.encode() + b"=" + value if option.startswith("--") and chance.random() < 0.8 else option)
            if words[-1] == option:
                words.append(value)
        if chance.random() < 0.1:
            words.insert(chance.randrange(len(words)), word(chance))
        if command == "launch":
            words += ["--", *chance.choice([["true"], ["false"], [word(chance)], [b"/"], ["/dev/null"]])]
        before = tree(base / "one-reservoir")
        ended = run(place, words)
        codes = LAUNCH_CODES if command in ("launch", "bench") else {0, 1, 2, 3, 4, 64}
        wrong = judge(ended, codes) + unchanged(before, base / "one-reservoir", "the case changed")
        return wrong, ended.told(), 1

    @staticmethod
    def special(chance, place):
        """A problem that is no plain file."""
        file = place / "x.sof.json"
        way = chance.choice(["fifo", "device", "link", "directory", "locked"])
        if way == "fifo":
            os.mkfifo(file)
        elif way == "device":
            file.symlink_to("/dev/zero")
        elif way == "link":
            file.symlink_to(file.name)
        elif way == "directory":
            file.mkdir()
        else:
            file = place / "case"
            file.mkdir()
            os.mkfifo(file / "config.json")
        return os.fsencode(file)


class Variables(Kind):
    NAMES = sorted(set(re.findall(r'"COBRE_([A-Z_]+)"', (ROOT / "crates/cobre-comm/src/env.rs").read_text())))
    # A name that has to be looked up elsewhere would be a test of the resolver.
    HOSTS = ["", "256.256.256.256", "::1", "127.0.0.1", "0.0.0.0", "1.2.3", "[::1]", "127.0.0.1:80", "a b", "\x1b[31m"]
    PLACES = ["1:2:3", "0:0:0", "-1:0:0", "99999999999:1:1", "1", ":", "2:x:y", "255:18446744073709551616:0"]

    def attempt(self, chance, base, place):
        backend = chance.choice(["shm", "tcp", "auto", "local"])
        given = {"COMM_BACKEND": backend, "SHM_TIMEOUT_SECS": "1", "TCP_TIMEOUT_SECS": "1"}
        if backend == "shm":
            given |= {"SHM_NAME": f"/cobre-hostile-{os.getpid()}", "SHM_RANK": "0", "SHM_SIZE": "1"}
        elif backend == "tcp":
            given |= {"TCP_RANK": "0", "TCP_SIZE": "1", "TCP_PORT": "0"}
        for name in chance.sample(self.NAMES, k=chance.choice([1, 1, 2, 3])):
            if name in ("TCP_COORDINATOR", "TCP_BIND"):
                given[name] = chance.choice(self.HOSTS)
            elif name in ("TCP_LISTENER", "TCP_SECRET", "LAUNCH_REPORT"):
                given[name] = chance.choice(self.PLACES)
            elif name.endswith("TIMEOUT_SECS"):
                given[name] = chance.choice(["0", "-1", "nan", "x", "0.0001", "", "2"])
            else:
                given[name] = os.fsdecode(word(chance))
        settings = {f"COBRE_{name}": value for name, value in given.items()}
        line = chance.random() < 0.5
        words = ["run", str(SOF), "--bound=0", *SHORT, "--quiet", "--json"] if line else ["doctor"]
        ended = run(place, words, environment=settings)
        # Another rank than the first has nothing to say, and joins nobody here.
        speaks = line and all(name not in settings or settings[name] == "0" for name in ("COBRE_SHM_RANK", "COBRE_TCP_RANK"))
        wrong = judge(ended, {0, 1, 2, 4, 64}, speaks)
        wrong += [f"written here: {ascii(os.listdir(place / 'here'))}"] * bool(os.listdir(place / "here"))
        return wrong, f"  variables: {ascii(settings)}\n{ended.told()}", 1


class Names(Kind):
    """Names of files, plants, states and keys that no terminal and no spreadsheet may obey."""

    def attempt(self, chance, base, place):
        name = chance.choice(mutants.TEXTS[:-1])
        own = name.replace("\0", "").replace("/", "_")[:80].encode() or b"x"
        if chance.random() < 0.2:
            own += b"\xff\xc3("
        home = os.fsencode(place)
        case, output = os.path.join(home, b"c" + own), os.path.join(home, b"o" + own)
        source = chance.choice(["case", "sof"])
        if source == "case":
            shutil.copytree(os.fsencode(base / chance.choice(CASES)), case)
            self.rename(chance, os.fsdecode(case), name)
        else:
            case += b".sof.json"
            text = SOF.read_text().replace(chance.choice(['"upper"', '"inflow_upper"', '"gas"', '"wet2"']), json.dumps(name))
            with open(case, "w", encoding="utf-8", errors="surrogatepass") as file:
                file.write(text)
        steps = [["validate", case], ["run", case, *SHORT, "--csv", "--bound=0", "--output", output] if source == "sof"
                 else ["run", case, *SHORT, "--csv", "--output", output],
                 ["summary", output], ["report", output], ["compare", output, output], ["compare", output, base / "results"],
                 ["run", case, "--resume", "--output", output, *SHORT], ["run", case, "--warm-start", output, *SHORT],
                 ["init", own, output], ["init", "cascade", output], ["schema", os.path.join(output, b"run.json")],
                 ["launch", "-n1", "--", os.path.join(home, own)], ["launch", "-n1", "--logs", output, "--backend", own, "--", "true"],
                 ["run", os.path.join(home, own)], ["validate", "--json", os.path.join(home, own)], [own], ["run", "--risk", own, case]]
        wrong, about = [], ""
        for step in steps:
            ended = run(place, step)
            found = judge(ended, LAUNCH_CODES, "--json" in step)
            if found:
                wrong += [f"{step[0]}: {one}" for one in found]
                about += ended.told() + "\n"
        wrong += self.cells(output)
        return wrong, f"  name: {ascii(name)}\n{about.rstrip()}", len(steps)

    @staticmethod
    def rename(chance, case, name):
        """Gives a plant, a bus or a line this name, or something that is missing."""
        file = os.path.join(case, "system", chance.choice(["hydros.json", "thermals.json", "buses.json"]))
        with open(file) as source:
            value = json.load(source)
        things = next(item for key, item in value.items() if key != "$schema")
        thing = chance.choice(things)
        thing["name"] = name
        if chance.random() < 0.3:
            thing[name] = 1
        with open(file, "w", encoding="utf-8", errors="surrogatepass") as target:
            json.dump(value, target, ensure_ascii=True)

    @staticmethod
    def cells(output):
        """Cells of CSV that a spreadsheet would compute."""
        wrong = []
        for folder, _, names in os.walk(output):
            for name in names:
                if not name.endswith(b".csv"):
                    continue
                with open(os.path.join(folder, name), newline="", encoding="utf-8") as file:
                    for cell in (cell for row in csv.reader(file) for cell in row):
                        if cell.startswith(("=", "+", "-", "@", "\t", "\r")) and not number(cell):
                            wrong.append(f"{ascii(os.fsdecode(name))} has the cell {ascii(cell[:20])}")
        return wrong[:3]


def number(text):
    try:
        return float(text) is not None
    except ValueError:
        return False


KINDS = {
    "case-json": CaseJson(25),
    "case-parquet": CaseParquet(25),
    "sof": StochOptFormat(12),
    "policy": Policies(12),
    "checkpoint": Checkpoints(8),
    "results": Results(12),
    "arguments": Arguments(20),
    "variables": Variables(10),
    "names": Names(3),
    "disk": Disk(5),
    "foreign": Foreign(4),
    "tcp": Tcp(1),
    "user": OtherUser(0.4),
}
