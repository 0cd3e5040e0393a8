"""The communicator, shared arrays and spawn."""

from __future__ import annotations

import functools
import signal
import sys

import cobre
import numpy as np
import pytest
import ranks
from conftest import eventually, script, started


@pytest.mark.parametrize("backend", ["shm", "tcp"])
def test_a_function_runs_on_every_rank(backend):
    found = cobre.spawn(ranks.identity, 3, backend=backend)
    assert [each[:3] for each in found] == [(rank, 3, backend) for rank in range(3)]
    assert len({each[3] for each in found}) == 3


@pytest.mark.parametrize("backend", ["shm", "tcp"])
def test_collectives_do_what_they_say_for_every_type(backend):
    size = 3
    base = np.arange(6).reshape(2, 3)
    for of_rank in cobre.spawn(ranks.collectives_of_every_type, size, backend=backend):
        assert list(of_rank) == ranks.TYPES
        for dtype, (total, least, most, gathered, even, sent) in of_rank.items():
            assert np.array_equal(total, size * base + 3) and total.dtype == dtype
            assert np.array_equal(least, base) and np.array_equal(most, base + size - 1)
            assert gathered.tolist() == [0, 1, 1, 2, 2, 2] and gathered.dtype == dtype
            assert even.tolist() == [0, 0, 1, 1, 2, 2]
            assert sent.tolist() == [size - 1] * 3


def test_blocks_go_where_displacements_say():
    for recv in cobre.spawn(ranks.gather_with_gaps, 2):
        assert recv.tolist() == [1.0, 1.0, -1.0, 0.0, 0.0, -1.0]


@pytest.mark.parametrize("dtype", ["float64", "int8"])
@pytest.mark.parametrize(("backend", "sharing"), [("shm", "auto"), ("tcp", "on"), ("tcp", "off")])
def test_shared_arrays_are_written_by_the_leader_and_read_by_all(backend, sharing, dtype, monkeypatch):
    # Where ranks share no memory, each is the leader of its own copy.
    monkeypatch.setenv("COBRE_TCP_SHARED_MEMORY", sharing)
    for before, after in cobre.spawn(ranks.shared, 2, backend=backend, args=(dtype, sharing == "off")):
        assert before.tolist() == [[0, 1, 2], [3, 4, 5]]
        assert after.tolist() == [[9, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("backend", ["shm", "tcp"])
def test_every_rank_writes_its_part(backend):
    assert cobre.spawn(ranks.partitioned, 3, backend=backend) == [[0, 1, 1, 2, 2, 2]] * 3


@pytest.mark.parametrize("backend", ["shm", "tcp"])
def test_the_root_alone_gets_what_is_gathered_at_it(backend):
    first, middle, last = cobre.spawn(ranks.gather_at_root, 3, backend=backend)
    assert first == [None, [0.0, 0.0, 1.0, 1.0, 2.0, 2.0], None]
    assert middle == [None, None, None]
    assert last == [[0, 1, 1, 2, 2, 2], None, [-1.0, 2.0, 1.0, 0.0]]


def test_large_arrays_are_shared():
    assert cobre.spawn(ranks.one_copy, 2, args=(1_000_000,)) == [1_000_000.0] * 2


def test_alone_is_a_communicator_too():
    comm = cobre.Communicator()
    assert (comm.rank, comm.size, comm.backend) == (0, 1, "local")
    assert "rank 0 of 1" in repr(comm)
    assert ranks.partitioned(comm) == [0]
    assert ranks.shared(comm, "float32", True)[1].tolist() == [[9, 1, 2], [3, 4, 5]]


def test_unfit_arrays_are_refused_with_the_reason():
    comm = cobre.Communicator()
    good = np.zeros(4)
    with pytest.raises(TypeError, match="send has dtype complex128"):
        comm.allreduce(np.zeros(4, dtype=complex))
    with pytest.raises(TypeError, match="send is a .*list"):
        comm.allgatherv([1.0])
    with pytest.raises(TypeError, match="recv has dtype int64"):
        comm.allreduce(good, np.zeros(4, dtype=np.int64))
    with pytest.raises(TypeError, match="dtype"):
        comm.allreduce(np.zeros(4, dtype=">f8"))
    with pytest.raises(ValueError, match="send is not contiguous"):
        comm.allreduce(np.zeros((4, 4))[:, 1])
    with pytest.raises(ValueError, match="buf is not contiguous"):
        comm.broadcast(np.asfortranarray(np.zeros((3, 4))))
    fixed = np.zeros(4)
    fixed.flags.writeable = False
    with pytest.raises(ValueError, match="recv is read-only"):
        comm.allreduce(good, fixed)
    unaligned = np.zeros(33, dtype=np.uint8)[1:].view(np.float64)
    with pytest.raises(ValueError, match="send is not aligned"):
        comm.allreduce(unaligned)
    with pytest.raises(ValueError, match="recv shares memory"):
        comm.allreduce(good, good)
    with pytest.raises(ValueError, match="op"):
        comm.allreduce(good, op="mean")
    with pytest.raises(cobre.CommunicationError, match="recv has 3 elements"):
        comm.allreduce(good, np.zeros(3))
    with pytest.raises(cobre.CommunicationError, match="root 7"):
        comm.broadcast(good, root=7)
    with pytest.raises(cobre.CommunicationError, match="root 7"):
        comm.gatherv(good, root=7)
    with pytest.raises(cobre.CommunicationError, match="recv"):
        comm.gatherv(good, np.zeros(3))
    with pytest.raises(MemoryError):
        comm.allgatherv(good, counts=[10**18])
    with pytest.raises(ValueError, match="dimension"):
        comm.allgatherv(good, counts=[2**63], displs=[2**63])
    for shape in [-1, (2, -1), 1.5, None, "ab", 2**64]:
        with pytest.raises(TypeError, match="shape="):
            comm.shared_array(shape)
    with pytest.raises(ValueError, match="40 dimensions"):
        comm.shared_array((1,) * 40)
    with pytest.raises(TypeError, match="complex64"):
        comm.shared_array(3, "complex64")
    with pytest.raises(TypeError, match=">f8"):
        comm.shared_array(3, ">f8")
    with pytest.raises(TypeError, match="nonsense"):
        comm.partitioned_array([3], "nonsense")
    with pytest.raises(cobre.CommunicationError, match="counts"):
        comm.partitioned_array([3, 4])


def test_a_shared_array_is_handed_out_once_while_it_is_held():
    table = cobre.Communicator().shared_array(3)
    view = table.array
    assert table.array is view
    view[:] = 1.0
    del view
    table.array[0] = 2.0
    table.fence()
    assert table.array.tolist() == [2.0, 1.0, 1.0]


def test_other_threads_run_while_one_looks_at_an_array_in_a_fence(tmp_path):
    assert all(cobre.spawn(ranks.watches_a_fence, 2, args=(str(tmp_path / "far"), 60.0)))


def test_a_type_is_given_as_numpy_takes_it():
    comm = cobre.Communicator()
    for given, name in [(np.int32, "int32"), (np.dtype("u1"), "uint8"), (float, "float64"), (None, "float64")]:
        assert comm.shared_array(2, given).array.dtype == name
        assert comm.partitioned_array([2], given).dtype == name


@pytest.mark.parametrize("backend", ["shm", "tcp"])
def test_a_rank_that_raises_is_named_with_what_it_raised(backend):
    with pytest.raises(cobre.WorkerError, match="no such thing") as caught:
        cobre.spawn(ranks.raises, 3, backend=backend, args=(2,))
    assert (caught.value.rank, caught.value.exit_code) == (2, 1)
    assert isinstance(caught.value.inner, LookupError)
    assert "ranks.py" in str(caught.value)


def test_an_exception_that_cannot_be_pickled_is_told_in_words():
    with pytest.raises(cobre.WorkerError, match="strange"):
        cobre.spawn(ranks.raises_something_odd, 2)


@pytest.mark.parametrize("backend", ["shm", "tcp"])
def test_a_rank_that_dies_is_named(backend):
    with pytest.raises(cobre.WorkerError) as caught:
        cobre.spawn(ranks.dies, 3, backend=backend, args=(1,))
    assert (caught.value.rank, caught.value.exit_code, caught.value.inner) == (1, -9, None)
    with pytest.raises(cobre.WorkerError) as caught:
        cobre.spawn(ranks.exits, 2, backend=backend, args=(0, 7))
    assert (caught.value.rank, caught.value.exit_code, caught.value.inner) == (0, 7, None)


def test_ranks_that_disagree_are_told_both_sides():
    for told in cobre.spawn(ranks.disagrees, 2):
        assert "barrier" in told and "allreduce" in told


def test_a_rank_that_gives_up_is_heard():
    with pytest.raises(cobre.WorkerError, match="the sky is falling"):
        cobre.spawn(ranks.aborts, 2)


def test_what_ranks_print_is_printed_here(capsys):
    cobre.spawn(ranks.prints, 2)
    lines = capsys.readouterr().out.splitlines()
    assert sorted(lines) == ["rank 0 speaks in lines", "rank 1 speaks in lines"]


def test_threads_of_a_rank_may_print_at_once(capsys):
    cobre.spawn(ranks.prints_from_threads, 1, args=(50,))
    lines = capsys.readouterr().out.splitlines()
    expected = [f"{thread}:{line}:" + "x" * 10_000 for thread in range(4) for line in range(50)]
    # Pieces of what threads print may follow each other in any order, but none is lost or torn.
    assert sorted("".join(lines)) == sorted("".join(expected))


def test_a_rank_that_leaves_without_a_result_is_named():
    with pytest.raises(cobre.WorkerError, match="without a result") as caught:
        cobre.spawn(ranks.leaves_without_a_word, 2)
    assert (caught.value.rank, caught.value.exit_code) == (0, 0)


def test_an_exception_that_cannot_say_what_it_is_is_told_by_its_name():
    with pytest.raises(cobre.WorkerError, match="raised Mute") as caught:
        cobre.spawn(ranks.raises_what_says_nothing, 1)
    assert isinstance(caught.value.inner, ranks.Mute)


def test_a_result_that_cannot_be_loaded_here_is_told_and_ends_the_ranks(capfd):
    with pytest.raises(cobre.CobreError, match="worker . returned cannot be loaded here: RuntimeError: not here"):
        cobre.spawn(ranks.returns_what_cannot_be_loaded, 2)
    assert capfd.readouterr().err == ""


def test_functions_without_a_module_need_cloudpickle(monkeypatch):
    class Local:
        pass

    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    for fn, args in [(lambda comm: comm.rank, ()), (functools.partial(lambda comm: 1), ()), (ranks.identity, (Local(),))]:
        with pytest.raises(cobre.CobreError, match="cloudpickle") as caught:
            cobre.spawn(fn, 2, args=args)
        assert caught.value.kind == "usage"


def test_what_is_no_function_is_refused():
    with pytest.raises(TypeError, match="fn=3"):
        cobre.spawn(3, 2)


def test_classes_of_the_script_come_back_as_they_are():
    run = script(
        "import cobre\n"
        "class Found:\n"
        "    pass\n"
        "class Trouble(Exception):\n"
        "    pass\n"
        "def work(comm): return Found()\n"
        "def fail(comm): raise Trouble('mine')\n"
        "print([type(found) is Found for found in cobre.spawn(work, 2)])\n"
        "try: cobre.spawn(fail, 1)\n"
        "except cobre.WorkerError as error: print(type(error.inner) is Trouble, error.inner)\n"
    )
    out, err = run.communicate(timeout=60)
    assert out == "[True, True]\nTrue mine\n", (out, err)


def test_functions_without_a_module_run_with_cloudpickle():
    offset = 10
    assert cobre.spawn(lambda comm: comm.rank + offset, 2) == [10, 11]


def test_ctrl_c_ends_a_function_that_does_not_end():
    run = script(
        "import sys, cobre\n"
        f"sys.path.insert(0, {str(ranks.__file__.rsplit('/', 1)[0])!r})\n"
        "import ranks\n"
        "try: cobre.spawn(ranks.forever, 2)\n"
        "except KeyboardInterrupt: print('interrupted')\n"
    )
    assert run.stdout.readline() == "waiting\n"
    run.send_signal(signal.SIGINT)
    out, err = run.communicate(timeout=60)
    assert out.endswith("interrupted\n"), (out, err)
    assert eventually(lambda: not started())
