"""Functions that the tests of the communicator run on every rank."""

from __future__ import annotations

import os
import signal
import threading
import time

import cobre
import numpy as np

TYPES = ["float64", "float32", "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8"]


def identity(comm):
    return comm.rank, comm.size, comm.backend, os.getpid()


def collectives(comm, dtype):
    rank, size = comm.rank, comm.size
    mine = (np.arange(6).reshape(2, 3) + rank).astype(dtype)
    total = comm.allreduce(mine)
    least = np.empty_like(mine)
    assert comm.allreduce(mine, least, op="min") is least
    most = comm.allreduce(mine, op="max")
    counts = [rank + 1 for rank in range(size)]
    gathered = comm.allgatherv(np.full(rank + 1, rank, dtype=dtype), counts=counts)
    even = comm.allgatherv(np.full(2, rank, dtype=dtype))
    sent = np.full(3, rank, dtype=dtype)
    comm.broadcast(sent, root=size - 1)
    comm.barrier()
    return total, least, most, gathered, even, sent


def collectives_of_every_type(comm):
    return {dtype: collectives(comm, dtype) for dtype in TYPES}


def gather_with_gaps(comm):
    recv = np.full(3 * comm.size, -1.0)
    displs = [3 * rank for rank in reversed(range(comm.size))]
    comm.allgatherv(np.array([float(comm.rank)] * 2), recv, counts=[2] * comm.size, displs=displs)
    return recv


def gather_at_root(comm):
    root, counts = comm.size - 1, [rank + 1 for rank in range(comm.size)]
    gathered = comm.gatherv(np.full(comm.rank + 1, comm.rank, dtype="int32"), counts=counts, root=root)
    first = comm.gatherv(np.full(2, float(comm.rank)))
    placed = np.full(comm.size + 1, -1.0) if comm.rank == root else None
    displs = list(range(comm.size, 0, -1))
    comm.gatherv(np.array([float(comm.rank)]), placed, counts=[1] * comm.size, displs=displs, root=root)
    return [None if found is None else found.tolist() for found in (gathered, first, placed)]


def shared(comm, dtype, every_rank_writes):
    table = comm.shared_array((2, 3), dtype)
    assert table.writing and table.shape == (2, 3) and table.dtype == dtype
    if comm.rank == 0 or every_rank_writes:
        view = table.array
        view[:] = np.arange(6).reshape(2, 3)
    else:
        view = None
        try:
            table.array
        except ValueError as error:
            assert "leader" in str(error)
        else:
            raise AssertionError("only the leader writes")
    table.fence()
    if view is not None:
        assert not view.flags.writeable
    first = table.array
    assert not first.flags.writeable and not table.writing
    found = first.copy()
    table.fence()
    if view is not None:
        table.array[0, 0] = 9
    table.fence()
    return found, table.array.copy()


def partitioned(comm):
    parts = comm.partitioned_array([rank + 1 for rank in range(comm.size)], "int64")
    parts.array[:] = comm.rank
    parts.fence()
    whole = parts.array
    # The array keeps the memory alive.
    del parts
    return whole.tolist()


def one_copy(comm, size):
    """Whether ranks really share: the address space differs, the file behind it does not."""
    table = comm.shared_array(size)
    if comm.rank == 0:
        table.array[:] = 1.0
    table.fence()
    return float(table.array.sum())


def raises(comm, rank):
    if comm.rank == rank:
        raise LookupError("no such thing")
    comm.barrier()


def raises_something_odd(comm):
    class Odd(Exception):
        def __init__(self, one, two):
            super().__init__(one)

    raise Odd("strange", 2)


def dies(comm, rank):
    if comm.rank == rank:
        os.kill(os.getpid(), signal.SIGKILL)
    comm.barrier()


def exits(comm, rank, code):
    if comm.rank == rank:
        os._exit(code)
    comm.barrier()


def disagrees(comm):
    try:
        if comm.rank == 0:
            comm.barrier()
        else:
            comm.allreduce(np.zeros(3))
    except cobre.CommunicationError as error:
        return str(error)
    return None


def aborts(comm):
    if comm.rank == 1:
        comm.abort("the sky is falling")
    try:
        comm.barrier()
    except cobre.CommunicationError as error:
        return str(error)
    return None


def prints(comm):
    print(f"rank {comm.rank} speaks", end="")
    print(" in lines")


def prints_from_threads(comm, lines):
    def work(thread):
        for line in range(lines):
            print(f"{thread}:{line}:" + "x" * 10_000)

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def leaves_without_a_word(comm):
    os._exit(0)


class Mute(Exception):
    def __str__(self):
        raise RuntimeError("nothing to say")


def raises_what_says_nothing(comm):
    raise Mute


class Homesick:
    def __reduce__(self):
        return at_home, ()


def at_home():
    if "COBRE_LAUNCH_RANK" not in os.environ:
        raise RuntimeError("not here")


def returns_what_cannot_be_loaded(comm):
    return Homesick()


def watches_a_fence(comm, far_enough, seconds):
    """True if another thread gets on while rank 0 waits in a fence for the others, which come when it has, or at last."""
    table = comm.shared_array(2)
    if comm.rank > 0:
        until = time.monotonic() + seconds
        while not os.path.exists(far_enough) and time.monotonic() < until:
            time.sleep(0.01)
        table.fence()
        return os.path.exists(far_enough)
    steps = 0
    fence = threading.Thread(target=table.fence)
    fence.start()
    watch = threading.Thread(target=lambda: table.writing)
    watch.start()
    while fence.is_alive():
        steps += 1
        if steps == 50:
            open(far_enough, "w").close()
        time.sleep(0.001)
    watch.join()
    return steps >= 50


def forever(comm):
    print("waiting", flush=True)
    while True:
        time.sleep(0.01)
