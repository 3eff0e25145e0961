# SPDX-License-Identifier: Apache-2.0
"""What goes wrong on one of two ranks, each with a GPU: a clear error on both, in time.

OFL_TEST_TWO_ON=cpu runs what both have over Gloo.
"""

from concurrent.futures import ThreadPoolExecutor

import pytest
import test_distributed_failures as failures
from two_gpus import ON, marks, only_cuda

pytestmark = marks

RAISED = "KeyError: 'of my own'"
HEARD = {
    "killed": failures.ENDED, "killed_before_it_connects": failures.ENDED, "raises": RAISED,
    "raises_while_others_compute": RAISED, "global_raises": RAISED,
    "pipeline_killed": failures.ENDED,
}  # fmt: skip
DISAGREEING = {
    "different_counts": ["all_reduce(sum) of 3 float32", "all_reduce(sum) of 4 float32"],
    "different_dtypes": ["all_reduce(sum) of 3 int32", "all_reduce(sum) of 3 float32"],
    "wrong_order": ["all_reduce(sum) of 3 float32", "broadcast of 3 float32 from member 0"],
    "different_splits": ["rank 0 sends 3 elements to rank 1, which expects 1"],
    "global_wrong_order": ["all_reduce(sum) of 3 float32", "all_gather of [3, 3] float32"],
    "different_messages": ["rank 1 sends 4 float32, rank 0 receives 3 float32"],
}
WITH_CHECKS = ["hangs", *DISAGREEING]
WITHOUT = [
    "hangs",
    "leaves",
    "one_has_much_more",
    *HEARD,
    *(["missing_library"] if ON == "cuda" else []),
]
LATE = 8  # seconds of a collective; contexts of several processes are made at once


@pytest.fixture(scope="module")
def runs():
    """All cases, several at once: they wait for most of their time."""
    with ThreadPoolExecutor(5 if ON == "cuda" else 2) as pool:

        def begin(case, checks):
            return pool.submit(failures.launch, case, checks=checks, device=ON, timeout=LATE,
                               limit=60)  # fmt: skip

        begun = {(case, True): begin(case, True) for case in WITH_CHECKS}
        begun |= {(case, False): begin(case, False) for case in WITHOUT}
        yield begun


def ended(runs, case, checks=False):
    run, _ = runs[case, checks].result()
    return run, [failures.errors_of(run, rank) for rank in range(2)]


@pytest.mark.parametrize(("case", "message"), list(HEARD.items()))
def test_the_other_hears_of_a_failure(runs, case, message):
    run, errors = ended(runs, case)
    assert "rank 1 failed: " in errors[0] and message in errors[0], run.stderr
    assert run.returncode in (1, 128 + 9), run.stderr
    # Not the test's own time: a case waits for its turn.
    assert runs[case, False].result()[1] - failures.when_it_failed(run) < 10, run.stderr


@pytest.mark.parametrize("checks", [False, True])
def test_a_hung_rank_is_named(runs, checks):
    run, errors = ended(runs, "hangs", checks)
    assert f"no end after {LATE} s" in errors[0], run.stderr
    assert "rank 1 is in no collective call, the last was all_reduce number 1" in run.stderr
    assert run.returncode == 1


def test_a_rank_that_left_is_missed(runs):
    run, errors = ended(runs, "leaves")
    assert f"no end after {LATE} s" in errors[0] or "rank 1 has ended" in errors[0], run.stderr
    assert not errors[1] and run.returncode == 1


@pytest.mark.parametrize(("case", "parts"), list(DISAGREEING.items()))
def test_checks_say_what_disagrees(runs, case, parts):
    run, errors = ended(runs, case, True)
    for rank in range(2):
        assert "the members do not agree" in errors[rank], run.stderr
        assert all(part in errors[rank] for part in parts), run.stderr


def test_without_checks_a_disagreement_is_a_time_out(runs):
    """Of sizes: of an order NCCL may make something that ends."""
    run, errors = ended(runs, "one_has_much_more")
    assert f"no end after {LATE} s" in "".join(errors), run.stderr
    assert run.returncode == 1


@only_cuda
def test_a_missing_library_is_told_to_all(runs):
    run, errors = ended(runs, "missing_library")
    for rank in range(2):
        assert "collectives on CUDA go through NCCL" in errors[rank], run.stderr
        assert "/nowhere/libnccl.so" in errors[rank] and "nvidia-nccl" in errors[rank]
    assert run.returncode == 1
