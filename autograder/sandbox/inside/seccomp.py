"""Takes from a process the system calls that no notebook needs and that could hide memory or leave the confinement.

A classic BPF program for seccomp, put together here because it is thirty lines and no package is needed for it.
It stands for x86-64 and arm64, the processors that torch is made for. This module imports nothing of the package.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct
from functools import cache

# One row a call: x86-64, arm64. Why: see the groups.
DENIED = {
    # other processes and other namespaces
    **{"ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272)},
    **{"pidfd_getfd": (438, 438), "process_madvise": (440, 440), "unshare": (272, 97), "setns": (308, 268)},
    # mounts, and files reached round them
    **{"mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51)},
    **{"open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430), "fsconfig": (431, 431)},
    **{"fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442)},
    **{"name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265)},
    # memory that belongs to no process, so that no limit counts it
    **{"memfd_create": (319, 279), "memfd_secret": (447, 447), "mq_open": (240, 180)},
    **{"shmget": (29, 194), "shmctl": (31, 195), "shmat": (30, 196), "shmdt": (67, 197)},
    **{"msgget": (68, 186), "msgctl": (71, 187), "msgrcv": (70, 188), "msgsnd": (69, 189)},
    **{"semget": (64, 190), "semctl": (66, 191), "semtimedop": (220, 192), "semop": (65, 193)},
    # keys, which outlive a submission in the session that all share
    **{"add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219)},
    # large parts of the kernel that a notebook has no use for
    **{"bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282)},
    **{"io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427)},
    **{"kexec_load": (246, 104), "kexec_file_load": (320, 294), "init_module": (175, 105)},
    **{"finit_module": (313, 273), "delete_module": (176, 106), "fanotify_init": (300, 262)},
    **{"swapon": (167, 224), "quotactl": (179, 60), "acct": (163, 89), "reboot": (169, 142), "syslog": (103, 116)},
}
# Architecture of the kernel's audit, column above, and the calls whose arguments are looked at.
MACHINES = {
    "x86_64": (0xC000003E, 0, {"clone": 56, "clone3": 435, "mmap": 9, "socket": 41}),
    "aarch64": (0xC00000B7, 1, {"clone": 220, "clone3": 435, "mmap": 222, "socket": 198}),
}
NEW_NAMESPACES = 0x7E020000
MAP_SHARED_ANONYMOUS = 0x21
FAMILIES = (1, 2, 10)  # AF_UNIX, AF_INET, AF_INET6; AF_VSOCK and others know no network namespace

LOAD, AND, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
ALLOW, KILL, ERROR = 0x7FFF0000, 0x80000000, 0x00050000
PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)


@cache
def program() -> bytes:
    """The filter as the kernel reads it. Raises OSError for a processor it is not written for."""
    machine = platform.machine()
    if machine not in MACHINES:
        raise OSError(errno.ENOTSUP, f"no filter of system calls for {machine}")
    architecture, column, calls = MACHINES[machine]

    def refuse(number: int) -> bytes:
        return _step(RETURN, ERROR | number)

    def argument(index: int) -> bytes:
        return _step(LOAD, 16 + 8 * index)

    def rule(call: str, *steps: bytes) -> bytes:
        """`steps` end the program for this call and are skipped for others."""
        return _step(EQUAL, calls[call], 0, len(steps)) + b"".join(steps)

    allow = _step(RETURN, ALLOW)
    parts = [_step(LOAD, 4), _step(EQUAL, architecture, 1, 0), _step(RETURN, KILL), _step(LOAD, 0)]
    if machine == "x86_64":  # the x32 way to the same calls
        parts += [_step(AT_LEAST, 0x40000000, 0, 1), refuse(errno.ENOSYS)]
    for numbers in DENIED.values():
        parts += [_step(EQUAL, numbers[column], 0, 1), refuse(errno.EPERM)]
    parts += [
        rule("clone3", refuse(errno.ENOSYS)),  # its flags cannot be read here; the C library then uses clone
        rule("clone", argument(0), _step(ANY_BIT, NEW_NAMESPACES, 0, 1), refuse(errno.EPERM), allow),
        rule(
            "mmap",
            argument(3),
            _step(AND, MAP_SHARED_ANONYMOUS),
            _step(EQUAL, MAP_SHARED_ANONYMOUS, 0, 1),
            refuse(errno.EPERM),
            allow,
        ),
        rule(
            "socket",
            argument(0),
            *(_step(EQUAL, family, len(FAMILIES) - n, 0) for n, family in enumerate(FAMILIES)),
            refuse(errno.EAFNOSUPPORT),
            allow,
        ),
        allow,
    ]
    return b"".join(parts)


class Program(ctypes.Structure):
    """struct sock_fprog of the kernel."""

    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def install(libc: ctypes.CDLL) -> None:
    """Filter this process's system calls and its children's for ever. Needs no_new_privs. Raises OSError."""
    code = program()
    filled = Program(len(code) // 8, code)
    if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(filled), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "filter of system calls")
