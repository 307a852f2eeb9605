"""Locks a process in: namespaces, mounts, privileges, limits, descriptors. What the kernel refuses is an OSError."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import struct
import sys
from typing import Any

from autograder.sandbox.inside import seccomp

CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWPID = 0x10000000, 0x00020000, 0x20000000
CLONE_NEWIPC, CLONE_NEWNET, CLONE_NEWUTS = 0x08000000, 0x40000000, 0x04000000
NAMESPACES = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWUTS
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 2, 4, 8, 32, 4096, 16384, 2**18
CLONE_CHILD_CLEARTID, CLONE_CHILD_SETTID = 0x00200000, 0x01000000
SYS_CLONE3 = 435  # on every architecture
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS, PR_GET_TID_ADDRESS = 1, 4, 24, 38, 40
NOBODY = 65534
HOME = "/home/student"
FRESH = (HOME, "/tmp", "/dev/shm")

libc = ctypes.CDLL(None, use_errno=True)
holding = ctypes.PyDLL(None, use_errno=True)  # does not let go of the interpreter's lock during a call


def _checked(what: str, code: int) -> None:
    if code != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _mount(source: str, target: str, kind: str | None, flags: int, options: str = "") -> None:
    code = libc.mount(source.encode(), target.encode(), kind and kind.encode(), flags, options.encode() or None)
    _checked(f"mount {source} on {target}", code)


def fork_into_namespaces() -> int:
    """os.fork(), but the child has namespaces of its own from the start. Raises OSError where the kernel refuses.

    `unshare` would take a second fork to enter the new PID namespace, and a fork of this large process is the most
    of what a start costs. What the C library does in a child, keeping its thread's number, is asked of the kernel.
    """
    flags = NAMESPACES | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID
    tid_place = ctypes.c_uint64()
    _checked("get_tid_address", libc.prctl(PR_GET_TID_ADDRESS, ctypes.byref(tid_place), 0, 0, 0))
    # flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls
    arguments = struct.pack("8Q", flags, 0, tid_place.value, 0, signal.SIGCHLD, 0, 0, 0)
    ctypes.pythonapi.PyOS_BeforeFork()
    pid = int(holding.syscall(SYS_CLONE3, arguments, len(arguments)))
    if pid == 0:
        ctypes.pythonapi.PyOS_AfterFork_Child()
        return 0
    number = ctypes.get_errno()
    ctypes.pythonapi.PyOS_AfterFork_Parent()
    if pid < 0:
        raise OSError(number, f"clone: {os.strerror(number)}")
    return pid


def be_nobody(uid: int, gid: int) -> None:
    """In a new user namespace: the user outside, `uid` and `gid`, is nobody inside."""
    for name, text in (("setgroups", "deny"), ("uid_map", f"{NOBODY} {uid} 1"), ("gid_map", f"{NOBODY} {gid} 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)


def private_folders(limits: dict[str, Any]) -> None:
    """Fresh empty folders in place of everything writable, no /proc, no device that memory or words pass through."""
    _mount("none", "/", None, MS_REC | MS_PRIVATE)
    flags = MS_NOSUID | MS_NODEV
    # a Python environment may itself lie below /tmp: it is held open and put back
    hidden = [f for f in (sys.prefix, sys.base_prefix) if f.startswith(tuple(f"{fresh}/" for fresh in FRESH))]
    held = [os.open(folder, os.O_PATH | os.O_DIRECTORY) for folder in hidden]
    for folder in FRESH:
        _mount("tmpfs", folder, "tmpfs", flags, f"size={limits['disk_bytes']},nr_inodes=4096,mode=0700")
    for folder, number in zip(hidden, held, strict=True):
        os.makedirs(folder, exist_ok=True)
        _mount(f"/proc/self/fd/{number}", folder, None, MS_BIND | MS_REC)
        os.close(number)
    _mount("tmpfs", "/proc", "tmpfs", flags | MS_NOEXEC | MS_RDONLY, "mode=0555")
    terminals = "newinstance,ptmxmode=0666,mode=0620,max=16"  # for lines like !ls; the machine has a few thousand
    _mount("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, terminals)
    for name in ("full", "null", "random", "tty", "urandom"):  # as before, but their times say nothing to the next
        _mount("none", f"/dev/{name}", None, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NOEXEC)
    # A shared mapping of /dev/zero holds memory that no process is charged for.
    _mount("/dev/null", "/dev/zero", None, MS_BIND)


def drop_privileges() -> None:
    """No capability and no system call that a notebook does not need, now or ever again."""
    _checked("no_new_privs", libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    capability = 0
    while libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0:
        capability += 1
    this_process, no_capability = struct.pack("Ii", 0x20080522, 0), bytes(24)  # the kernel's header and data
    _checked("capset", libc.capset(this_process, no_capability))
    seccomp.install(libc)


def set_limits(limits: dict[str, Any], base: int) -> None:
    """Memory is counted on top of `base`, what the warm process itself already holds."""
    for name, value in (
        (resource.RLIMIT_DATA, base + limits["memory_bytes"]),
        (resource.RLIMIT_NPROC, limits["processes"]),
        (resource.RLIMIT_FSIZE, limits["file_bytes"]),
        (resource.RLIMIT_STACK, 8 * 2**20),  # which is no data
        (resource.RLIMIT_CORE, 1),  # which also keeps a program that takes such files from being started; 0 does not
        (resource.RLIMIT_NOFILE, 256),
        (resource.RLIMIT_SIGPENDING, 1024),  # timers too; they count for the account outside as well
        (resource.RLIMIT_CPU, int(limits["notebook_seconds"]) + 60),
    ):
        resource.setrlimit(name, (value, value))


def keep_only(number: int) -> None:
    """Close every descriptor but `number`, which becomes 3; 0, 1 and 2 lead to /dev/null."""
    null = os.open("/dev/null", os.O_RDWR)
    high = os.dup2(number, 200, inheritable=False)
    for target in (0, 1, 2):
        os.dup2(null, target)
    os.dup2(high, 3, inheritable=False)
    os.closerange(4, 1024)


def confine(limits: dict[str, Any], outside: tuple[int, int] | None, base: int) -> None:
    """What a student's process must be before it runs anything of the student. Raises OSError.

    `outside` are user and group outside of the new namespaces; None where there are none. `base`: see `set_limits`.
    """
    if outside is not None:
        be_nobody(*outside)
        private_folders(limits)
    home = HOME if outside is not None else limits["folder"]
    os.chdir(home)
    os.environ.update(HOME=home, TMPDIR="/tmp" if outside is not None else home)
    set_limits(limits, base)
    if outside is not None:
        drop_privileges()


def die_with_parent() -> None:
    _checked("pdeathsig", libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0))


def leave_root() -> None:
    """Become nobody, where the command was root's."""
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    _checked("dumpable", libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0))  # so that children may write their uid_map
