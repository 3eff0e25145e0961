# SPDX-License-Identifier: Apache-2.0
"""More threads than the system has, and threads that compute while the interpreter ends."""

import os
import re
import resource
import subprocess
import sys

import pytest

flow = pytest.importorskip("oneflow_lite")


def run(script, *args, environment=None, limit=None):
    return subprocess.run([sys.executable, "-c", script, *args], text=True, capture_output=True,
                          timeout=300, env=os.environ | (environment or {}),
                          preexec_fn=limit)  # fmt: skip


COMPUTE = """
import warnings
warnings.simplefilter("always")
import sys
import oneflow_lite as flow
n = int(sys.argv[1])
if n:
    flow.set_num_threads(n)
x = flow.ones(4000, 1000)
for _ in range(3):
    assert abs(flow.softmax(x, 1).sum().item() / 4000 - 1) < 1e-4
    assert (x[:200] @ x[:200].t()).max().item() == 1000
    assert x.sum().item() == 4000000
print(flow.get_num_threads())
"""


@pytest.mark.parametrize("n", [1, 3, 64])
def test_any_number_that_is_granted_computes(n):
    done = run(COMPUTE, str(n), environment={"OMP_NUM_THREADS": "1"})
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{n}\n", "")


@pytest.mark.parametrize("n", [0, -1, 1025, 100_000, 2**31, 2**63, 2**80])
def test_a_number_that_makes_no_sense_is_refused(n):
    before = flow.get_num_threads()
    with pytest.raises(ValueError, match=rf"argument 'n' must be from 1 to 1024, not {n}$"):
        flow.set_num_threads(n)
    assert flow.get_num_threads() == before


SET_AT_ONCE = """
import sys, threading, time, warnings
warnings.simplefilter("error")
import oneflow_lite as flow
sys.setswitchinterval(1e-6)
end, errors = time.monotonic() + 1.5, []

def set_it(n):
    try:
        while time.monotonic() < end:
            flow.set_num_threads(n)
    except Warning as warning:
        errors.append(warning)

threads = [threading.Thread(target=set_it, args=(1 + i,)) for i in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(errors[:1])
"""


def test_threads_that_set_numbers_at_once_hear_of_their_own():
    """Not that the system starts no 4 threads because another one asked for 1."""
    done = run(SET_AT_ONCE)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")


def large_stacks():
    resource.setrlimit(resource.RLIMIT_STACK, (64 << 20, 64 << 20))


# Threads get no stack: as where ulimit -u or a container's pids.max are reached.
def little_memory():
    large_stacks()
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))


sanitized = "libasan" in open("/proc/self/maps").read()


@pytest.mark.skipif(sanitized, reason="AddressSanitizer maps more than the limit of this test")
@pytest.mark.parametrize("how", ["set_num_threads", "environment"])
def test_threads_that_the_system_does_not_start_are_not_used(how):
    number = "1000" if how == "set_num_threads" else "0"
    threads = {"OMP_NUM_THREADS": "1" if how == "set_num_threads" else "1000",
               "OPENBLAS_NUM_THREADS": "1"}  # fmt: skip
    # Without a product: OpenBLAS asks for 128 MB and tries for ever where they are not there.
    script = "".join(line for line in COMPUTE.splitlines(True) if " @ " not in line)
    done = run(script, number, environment=threads, limit=little_memory)
    assert done.returncode == 0, done.stderr
    assert 1 <= int(done.stdout) < 300
    if how == "set_num_threads":
        assert "RuntimeWarning: set_num_threads(): the system starts no 1000 threads" in done.stderr


FALLS = """
import os, resource, sys, threading, time
import oneflow_lite as flow
how, before = sys.argv[1:]
x, few = flow.ones(4000, 1000), flow.ones(2, 40000)

def used(name):
    return int(open("/proc/self/status").read().split(name + ":")[1].split()[0])

def at_most(threads):
    resource.setrlimit(resource.RLIMIT_NPROC, (threads, threads))

if how != "memory":
    # A user of its own, whose threads the system counts alone; it refuses root none.
    os.setuid(100_000 + os.getpid())
at_most(200)
flow.set_num_threads(32)
if before == "teams":
    for _ in range(2):
        flow.softmax(x, 1)
        flow.softmax(few, 1)  # OpenMP ends all but two
if how == "memory":
    room = (used("VmSize") << 10) + (300 << 20)
    resource.setrlimit(resource.RLIMIT_AS, (room, room))
elif how == "processes":
    at_most(used("Threads") + 6)
else:
    end = threading.Event()
    for _ in range(200 - used("Threads") - 6):
        threading.Thread(target=end.wait, daemon=True).start()
    time.sleep(2.2)
for _ in range(3):
    assert abs(flow.softmax(x, 1).sum().item() / 4000 - 1) < 1e-4
    assert x.sum().item() == 4000000 and abs(flow.softmax(few, 1).sum().item() - 2) < 1e-4
print(flow.get_num_threads(), flush=True)
os._exit(0)
"""


@pytest.mark.skipif(sanitized, reason="AddressSanitizer maps more than the limit of this test")
@pytest.mark.parametrize("before", ["none", "teams"])
@pytest.mark.parametrize("how", ["memory", "processes", "others"])
def test_a_limit_that_falls_later_leaves_fewer_threads(how, before):
    if how != "memory" and os.getuid() != 0:
        pytest.skip("takes the identity of a user without processes, as root alone may")
    done = run(FALLS, how, before, environment={"OPENBLAS_NUM_THREADS": "1"}, limit=large_stacks)
    assert done.returncode == 0, done.stderr
    assert 1 <= int(done.stdout) < 32
    assert re.fullmatch(r"oneflow_lite: the system starts no \d+ threads for this process; "
                        r"\d+ are used\n", done.stderr)  # fmt: skip


LIBRARY = """
import ctypes, mmap, os, re, resource, signal, threading, time
import oneflow_lite as flow
a, x = flow.eye(300), flow.ones(4000, 1000)
signal.alarm(60)  # OpenBLAS tries for ever to map what it does not get

def skip(reason):
    print("skip:", reason, flush=True)
    os._exit(0)

def used(name):
    return int(open("/proc/self/status").read().split(name + ":")[1].split()[0])

def limit(which, soft):
    try:
        resource.setrlimit(which, (soft, resource.getrlimit(which)[1]))
    except (OSError, ValueError) as error:
        skip(f"no limit can be set here: {error}")

def limit_memory(megabytes):
    limit(resource.RLIMIT_AS, (used("VmSize") << 10) + (megabytes << 20))
    try:
        mmap.mmap(-1, megabytes + 1 << 20, flags=mmap.MAP_PRIVATE).close()
        skip("the limit of address space has no effect here")
    except OSError:
        pass

def lift_memory():
    limit(resource.RLIMIT_AS, resource.getrlimit(resource.RLIMIT_AS)[1])

def limit_threads(threads):  # of a user of its own, as root has no limit
    try:
        os.setuid(100_000 + os.getpid())
    except OSError as error:
        skip(f"takes the identity of a user without processes: {error}")
    limit(resource.RLIMIT_NPROC, used("Threads") + threads)

def share():
    assert abs(flow.softmax(x, 1).sum().item() / 4000 - 1) < 1e-4

paths = re.findall(r"/\\S*/libopenblas\\S*", open("/proc/self/maps").read())
if not paths:
    skip("the BLAS is no shared OpenBLAS")
blas = ctypes.CDLL(paths[0])

def cholesky():
    assert abs(flow.linalg.cholesky(a).sum().item() - 300) < 1e-3
    return blas.openblas_get_num_threads()

assert cholesky() == 1  # has mapped what one thread needs
"""


def library(script, limit=None):
    done = run(LIBRARY + script, environment={"OMP_NUM_THREADS": "1"}, limit=limit)
    assert done.returncode == 0, done.stderr
    if done.stdout.startswith("skip: "):
        pytest.skip(done.stdout[6:].strip())
    return [int(number) for number in done.stdout.split()], done.stderr


def small_stacks():
    resource.setrlimit(resource.RLIMIT_STACK, (2 << 20, 2 << 20))


@pytest.mark.skipif(sanitized, reason="AddressSanitizer maps more than the limit of this test")
@pytest.mark.parametrize("stacks, room", [(small_stacks, 300), (large_stacks, 4000)])
def test_openblas_has_one_thread_while_address_space_is_limited(stacks, room):
    """It maps 128 MB a thread, and tries for ever where that is refused; its teams grow in calls,
    when others may have taken the room."""
    (one, all_of_them), _ = library(
        f"""
flow.set_num_threads(8)
limit_memory({room})
one = cholesky()
lift_memory()
print(one, cholesky(), flush=True)
os._exit(0)
""",
        limit=stacks,
    )
    assert (one, all_of_them) == (1, 8)


PRODUCTS = """
import collections
F = flow.nn.functional
big, batch = flow.ones(600, 600), flow.ones(64, 60, 60)
q = flow.ones(2, 8, 256, 64, requires_grad=True)
eyes = flow.eye(40).expand(256, 40, 40).contiguous()

def attend():
    y = F.scaled_dot_product_attention(q, q, q)
    y.sum().backward()
    return y.max()

products = {
    "matmul": lambda: (big @ big).max() - 599,
    "bfloat16": lambda: (big.bfloat16() @ big.bfloat16()).max() - 599,
    "bmm": lambda: (batch @ batch).max() - 59,
    "attention": attend,
    "inverses": lambda: flow.linalg.inv(eyes)[0, 0, 0],
    "cholesky": lambda: flow.linalg.cholesky(flow.eye(300))[0, 0],
}

def outcome(name):
    try:
        return abs(products[name]().item() - 1) < 1e-3
    except flow.OutOfMemoryError as error:
        return str(error)
"""


@pytest.mark.skipif(sanitized, reason="AddressSanitizer maps more than the limit of this test")
@pytest.mark.parametrize("room", [150, 330, 700])
@pytest.mark.parametrize("name", ["matmul", "bfloat16", "bmm", "attention", "inverses", "cholesky"])
def test_a_team_multiplies_on_as_many_threads_as_there_are_buffers(name, room):
    """One buffer is mapped, by cholesky; a thread without room for its own gets no work."""
    printed, _ = library(
        PRODUCTS
        + f"""
flow.set_num_threads(8)
limit_memory({room})
print(int(outcome({name!r})), int(outcome({name!r})), flush=True)
os._exit(0)
""",
        limit=small_stacks,
    )
    assert printed == [1, 1]


@pytest.mark.skipif(sanitized, reason="AddressSanitizer maps more than the limit of this test")
def test_products_on_several_threads_share_the_buffers_there_are():
    printed, _ = library(
        PRODUCTS
        + """
outcomes = []
threads = [threading.Thread(target=lambda: [outcomes.append(outcome("matmul")) for _ in range(9)])
           for _ in range(3)]
limit_memory(330)
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(outcomes.count(True), flush=True)
os._exit(0)
""",
        limit=small_stacks,
    )
    assert printed == [27]


NO_BUFFER = """
import os, resource, signal
import oneflow_lite as flow
x = flow.ones(300, 300)
signal.alarm(60)
flow.set_num_threads(1)
pages = int(open("/proc/self/statm").read().split()[0])
limits = resource.getrlimit(resource.RLIMIT_AS)
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (40 << 20), limits[1]))
try:
    x @ x
except flow.OutOfMemoryError as error:
    print(error)
resource.setrlimit(resource.RLIMIT_AS, limits)
print((x @ x).max().item())
"""


@pytest.mark.skipif(sanitized, reason="AddressSanitizer maps more than the limit of this test")
def test_a_product_without_room_for_a_buffer_is_an_error():
    done = run(NO_BUFFER, environment={"OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    *errors, value = done.stdout.splitlines()
    assert value == "300.0"
    assert errors == ["matmul(): out of memory: the BLAS needs 134221824 bytes of address space "
                      "for each product at a time"]  # fmt: skip


ROOM_COMES_BACK = {
    "limit": """
limit_memory(600)  # for three threads that start, of 64 MB or twice that each, and for others
flow.set_num_threads(4)
share()
before = cholesky()
lift_memory()
print(before, flow.get_num_threads(), cholesky(), flush=True)
os._exit(0)
""",
    "others": """
limit_threads(5 + 4)
end = threading.Event()
others = [threading.Thread(target=end.wait) for _ in range(4)]
for other in others:
    other.start()
flow.set_num_threads(4)
share()
before = cholesky()
end.set()
for other in others:
    other.join()
time.sleep(2.2)
print(before, flow.get_num_threads(), cholesky(), flush=True)
os._exit(0)
""",
}


@pytest.mark.skipif(sanitized, reason="AddressSanitizer maps more than the limit of this test")
@pytest.mark.parametrize("how", ROOM_COMES_BACK)
def test_a_library_has_its_threads_again_where_room_comes_back(how):
    if how == "others" and os.getuid() != 0:
        pytest.skip("takes the identity of a user without processes, as root alone may")
    (before, threads, after), _ = library(ROOM_COMES_BACK[how], limit=large_stacks)
    assert before == 1
    assert (threads, after) == (4, 4)


def test_threads_that_a_library_left_are_not_counted_as_missing():
    if os.getuid() != 0:
        pytest.skip("takes the identity of a user without processes, as root alone may")
    numbers, stderr = library("""
limit_threads(2 * 7)
flow.set_num_threads(8)
share()
flow.linalg.cholesky(a)  # and no smaller team of ours that ends OpenBLAS's threads
time.sleep(2.2)  # then it is looked at anew
share()
print(flow.get_num_threads(), flush=True)
os._exit(0)
""")
    assert (numbers, stderr) == ([8], "")


def test_a_number_in_the_environment_that_makes_no_sense_is_not_used():
    done = run(COMPUTE, "4", environment={"OMP_NUM_THREADS": "100000"})
    assert done.returncode == 0 and done.stdout == "4\n", done.stderr
    assert "RuntimeWarning: OMP_NUM_THREADS=100000: at most 1024 threads are used" in done.stderr


EXIT = """
import os, sys, tempfile, threading, time
import oneflow_lite as flow
x, w = flow.randn(300, 300), flow.randn(300, 300, requires_grad=True)

@flow.register_op("exit::slow")
class Slow:
    def forward(x):
        for i in range(2000): pass
        return x * 2
    def backward(ctx, dy):
        for i in range(2000): pass
        return dy * 2

class Index:
    def __index__(self):
        for i in range(2000): pass
        return 3

def forever(work):
    while True: work()

path = os.path.join(sys.argv[1], "saved%d")
jobs = {
    "compute": lambda: flow.softmax(x @ x, 1),
    "backward": lambda: (x @ w).sum().backward(),
    "ops": lambda: flow.ops.exit.slow(w).sum().backward(),
    "save": lambda: flow.save({"x": x}, path % threading.get_ident()),
    "index": lambda: flow.zeros([Index(), Index()]),
}
hook = flow.randn(3, requires_grad=True)
hook.register_hook(lambda g: [g for _ in range(500)][0])
jobs["hook"] = lambda: (hook * 2).sum().backward()
for _ in range(4):
    threading.Thread(target=forever, args=(jobs[sys.argv[2]],), daemon=True).start()
time.sleep(float(sys.argv[3]))
"""


@pytest.mark.parametrize("job", ["compute", "backward", "ops", "save", "index", "hook"])
def test_daemon_threads_do_not_disturb_the_end(job, tmp_path):
    for i in range(9):  # of six jobs: 54 programs
        done = run(EXIT, str(tmp_path), job, str(0.02 + 0.01 * i),
                   environment={"OMP_NUM_THREADS": str(1 + i % 2)})  # fmt: skip
        assert (done.returncode, done.stderr) == (0, ""), f"run {i}"
