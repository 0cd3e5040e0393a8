"""Times the collectives of cobre and of mpi4py, on two ranks of one machine, in microseconds.

    python beside_mpi4py.py                                  cobre
    mpiexec.mpich -n 2 python beside_mpi4py.py mpi4py        mpi4py
"""

from __future__ import annotations

import statistics
import sys
import time

import numpy as np

SAMPLES = 50
ELEMENTS = 200_000  # per rank: 3.2 MB in all


def samples_us(call, calls: int) -> list[float]:
    samples = []
    for _ in range(SAMPLES + 5):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        samples.append((time.perf_counter() - start) / calls * 1e6)
    # The first are warm-up.
    return samples[5:]


def median_us(call, calls: int) -> float:
    return statistics.median(samples_us(call, calls))


def measure(comm) -> tuple[float, float]:
    """With cobre."""
    four, sum_of_four = np.ones(4), np.empty(4)
    send, recv = np.ones(ELEMENTS), np.empty(ELEMENTS * comm.size)
    counts = [ELEMENTS] * comm.size
    displs = [ELEMENTS * rank for rank in range(comm.size)]
    return (
        median_us(lambda: comm.allreduce(four, sum_of_four), 1000),
        median_us(lambda: comm.allgatherv(send, recv, counts, displs), 20),
    )


def measure_mpi4py(comm) -> tuple[float, float]:
    """With mpi4py."""
    size = comm.Get_size()
    four, sum_of_four = np.ones(4), np.empty(4)
    send, recv = np.ones(ELEMENTS), np.empty(ELEMENTS * size)
    counts = [ELEMENTS] * size
    return (
        median_us(lambda: comm.Allreduce(four, sum_of_four), 1000),
        median_us(lambda: comm.Allgatherv(send, [recv, counts]), 20),
    )


def alone_us() -> float:
    """What a call costs that talks to nobody, at best: what Python adds."""
    import cobre

    comm, four, sum_of_four = cobre.Communicator(), np.ones(4), np.empty(4)
    return min(samples_us(lambda: comm.allreduce(four, sum_of_four), 10_000))


def show(name: str, times: tuple[float, float]) -> None:
    print(f"{name:<10} allreduce of 4 f64 {times[0]:9.2f} us   allgatherv of 3.2 MB {times[1]:9.1f} us")


if __name__ == "__main__":
    if sys.argv[1:] == ["mpi4py"]:
        from mpi4py import MPI

        found = measure_mpi4py(MPI.COMM_WORLD)
        if MPI.COMM_WORLD.Get_rank() == 0:
            show("mpi4py", found)
    else:
        import beside_mpi4py
        import cobre

        for backend in ["shm", "tcp"]:
            show(f"cobre {backend}", cobre.spawn(beside_mpi4py.measure, 2, backend=backend)[0])
        print(f"cobre alone allreduce of 4 f64 {alone_us():9.2f} us   at best, with the loop")
