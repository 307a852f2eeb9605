"""Cheats that take from the whole machine: memory that is not counted, and what all submissions and accounts share."""

from __future__ import annotations

import os

import pytest
from confined import ended, shown, why_it_ended

from autograder.sandbox.inside import seccomp
from autograder.sandbox.inside.zygote import UNCOUNTED
from autograder.sandbox.launcher import Sandbox, Student

COLUMN = {"x86_64": 0, "aarch64": 1}[os.uname().machine]
PERMITTED, UNKNOWN = "EPERM", "ENOSYS"
EXIT = (60, 93)[COLUMN]  # of one thread


# ---------------------------------------------------------------------------------------- system calls

CALL = """
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
shared, word, page = os.open('/usr/bin/env', os.O_RDONLY), ctypes.c_ulong(1), ctypes.create_string_buffer(8192)
ours, theirs = os.pipe()
"""
# What it is for: its number on x86-64 and arm64, and its arguments.
REFUSED = {
    "io_setup": (206, 0, "8, ctypes.byref(ctypes.c_ulong(0))"),
    "io_uring_setup": (425, 425, "8, page"),
    "inotify_init1": (294, 26, "0"),
    "fanotify_init": (300, 262, "0, 0"),
    "landlock_create_ruleset": (444, 444, "ctypes.byref(word), 8, 0"),
    "landlock_version": (444, 444, "None, 0, 1"),
    "flock": (73, 32, "shared, 2"),
    "perf_event_open": (298, 241, "page, 0, -1, -1, 0"),
    "userfaultfd": (323, 282, "1"),
    "bpf": (321, 280, "0, page, 128"),
    "add_key": (248, 217, "b'user', b'k', b'v', 1, -3"),
    "keyctl": (250, 219, "0, -3, 1"),
    "memfd_create": (319, 279, "b'x', 0"),
    "memfd_secret": (447, 447, "0"),
    "mq_open": (240, 180, "b'q', 0o102, 0o600, None"),
    "shmget": (29, 194, "0, 4096, 0o1600"),
    "semget": (64, 190, "0, 1, 0o1600"),
    "msgget": (68, 186, "0, 0o1600"),
    "splice": (275, 76, "shared, ctypes.byref(ctypes.c_ulong(0)), theirs, None, 4096, 0"),
    "tee": (276, 77, "ours, theirs, 4096, 2"),
    "vmsplice": (278, 75, "theirs, (ctypes.c_void_p * 2)(ctypes.addressof(page), 4096), 1, 0"),
    "mlock": (149, 228, "page, 4096"),
    "mincore": (27, 232, "ctypes.c_void_p(ctypes.addressof(page) & ~4095), 4096, page"),
    "sync": (162, 81, ""),
    "syncfs": (306, 267, "shared"),
    "seccomp": (317, 277, "2, 0, ctypes.byref(word)"),
    "personality": (135, 92, "0x0040000"),
    "ioprio_set": (251, 30, "1, 0, 0x6000"),
    "sched_setscheduler": (144, 119, "0, 5, ctypes.byref(ctypes.c_int(0))"),
    "kcmp": (312, 272, "1, 1, 1, 0, 0"),
    "process_vm_readv": (310, 270, "os.getpid(), None, 0, None, 0, 0"),
    "name_to_handle_at": (303, 264, "-100, b'/usr', page, page, 0"),
    "unshare": (272, 97, "0x10000000"),
    "clone of a user": (56, 220, "0x10000000 | 17, 0, 0, 0, 0"),
    "clone3": (435, 435, "None, 0"),
    "prctl, hidden from who counts": (157, 167, "4, 0, 0, 0, 0"),
    "prctl, a filter": (157, 167, "22, 2, page, 0, 0"),
    "fcntl, a lock to read": (72, 25, "shared, 6, bytes(32)"),
    "fcntl, who holds a lock": (72, 25, "shared, 5, b'\\x01' + bytes(31)"),
    "fcntl, a lease": (72, 25, "shared, 1024, 0"),
    "fcntl, a large pipe": (72, 25, "ours, 1031, 2**20"),
    "madvise, merged with others": (28, 233, "ctypes.c_void_p(ctypes.addressof(page) & ~4095), 4096, 12"),
    "mmap, shared": (9, 222, "None, 4096, 3, 0x21, -1, 0"),
    "mmap, huge pages": (9, 222, "None, 2**21, 3, 0x40022, -1, 0"),
    "mmap, a stack, which is no data": (9, 222, "None, 4096, 3, 0x122, -1, 0"),
    "fadvise, out of the cache of all": (221, 223, "shared, 0, 0, 4"),
    "setpriority of the first thread": (141, 140, "0, 0, 19"),
    "socketpair of datagrams": (53, 199, "1, 2, 0, page"),
    "socket of datagrams": (41, 198, "1, 2, 0"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_takes_from_the_machine_is_refused(student: Student, name: str) -> None:
    number, arguments = REFUSED[name][COLUMN], REFUSED[name][2]
    said = shown(student, f"{CALL}print(libc.syscall({number}, {arguments}), errno.errorcode.get(ctypes.get_errno()))")
    assert said.split() in (["-1", PERMITTED], ["-1", UNKNOWN])


def test_whatever_is_not_listed_is_refused(student: Student) -> None:
    listed = {int(n) for n in seccomp.ALLOWED.split()[1 + COLUMN :: 3] if n != "-"}
    listed |= {335, 336}  # which the kernel keeps from every filter: its own places for probes; they are no use here
    code = f"""{CALL}
for number in {sorted(set(range(1024)) - listed)} + [0x40000000 + 39, 2**31 - 1]:
    result = libc.syscall(number, -1, -1, -1, -1, -1, -1)
    if result != -1 or ctypes.get_errno() not in (1, 38, 95): print(number, result, ctypes.get_errno())
print('all')"""
    assert shown(student, code) == "all\n"


@pytest.mark.skipif(COLUMN != 0, reason="only x86-64 knows a second way to call")
def test_calls_of_32_bit_programs_are_refused(student: Student) -> None:
    code = """import ctypes, mmap
code = mmap.mmap(-1, 4096, flags=0x22, prot=7)
code.write(bytes.fromhex('b814000000cd80c3'))  # getpid by its other number
print(ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))())"""
    assert shown(student, code) == "-38\n"


@pytest.mark.parametrize("option", ["SO_SNDBUF", "SO_RCVBUF", "SO_ATTACH_FILTER", "SO_PRIORITY"])
def test_buffers_of_sockets_stay_as_they_are(student: Student, option: str) -> None:
    code = f"""import socket; socket.SO_ATTACH_FILTER = 26
socket.socketpair()[0].setsockopt(socket.SOL_SOCKET, socket.{option}, 1)"""
    assert "PermissionError" in shown(student, code)


@pytest.mark.parametrize("protocol", ["2, 1, 132", "2, 1, 262", "10, 1, 115", "30, 1, 0", "1, 1, 6"])
def test_no_protocol_is_loaded_into_the_kernel(student: Student, protocol: str) -> None:
    code = f"import socket; socket.socket({protocol})"
    assert any(said in shown(student, code) for said in ("unreachable", "not supported"))
    assert "not supported" in shown(student, "socket.socketpair(30)")


@pytest.mark.parametrize("call", ["send(b'x', socket.MSG_OOB)", "sendmsg([b'x'], [], socket.MSG_OOB)"])
def test_no_byte_out_of_its_turn(student: Student, call: str) -> None:
    """Of Unix sockets nobody needs it, and its code in the kernel had bugs."""
    assert "not supported" in shown(student, f"import socket; ours, theirs = socket.socketpair(); ours.{call}")
    assert shown(student, "ours.send(b'x'); ours.sendmsg([b'y']); print(theirs.recv(2))") == "b'xy'\n"


TERMINALS = """
import os
held = []
try:
    while len(held) < 100: held.append(os.open('/dev/ptmx', os.O_RDWR | os.O_NOCTTY))
except OSError as error: print(error)"""
TIMERS = """
import ctypes
libc, made = ctypes.CDLL(None), 0
while made < 5000 and libc.timer_create(1, None, ctypes.byref(ctypes.c_void_p())) == 0: made += 1
print(made)"""


def test_terminals_are_few(student: Student) -> None:
    """The machine has some thousands, for all."""
    said = shown(student, f"{TERMINALS}\nfor one in held: os.close(one)\n!echo one by one")
    assert "No space left" in said and "one by one" in said.replace("\r", "")


def test_devices_keep_their_times(student: Student) -> None:
    """They are the machine's: the next submission would read what this one wrote."""
    code = """import os
for name in sorted(os.listdir('/dev')):
    try: os.utime(f'/dev/{name}'); print(name)
    except OSError: continue
print(open('/dev/null', 'wb', 0).write(b'x'), len(open('/dev/urandom', 'rb', 0).read(9)))"""
    assert shown(student, code).split() == ["ptmx", "shm", "1", "9"]


def test_no_program_takes_what_crashed(student: Student) -> None:
    """A limit of 0 keeps files away, but starts the machine's program for them all the same."""
    assert shown(student, "import resource; print(resource.getrlimit(resource.RLIMIT_CORE))") == "(1, 1)\n"
    code = """import os
if os.fork() == 0: os.abort()
print(os.WIFSIGNALED(os.wait()[1]), os.listdir())"""
    assert shown(student, code) == "True []\n"


def test_what_libraries_try_and_do_without(student: Student) -> None:
    """A file lock falls back, a copy takes no attributes along, a terminal is asked for its size."""
    code = """import os, shutil, subprocess
from filelock import FileLock
with FileLock('lock'): print('locked')
shutil.copytree('/usr/share/doc/bash', 'copied')
print(subprocess.run(['cp', '-a', 'copied', 'again'], capture_output=True, text=True))
!tty
print(os.get_terminal_size(os.openpty()[1]))"""
    said = shown(student, code)
    assert "locked" in said and "returncode=0, stdout='', stderr=''" in said
    assert "/dev/pts/" in said and "columns=0" in said


def test_workers_of_a_loader_and_servers_of_one_process_still_run(student: Student) -> None:
    code = """import multiprocessing, torch
from torch.utils.data import DataLoader, TensorDataset
rows = TensorDataset(torch.arange(64.0))
print(sum(float(batch.sum()) for (batch,) in DataLoader(rows, batch_size=8, num_workers=2)))
with multiprocessing.Manager() as manager: print(manager.list([1, 2]))"""
    assert shown(student, code).split("\n")[:2] == ["2016.0", "[1, 2]"]


def test_timers_are_bounded(student: Student) -> None:
    """They count for the account outside too, whose own programs would get none."""
    assert 100 < int(shown(student, TIMERS)) <= 1024


# --------------------------------------------------------------------------------------------- memory

ANEW = """
import ctypes, mmap, os
# munmap all but this page, mmap `size` bytes with MAP_POPULATE, pause for ever
code = mmap.mmap(-1, 4096, flags=0x22, prot=7)
code.write(bytes.fromhex('4889fb4989f44989d5b80b00000031ff4889de0f05b80b000000488dbb001000004c89e60f05b80900000031ff'
    '4c89eeba0300000041ba2280000049c7c0ffffffff4531c90f05b8220000000f05ebf7'))
place = ctypes.addressof(ctypes.c_char.from_buffer(code))
start_anew = ctypes.CFUNCTYPE(None, *[ctypes.c_size_t] * 3)(place)
libc = ctypes.CDLL(None)
libc.pthread_self.restype = ctypes.c_size_t
for _ in range(12):
    if os.fork() == 0:
        area = libc.pthread_self() + ctypes.c_ssize_t.in_dll(libc, '__rseq_offset').value
        libc.syscall(334, ctypes.c_size_t(area), 32, 1, 0x53053053)  # or the kernel writes where nothing is
        start_anew(place, 2**47 - 8192 - place, 120 * 2**20)"""


@pytest.mark.skipif(COLUMN != 0, reason="the cheat is written in the code of x86-64")
def test_memory_in_place_of_what_was_inherited_counts(sandbox: Sandbox) -> None:
    """Each child gives up what it shares with the warm process, and takes less than that anew."""
    assert why_it_ended(sandbox, ANEW) == "out of memory"


def test_copies_of_what_was_inherited_count(sandbox: Sandbox) -> None:
    code = """import gc, os
for _ in range(12):
    if os.fork() == 0:
        gc.unfreeze(); gc.collect()
        held = [o for o in gc.get_objects()], bytearray(30 * 2**20)
        break"""
    assert why_it_ended(sandbox, code) == "out of memory"


def test_memory_that_is_shared_counts_once(sandbox: Sandbox) -> None:
    """Twenty processes that each can touch 180 MB, the same ones, and 100 MB of their parent."""
    code = """import os, time
held = bytearray(100 * 2**20)
children = []
for _ in range(20):
    pid = os.fork()
    if pid == 0:
        time.sleep(1.5); os._exit(0)
    children.append(pid)
print(sum(os.waitpid(pid, 0)[1] for pid in children))"""
    assert ended(sandbox, code) == "0\n"


SOCKETS = """
import os, socket
def connected():
    client = socket.socket(socket.AF_UNIX); client.connect(name); client.setblocking(False)
    try: client.send(bytes(10**6))
    except BlockingIOError: client.close()
for number in range(12):
    if os.fork() == 0:
        server, name = socket.socket(socket.AF_UNIX), f'{number}'
        server.bind(name); server.listen(4096)
        held = [KIND for _ in range(110)]
        break"""


@pytest.mark.parametrize("kind", ["socket.socketpair()", "connected()"], ids=["pairs", "never accepted"])
def test_buffers_of_many_sockets_count(sandbox: Sandbox, kind: str) -> None:
    assert why_it_ended(sandbox, SOCKETS.replace("KIND", kind)) == "out of memory"


FIRST_ENDS = f"""
import ctypes, os, threading, time
def without_first_thread(work):
    threading.Thread(target=work).start()
    ctypes.CDLL(None).syscall({EXIT}, 0)
"""


def test_what_outlives_its_first_thread_counts(sandbox: Sandbox) -> None:
    """The kernel's account of such a process names no memory."""
    code = f"""{FIRST_ENDS}
def hold():
    time.sleep(0.3)
    held = b'x' * (150 * 2**20)
    time.sleep(60)
for _ in range(4):
    if os.fork() == 0: without_first_thread(hold)"""
    assert why_it_ended(sandbox, code) == "out of memory"


def test_sockets_count_where_the_first_thread_of_all_ended(sandbox: Sandbox) -> None:
    code = f"""{FIRST_ENDS}
import socket
def hold():
    time.sleep(0.3)
    for _ in range(12):
        if os.fork() == 0: break
    held = [socket.socketpair() for _ in range(110)]
    time.sleep(60)
without_first_thread(hold)"""
    assert why_it_ended(sandbox, code) == "out of memory"


HAND_ON = """
import ctypes, mmap, os, signal
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
# again and again: clone with the given flags, and only the new one goes on
code = mmap.mmap(-1, 4096, flags=0x22, prot=7)
code.write(bytes.fromhex('b83800000031f631d24d31d24d31c00f0585c074eb31ffb83c0000000f05'))
hand_on = ctypes.CFUNCTYPE(None, ctypes.c_size_t)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
for _ in range(4):
    if os.fork() == 0:
        held = mmap.mmap(-1, 160 << 20, flags=0x22)
        held.madvise(14)
        for place in range(0, 160 << 20, 1 << 20): held[place:place + (1 << 20)] = b'x' * (1 << 20)
        hand_on({flags})"""
HANDED = {"copied": 17, "shared": 0x100 | 17, "by threads": 0x50F00}  # CLONE_VM; CLONE_THREAD and what goes with it


@pytest.mark.skipif(COLUMN != 0, reason="the cheat is written in the code of x86-64")
@pytest.mark.parametrize("how", HANDED)
def test_memory_that_is_handed_on_faster_than_it_is_read(sandbox: Sandbox, how: str) -> None:
    assert why_it_ended(sandbox, HAND_ON.format(flags=HANDED[how])) in ("out of memory", UNCOUNTED)


def test_many_short_programs_and_threads_are_counted(student: Student) -> None:
    code = """import subprocess, threading
print(sum(subprocess.run(['true']).returncode for _ in range(300)))
print(subprocess.run(['sh', '-c', 'for n in $(seq 2000); do /bin/true; done; echo done'], capture_output=True).stdout)
for _ in range(5000):
    one = threading.Thread(target=int); one.start(); one.join()
print('threads')"""
    assert shown(student, code, seconds=60).split("\n")[:3] == ["0", "b'done\\n'", "threads"]
