"""Places that cannot be written to the end, and files of the user that are in the way."""
import os
import shutil

from hostility.kind import Kind
from hostility.process import SOF, judge, run, tree

RUN = ["--threads=1", "--iterations=3", "--simulate=4", "--quiet", "--json", "--csv", "--checkpoint=iterations:1"]


def ranks(chance):
    return [] if chance.random() < 0.6 else ["-n2", f"--backend={chance.choice(['shm', 'tcp'])}"]


class Disk(Kind):
    """Results that cannot be written: an error with its code and one line of JSON, or nothing is missing."""

    def attempt(self, chance, base, place):
        output, limit = place / "out", None
        way = chance.choice(["limit", "limit", "file", "below", "full", "directory"])
        if way == "limit":
            # Beside the files of the kit, which hold what the command says.
            limit = chance.choice([4096, 6000, 8192, 16_384, 65_536])
        elif way == "file":
            output.write_text("a file")
        elif way == "below":
            (place / "file").write_text("a file")
            output = place / "file/out"
        elif way == "full":
            output.mkdir()
            for name in ("run.json", "dictionary.csv", "policy"):
                (output / name).symlink_to("/dev/full")
        else:
            (output / chance.choice(["run.json", "dictionary.csv", "policy/cuts.parquet", ".lock"])).mkdir(parents=True)
        words = ["run", str(base / "one-reservoir"), *RUN, *ranks(chance), "--output", str(output)]
        ended = run(place, words, file_bytes=limit)
        wrong = judge(ended, {0, 1, 2, 4} if way == "limit" else {0, 1, 2}, True)
        if ended.code == 0 and way not in ("full",) and not (output / "run.json").is_file():
            wrong.append("it is done, and there are no results")
        return wrong, ended.told(), 1


class Foreign(Kind):
    """Files of the user in the directory for results and in /dev/shm: they stay as they are."""

    NAMES = ["checkpoint/deep/model.pt", "checkpoint/00000007.json", "checkpoint/00000007.state", "checkpoint/12.json",
             "checkpoint/notes.txt", "policy/mine.parquet", "policy/manifest.json.bak", "simulation/mine.csv", "training/old.parquet",
             "notes.txt", ".hidden", "checkpoint/finished/x", "results.json", "simulation/deep/er/x"]

    def attempt(self, chance, base, place):
        return (self.memory if chance.random() < 0.3 else self.directory)(chance, base, place)

    def directory(self, chance, base, place):
        output = place / "out"
        if chance.random() < 0.4:
            shutil.copytree(base / chance.choice(["results", "kept"]), output)
        own = chance.sample(self.NAMES, k=chance.choice([1, 2, 5]))
        for name in own:
            (output / name).parent.mkdir(parents=True, exist_ok=True)
            (output / name).write_bytes(chance.randbytes(chance.choice([0, 10, 1000])))
        before = tree(output)
        problem = base / "one-reservoir" if chance.random() < 0.7 else SOF
        bound = [] if problem.is_dir() else ["--bound=0"]
        words = ["run", str(problem), *RUN, *bound, *ranks(chance), "--output", str(output)]
        words += ["--resume"] * (chance.random() < 0.3)
        words += ["--checkpoint=none"] * (chance.random() < 0.3)
        words = [word for word in words if not ("--checkpoint=none" in words and word == "--checkpoint=iterations:1")]
        ended = run(place, words)
        wrong = judge(ended, {0, 1, 2}, True)
        after = tree(output)
        lost = [name for name in own if after.get(name.encode()) != before[name.encode()]]
        wrong += [f"lost or changed: {', '.join(lost)}"] * bool(lost)
        return wrong, f"  own files: {own}\n{ended.told()}", len(own)

    @staticmethod
    def memory(chance, base, place):
        """Named as objects of ours are."""
        path = f"/dev/shm/cobre-{chance.randbytes(chance.choice([2, 16])).hex()}"
        content = chance.choice([b"", bytes(10), bytes(1 << 16), b"my data", chance.randbytes(5000)])
        file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, chance.choice([0o600, 0o644]))
        try:
            os.write(file, content)
            os.close(file)
            words = ["run", str(SOF), "--bound=0", "--threads=1", "--iterations=2", "--quiet", "--json", "-n2", "--backend=shm"]
            ended = run(place, words)
            wrong = judge(ended, {0}, True)
            try:
                with open(path, "rb") as there:
                    wrong += ["a file of the user's was changed"] * (there.read() != content)
            except FileNotFoundError:
                wrong.append(f"a file of the user's was removed from /dev/shm ({len(content)} bytes)")
        finally:
            if os.path.exists(path):
                os.unlink(path)
        return wrong, ended.told(), 1
