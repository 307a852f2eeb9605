"""The confinement holds: what a student's process cannot see, keep, fill, outlive or stop."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy
import pytest
from confined import LIMITS, MB, ask, ended, processes_of, shown, wait_for

from autograder.sandbox.inside import processes
from autograder.sandbox.inside.channel import Closed
from autograder.sandbox.inside.zygote import Child
from autograder.sandbox.launcher import Limits, Sandbox, SandboxRefused, Student, find_bwrap

ROOT = Path(__file__).parents[2]
EXIT = {"x86_64": 60, "aarch64": 93}[os.uname().machine]  # of one thread


# ---------------------------------------------------------------------------------- what cannot be seen


def test_no_network(student: Student) -> None:
    assert "unreachable" in shown(student, "import socket\nsocket.create_connection(('1.1.1.1', 53), 1)")
    assert "unreachable" in shown(student, "socket.create_connection(('127.0.0.1', 22), 1)")
    for family in ("INET, socket.SOCK_DGRAM", "VSOCK", "NETLINK, socket.SOCK_RAW", "ALG, socket.SOCK_SEQPACKET"):
        assert "unreachable" in shown(student, f"socket.socket(socket.AF_{family})")


def test_nothing_of_the_course_and_little_of_the_machine(student: Student) -> None:
    code = """import os
found = []
for d, folders, files in os.walk('/'):
    folders[:] = [f for f in folders if f not in ('usr', 'site-packages', 'lib', 'versions')]
    found += [f for f in files if f.endswith(('.ipynb', '.db'))]
print(found)
print(sorted(os.listdir('/etc')), os.listdir('/proc'), os.path.exists('/sys'), os.listdir('/home/student'))
print([p for p in ('/root', '/home', '/var', '/run', '/mnt', '/srv') if os.path.exists(p) and os.listdir(p)])
import autograder.sandbox.inside
for path in (*autograder.__path__, *autograder.sandbox.__path__):
    print(os.listdir(path))"""
    lines = shown(student, code).splitlines()
    assert lines[0] == "[]", lines
    assert not {"passwd", "shadow", "hostname", "resolv.conf"} & set(eval(lines[1].split("]")[0] + "]"))
    assert lines[1].endswith("[] False []")
    assert lines[3:] == ["['sandbox']", "['inside']"]
    for name in ("source_solutions", "submitted", "gradebook.db", "tests"):
        assert shown(student, f"print(os.path.exists({str(ROOT / name)!r}))") == "False\n"


def test_the_environment_is_empty_of_secrets(student: Student) -> None:
    os.environ["SECRET_OF_THE_INSTRUCTOR"] = "x"
    names = shown(student, "import os; print(sorted(os.environ))")
    assert "SECRET" not in names and "USER" not in names


def test_own_process_and_user_ids(student: Student) -> None:
    assert (
        shown(student, "import os; print(os.getpid(), os.getppid(), os.getuid(), os.getgid())") == "1 0 65534 65534\n"
    )
    assert "Error" in shown(student, "os.setuid(0)")


def test_no_open_descriptor_but_its_own(student: Student) -> None:
    code = """import os, stat
for n in range(256):
    try: s = os.fstat(n)
    except OSError: continue
    print(n, 'socket' if stat.S_ISSOCK(s.st_mode) else os.major(s.st_rdev) == 1 and os.minor(s.st_rdev))
print(os.read(4, 99).decode().count(' '), os.listdir('/proc'))
try: os.write(4, b'0 0 0')
except OSError as error: print(type(error).__name__, error.errno)"""
    said = ["0 3", "1 3", "2 3", "3 socket", "4 False", "2 []", "OSError 9", ""]  # 4: how long it waited, three numbers
    assert shown(student, code).split("\n") == said


# --------------------------------------------------------------------------------- what cannot be done


@pytest.mark.parametrize(
    "folder", ["/", "/usr", "/etc", "/dev", "/home", "/opt/autograder-student", "/proc", sys.prefix]
)
def test_the_system_is_read_only(student: Student, folder: str) -> None:
    said = shown(student, f"open({folder!r} + '/planted', 'w')")
    assert "Read-only file system" in said or "Permission denied" in said or "No such file" in said


def test_nothing_is_left_for_the_next(sandbox: Sandbox) -> None:
    walk = "import os\nfor d, folders, files in os.walk('/'):\n"
    walk += "    folders[:] = [f for f in folders if f != 'usr' and 'lib' not in f]\n"
    leave = "    try: open(d + '/planted', 'w').write('x'); print(d)\n    except OSError: pass"
    own = ("/dev/shm", "/home/student", "/tmp")  # fresh for each; a Python environment in /tmp brings folders above it
    places = ended(sandbox, walk + leave).split()
    assert set(own) <= set(places) and all(p.startswith(own) for p in places)
    assert ended(sandbox, walk + "    if 'planted' in files: print(d)\nprint('looked')") == "looked\n"


def test_system_calls_that_leave_or_hide(student: Student) -> None:
    code = """import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
for call in [
    lambda: libc.unshare(0x10000000), lambda: libc.setns(3, 0),
    lambda: libc.mount(b'none', b'/tmp', b'tmpfs', 0, None),
    lambda: libc.umount2(b'/proc', 2), lambda: libc.chroot(b'/tmp'), lambda: libc.ptrace(0, 0, 0, 0),
    lambda: libc.memfd_create(b'x', 0), lambda: libc.shmget(0, 4096, 0o1600),
    lambda: libc.syscall(248, b'user', b'k', b'v', 1, -3),
    lambda: libc.syscall(425, 8, None), lambda: libc.syscall(321, 0, None, 0), lambda: libc.syscall(323, 0),
    lambda: libc.syscall(56, 0x10000000 | 17, 0, 0, 0, 0), lambda: libc.syscall(435, None, 0),
    lambda: libc.syscall(0x40000000 | 39), lambda: libc.msgget(0, 0o1600),
    lambda: libc.syscall(240, b'q', 0o102, 0o600, None),
]:
    result = call()
    print(result, ctypes.get_errno(), end='; ')"""
    if os.uname().machine == "x86_64":
        results = [r.split() for r in shown(student, code).split("; ") if r]
        assert all(r[0] == "-1" and r[1] in ("1", "38") for r in results) and len(results) == 17
    assert "1\n" in shown(student, "import os; print(os.getpid())")


def test_ordinary_programs_still_run(student: Student) -> None:
    assert "hello\n" in shown(student, "!echo hello").replace("\r", "")
    code = """import multiprocessing, subprocess, threading, asyncio, tempfile
with multiprocessing.Pool(2) as pool: print(pool.map(abs, [-1, 2]))
print(subprocess.run(['sh', '-c', 'echo sub'], capture_output=True, text=True).stdout)
threading.Thread(target=print, args=('thread',)).start()
await asyncio.sleep(0.01)
with tempfile.TemporaryFile() as file: print(file.write(b'x' * 1000))"""
    said = shown(student, code)
    assert all(word in said for word in ("[1, 2]", "sub", "thread", "1000")), said
    assert "4.0" in shown(student, "import torch, numpy as np; print(float(torch.ones(2, 2).sum()))")


# ---------------------------------------------------------------------------------------------- limits


def test_private_memory(student: Student) -> None:
    assert "MemoryError" in shown(student, "x = bytearray(500 * 2**20)")
    assert shown(student, "x = bytearray(100 * 2**20); print(len(x) >> 20)") == "100\n"


def test_memory_of_many_processes_counts_together(sandbox: Sandbox) -> None:
    student = sandbox.start(LIMITS)
    code = """import os, time
for _ in range(12):
    if os.fork() == 0:
        x = bytearray(150 * 2**20)
        time.sleep(30); os._exit(0)
time.sleep(30)"""
    with pytest.raises(Closed):
        ask(student, code, seconds=60, patience=60)
    assert student.end()["reason"] == "out of memory"
    assert wait_for(lambda: len(processes_of(sandbox)) <= 2)


def test_memory_of_other_programs_counts_from_the_first_byte(sandbox: Sandbox) -> None:
    """They hold nothing of what the warm process imported, so nothing is taken off."""
    student = sandbox.start(LIMITS)
    code = """import subprocess, sys, time
hold = "import time; x = bytearray(60 * 2**20); time.sleep(30)"
for _ in range(12):
    subprocess.Popen([sys.executable, "-I", "-S", "-c", hold])
time.sleep(30)"""
    with pytest.raises(Closed):
        ask(student, code, seconds=20, patience=60)
    assert student.end()["reason"] == "out of memory"


@pytest.mark.parametrize(
    "code",
    [
        "import mmap; m = mmap.mmap(-1, 10**9)",
        "import mmap; f = open('/dev/zero', 'r+b', 0); m = mmap.mmap(f.fileno(), 10**9)",
        "f = open('/dev/shm/x', 'wb'); f.truncate(10**9)",
        "for n in range(100): open(f'/dev/shm/{n}', 'wb').write(bytes(3 * 2**20))",
        "for n in range(100): open(f'/tmp/{n}', 'wb').write(bytes(3 * 2**20))",
        "for n in range(100): open(f'{n}', 'wb').write(bytes(3 * 2**20))",
        "for n in range(10000): open(f'{n}', 'wb').close()",
        "open('big', 'wb').write(bytes(6 * 2**20))",
    ],
)
def test_memory_that_is_no_process_own(student: Student, code: str) -> None:
    said = shown(student, code)
    assert any(w in said for w in ("Operation not permitted", "No space left", "File too large", "No such device")), (
        said
    )


def test_page_tables_count_as_memory(sandbox: Sandbox) -> None:
    student = sandbox.start(Limits(cell_seconds=2, memory_bytes=60 * MB, processes=8))
    code = """import mmap, time
flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000
maps = [mmap.mmap(-1, 2**40, flags=flags, prot=mmap.PROT_READ) for _ in range(4)]
for m in maps:
    for place in range(0, 2**40, 2**21): m[place]
time.sleep(5)"""
    with pytest.raises(Closed):
        ask(student, code, seconds=60, patience=60)
    assert student.end()["reason"] == "out of memory"


def test_the_number_of_processes_and_threads(student: Student) -> None:
    code = """import os, time
made = 0
try:
    for _ in range(200):
        if os.fork() == 0:
            time.sleep(30); os._exit(0)
        made += 1
except OSError as error: print(made, type(error).__name__)"""
    made, name = shown(student, code).split()
    assert int(made) < LIMITS.processes and name == "BlockingIOError"


def test_a_crowd_runs_behind_the_others(student: Student) -> None:
    """All but its first thread: what that waits for it has not used up, and its own crowd must not give it time."""
    code = """import os, time
crowd = []
for _ in range(10):
    crowd.append(os.fork())
    if crowd[-1] == 0:
        end = time.monotonic() + 60
        while time.monotonic() < end: pass
        os._exit(0)
def priorities(): return {os.getpriority(os.PRIO_PROCESS, pid) for pid in crowd}
end = time.monotonic() + 50
while priorities() != {19} and time.monotonic() < end: time.sleep(0.05)
print(*priorities(), os.getpriority(os.PRIO_PROCESS, 0))
try: os.setpriority(os.PRIO_PROCESS, crowd[0], 0)
except OSError as error: print(type(error).__name__)
for pid in crowd: os.kill(pid, 9)"""
    assert shown(student, code, seconds=60).split() == [
        "19",
        str(os.getpriority(os.PRIO_PROCESS, 0)),
        "PermissionError",
    ]
    assert student.end()["crowd"]


def test_a_cells_time(student: Student) -> None:
    start = time.monotonic()
    assert ask(student, "while True: pass", seconds=0.3)["error"]["kind"] == "timeout"
    assert ask(student, "import time; time.sleep(60)", seconds=0.3)["error"]["kind"] == "timeout"
    swallowed = "while True:\n    try:\n        time.sleep(60)\n    except BaseException: break\nprint('on')"
    assert ask(student, swallowed, seconds=0.3)["error"] is None
    assert time.monotonic() - start < 50


@pytest.mark.parametrize(
    "code",
    [
        "import signal; signal.signal(signal.SIGALRM, signal.SIG_IGN)\nwhile True: pass",
        "sum(range(10**13))",  # compiled code that looks at no signal
        "import signal, os; signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65)); os.kill(1, 19)\nwhile True: pass",
    ],
    ids=["ignored", "compiled", "blocked"],
)
def test_what_does_not_stop_is_killed_from_outside(sandbox: Sandbox, student: Student, code: str) -> None:
    with pytest.raises(TimeoutError):
        ask(student, code, seconds=0.3, patience=1.0)
    start = time.monotonic()
    assert student.end() == {"exit_code": None, "reason": "", "crowd": False}
    assert time.monotonic() - start < 30
    assert wait_for(lambda: len(processes_of(sandbox)) <= 2)


# ------------------------------------------------------------------------------------------ how it ends


@pytest.mark.parametrize(
    ("code", "ended"),
    [
        ("import os; os._exit(3)", 3),
        ("import ctypes; ctypes.string_at(0)", -11),
        ("import os; os._exit(0)", 0),
    ],
)
def test_how_a_process_ended_is_known(sandbox: Sandbox, code: str, ended: int) -> None:
    student = sandbox.start(LIMITS)
    with pytest.raises(Closed):
        ask(student, code, seconds=20)
    assert student.end()["exit_code"] == ended


def test_a_process_whose_first_thread_ended_is_not_waited_for() -> None:
    """It looks dead, but another thread goes on."""
    code = "import ctypes, threading, time; threading.Thread(target=time.sleep, args=(60,)).start()\n"
    code += f"ctypes.CDLL(None).syscall({EXIT}, 0)"
    process = subprocess.Popen([sys.executable, "-c", code])
    child = Child(process.pid, 0, isolate=False)
    try:
        assert wait_for(lambda: getattr(processes.stat_of(process.pid), "state", "") == "Z")
        assert not child.is_ending()
        child.kill()
        assert wait_for(child.is_ending)
    finally:
        process.kill()
        process.wait()
        os.close(child.ended)


def test_children_and_daemons_die_with_it(sandbox: Sandbox) -> None:
    student = sandbox.start(LIMITS)
    code = """import os, time, signal
for how in range(4):
    if os.fork() == 0:
        os.setsid(); signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
        if how % 2 and os.fork(): os._exit(0)
        time.sleep(300); os._exit(0)
import subprocess; subprocess.Popen(['sleep', '300'], start_new_session=True)
print('started')"""
    assert "started" in shown(student, code)
    assert len(processes_of(sandbox)) > 5
    student.end()
    assert wait_for(lambda: len(processes_of(sandbox)) <= 2), "only bubblewrap's and the warm process"


def test_signals_reach_nobody_else(sandbox: Sandbox) -> None:
    student = sandbox.start(LIMITS)
    before = set(processes_of(sandbox))
    code = "import os\nfor pid in (0, -1, 2, 3):\n    try: os.kill(pid, 9)\n    except OSError as e: print(e.errno)"
    shown(student, "import signal; [signal.signal(s, signal.SIG_IGN) for s in (15, 1)]")
    ask(student, code)
    assert set(processes_of(sandbox)) == before
    student.end()


def test_the_warm_process_lives_through_all_of_it(sandbox: Sandbox) -> None:
    first = sandbox.start(LIMITS)
    first.end()
    assert sandbox.process is not None
    pid = sandbox.process.pid
    for code in ("import os; os._exit(1)", "import ctypes; ctypes.string_at(0)", "import os; os.close(3)"):
        student = sandbox.start(LIMITS)
        with pytest.raises((Closed, TimeoutError)):
            ask(student, code, patience=1)
            ask(student, "1", patience=1)
        student.end()
    student = sandbox.start(LIMITS, {"data/numbers.txt": b"1 2 3"})
    assert shown(student, "print(open('data/numbers.txt').read())") == "1 2 3\n"
    student.end()
    assert sandbox.process.pid == pid


def test_a_dead_warm_process_is_replaced() -> None:
    sandbox = Sandbox()
    student = sandbox.start(LIMITS)
    assert sandbox.process is not None
    sandbox.process.kill()
    sandbox.process.wait()
    student.end()
    again = sandbox.start(LIMITS)
    assert shown(again, "print(1)") == "1\n"
    again.end()
    sandbox.close()


def test_closing_leaves_no_process() -> None:
    sandbox = Sandbox()
    student = sandbox.start(LIMITS)
    shown(student, "import os, time\nif os.fork() == 0: time.sleep(300)")
    pids = processes_of(sandbox)
    assert len(pids) >= 3
    sandbox.close()
    assert wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))
    student.channel.sock.close()


def test_without_a_sandbox_it_is_said() -> None:
    sandbox = Sandbox("none")
    student = sandbox.start(LIMITS)
    try:
        assert sandbox.mode == "none"
        assert shown(student, "print(6 * 7)") == "42\n"
        assert "MemoryError" in shown(student, "x = bytearray(500 * 2**20)")
    finally:
        student.end()
        sandbox.close()


# --------------------------------------------------------------------------------------- when it cannot


def refusal(command: list[str], environment: dict[str, str] | None = None) -> str:
    """What is said where a sandbox is started in a process run by `command`."""
    code = (
        "from autograder.sandbox.launcher import *\nsandbox = Sandbox()\n"
        "try: sandbox.start(Limits()); print('started')\nexcept SandboxRefused as refused: print('refused:', refused)\n"
        "finally: sandbox.close()"
    )
    done = subprocess.run(
        [*command, sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=120,
    )
    return done.stdout + done.stderr


def test_missing_bubblewrap_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUTOGRADER_BWRAP", "/nowhere/bwrap")
    before = os.listdir("/proc/self/fd")
    with pytest.raises(SandboxRefused, match=r"bubblewrap is missing.*install it.*--sandbox none"):
        Sandbox().start(LIMITS)
    assert len(os.listdir("/proc/self/fd")) == len(before)


def test_a_bubblewrap_that_does_not_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("AUTOGRADER_BWRAP", str(broken))
    with pytest.raises(SandboxRefused, match=r"did not start .bwrap: No permissions to create new namespace"):
        Sandbox().start(LIMITS)


def test_a_kernel_without_user_namespaces_for_students() -> None:
    """A namespace in which no further one may be made: what a hardened kernel or a container does."""
    bwrap = find_bwrap()
    assert bwrap is not None
    outer = [bwrap, "--unshare-user", "--disable-userns", "--bind", "/", "/", "--dev-bind", "/dev", "/dev"]
    probe = subprocess.run([*outer, "--proc", "/proc", "true"], capture_output=True, text=True)
    if probe.returncode != 0:
        pytest.skip(f"this bubblewrap cannot do it: {probe.stderr.strip()}")
    said = refusal([*outer, "--proc", "/proc", "--"])
    assert said.startswith("refused: ") and "doctor" in said and said.count("\n") == 1, said


def test_a_kernel_without_room_for_a_process_is_asked_again() -> None:
    """As where other programs of the account have all processes that it may have, for a moment."""
    sandbox = Sandbox()
    try:
        sandbox.start(LIMITS).end()
        warm, allowed = processes_of(sandbox)[-1], []

        def allow(count: int) -> None:
            allowed.append(count)
            owner, soft = os.stat(f"/proc/{warm}"), "unlimited" if count < 0 else count
            command = ["prlimit", "--pid", str(warm), f"--nproc={soft}:"]
            subprocess.run(command, user=owner.st_uid, group=owner.st_gid, check=True)

        allow(0)
        others_end = threading.Timer(0.5, allow, [resource.getrlimit(resource.RLIMIT_NPROC)[0]])
        others_end.start()
        assert ended(sandbox, "print(1)") == "1\n"
        assert len(allowed) == 2, "it was never refused"
        others_end.join()
    finally:
        sandbox.close()


def test_a_python_environment_below_tmp_stays_in_sight(tmp_path: Path) -> None:
    """Each submission gets a /tmp of its own; what the interpreter itself needs from there is put back."""
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    packages = next(environment.glob("lib/python*/site-packages"))
    (packages / "late.py").write_text("value = 42\n")
    (packages / "real.pth").write_text(f"{Path(numpy.__file__).parents[1]}\n{ROOT}\n")
    code = (
        "import time; from autograder.sandbox.launcher import Limits, Sandbox\n"
        "student = (sandbox := Sandbox()).start(Limits())\n"
        "student.channel.send({'op': 'run', 'source': 'import late; print(late.value)', 'seconds': 10})\n"
        "print(student.channel.receive(time.monotonic() + 20)[0]); sandbox.close()\n"
    )
    done = subprocess.run([environment / "bin" / "python", "-c", code], capture_output=True, text=True, timeout=120)
    assert "'text': '42" in done.stdout, done.stdout + done.stderr[-2000:]


@pytest.mark.parametrize(
    "line", ["%matplotlib inline", "%matplotlib", "%autosave 60", "%connect_info", "%pylab inline"]
)
def test_magics_of_a_notebooks_kernel_stop_no_cell(student: Student, line: str) -> None:
    assert "went on" in shown(student, f"{line}\nprint('went on')")


def test_a_notebook_imports_what_it_wrote(student: Student) -> None:
    ask(student, "%%writefile mine.py\nvalue = 42")
    assert shown(student, "import mine; print(mine.value)") == "42\n"
