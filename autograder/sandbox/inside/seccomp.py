"""Leaves a process only the system calls that a notebook needs: none that takes from others, hides memory or gets out.

A classic BPF program for seccomp, put together here because it is thirty lines and no package is needed for it.
It stands for x86-64 and arm64, the processors that torch is made for. This module imports nothing of the package.

Left out are calls that take from the whole machine (asynchronous input and output, notification, keys, `sync`), memory
that no process is charged for (memfd, System V IPC, pages put into pipes), channels between submissions (locks on files
that all read, `mincore`), and ways to other processes and namespaces.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct
from functools import cache
from itertools import groupby

# What is let through, with its number on x86-64 and on arm64: files, waiting, memory, processes, time, sockets.
ALLOWED = """
read 0 63  write 1 64  pread64 17 67  pwrite64 18 68  readv 19 65  writev 20 66  preadv 295 69  pwritev 296 70
preadv2 327 286  pwritev2 328 287  open 2 -  openat 257 56  openat2 437 437  creat 85 -  close 3 57  close_range 436 436
lseek 8 62  stat 4 -  fstat 5 80  lstat 6 -  newfstatat 262 79  statx 332 291  access 21 -  faccessat 269 48
faccessat2 439 439  readlink 89 -  readlinkat 267 78  getdents 78 -  getdents64 217 61  statfs 137 43  fstatfs 138 44
rename 82 -  renameat 264 38  renameat2 316 276  mkdir 83 -  mkdirat 258 34  rmdir 84 -  link 86 -  linkat 265 37
unlink 87 -  unlinkat 263 35  symlink 88 -  symlinkat 266 36  mknod 133 -  mknodat 259 33  chmod 90 -  fchmod 91 52
fchmodat 268 53  fchmodat2 452 452  chown 92 -  fchown 93 55  lchown 94 -  fchownat 260 54  umask 95 166  utime 132 -
utimes 235 -  utimensat 280 88  truncate 76 45  ftruncate 77 46  fallocate 285 47  fadvise64 221 223  fsync 74 82
fdatasync 75 83  sendfile 40 71  copy_file_range 326 285  getcwd 79 17  chdir 80 49  fchdir 81 50  dup 32 23  dup2 33 -
dup3 292 24  pipe 22 -  pipe2 293 59  fcntl 72 25  ioctl 16 29  getxattr 191 8  lgetxattr 192 9  fgetxattr 193 10
listxattr 194 11  llistxattr 195 12  flistxattr 196 13
poll 7 -  ppoll 271 73  select 23 -  pselect6 270 72  epoll_create 213 -  epoll_create1 291 20  epoll_ctl 233 21
epoll_wait 232 -  epoll_pwait 281 22  epoll_pwait2 441 441  eventfd 284 -  eventfd2 290 19  signalfd 282 -
signalfd4 289 74  timerfd_create 283 85  timerfd_settime 286 86  timerfd_gettime 287 87
mmap 9 222  munmap 11 215  mremap 25 216  mprotect 10 226  madvise 28 233  msync 26 227  brk 12 214
clone 56 220  fork 57 -  vfork 58 -  execve 59 221  execveat 322 281  exit 60 93  exit_group 231 94  wait4 61 260
waitid 247 95  kill 62 129  tkill 200 130  tgkill 234 131  pidfd_open 434 434  pidfd_send_signal 424 424  getpid 39 172
getppid 110 173  gettid 186 178  getpgid 121 155  getpgrp 111 -  getsid 124 156  setpgid 109 154  setsid 112 157
getuid 102 174  geteuid 107 175  getgid 104 176  getegid 108 177  getresuid 118 148  getresgid 120 150
getgroups 115 158  capget 125 90  getpriority 140 141  sched_yield 24 124
sched_getaffinity 204 123  sched_setaffinity 203 122  sched_getparam 143 121  sched_getscheduler 145 120
sched_get_priority_max 146 125  sched_get_priority_min 147 126  getrlimit 97 163  setrlimit 160 164  prlimit64 302 261
getrusage 98 165  prctl 157 167  arch_prctl 158 -  set_tid_address 218 96  set_robust_list 273 99  futex 202 98
rseq 334 293  restart_syscall 219 128  uname 63 160  sysinfo 99 179  getcpu 309 168  getrandom 318 278
rt_sigaction 13 134  rt_sigprocmask 14 135  rt_sigpending 127 136  rt_sigtimedwait 128 137  rt_sigqueueinfo 129 138
rt_sigsuspend 130 133  rt_sigreturn 15 139  sigaltstack 131 132  pause 34 -  alarm 37 -  getitimer 36 102
setitimer 38 103  timer_create 222 107  timer_settime 223 110  timer_gettime 224 108  timer_getoverrun 225 109
timer_delete 226 111  nanosleep 35 101  clock_nanosleep 230 115  clock_gettime 228 113  clock_getres 229 114
gettimeofday 96 169  time 201 -  times 100 153
socket 41 198  socketpair 53 199  bind 49 200  listen 50 201  accept 43 202  accept4 288 242  connect 42 203
shutdown 48 210  getsockname 51 204  getpeername 52 205  getsockopt 55 209  setsockopt 54 208  sendto 44 206
recvfrom 45 207  sendmsg 46 211  recvmsg 47 212  sendmmsg 307 269  recvmmsg 299 243
"""
NEW = 424  # from here on numbers are the same everywhere, and programs try a call and go on without it
# What is said of others than "not permitted", because programs then go on: unknown; not here.
SAID = {
    errno.ENOSYS: "get_mempolicy 239 236  set_mempolicy 238 237  mbind 237 235  membarrier 324 283  flock 73 32",
    errno.EOPNOTSUPP: "setxattr 188 5  lsetxattr 189 6  fsetxattr 190 7  removexattr 197 14  fremovexattr 199 16",
}
ALL = 0xFFFFFFFF
STREAM = 0xF, (1,)  # datagrams wait in a receiver without a bound for each sender
NEWER = (0x802C542A, 0x402C542B, 0x402C542C, 0x402C542D)  # the same for any speed of a line
TERMINALS = (*range(0x5401, 0x5412), 0x5413, 0x5414, 0x5422, 0x5429, 0x80045430, 0x40045431, 0x5441, *NEWER)
# A call, one of its arguments, the bits looked at, the values they may have, what is said of others.
CHECKED: tuple[tuple[str, int, int, tuple[int, ...], int], ...] = (
    ("clone", 0, 0x7E020000, (0,), errno.EPERM),  # no new namespaces
    ("mmap", 3, 0x40121, (0, 0x1, 0x20), errno.EPERM),  # shared or anonymous, not both; no huge pages, no growing stack
    ("madvise", 2, ALL, (0, 1, 2, 3, 4, 8, 10, 11, 14, 15, 16, 17, 18, 22, 23), errno.EPERM),  # none shared with others
    # no filters, hiding or scheduling cookies; 51 and 64 tell libraries how long vectors are on arm64
    ("prctl", 0, ALL, (1, 2, 3, 15, 16, 21, 23, 30, 36, 37, 38, 39, 41, 42, 51, 64, 0x53564D41), errno.EPERM),
    ("fcntl", 1, ALL, (*range(5), 8, 9, 10, 11, 1030, 1032), errno.EPERM),  # no locks, leases or larger pipes
    ("ioctl", 1, ALL, (*TERMINALS, 0x541B, 0x5421, 0x5450, 0x5451, 0x5452), errno.ENOTTY),  # and what waits to be read
    ("fadvise64", 3, ALL, (0, 1, 2, 3, 5), errno.EPERM),  # what all read stays in the cache
    ("socket", 0, ALL, (1,), errno.ENETUNREACH),  # Unix only; of others what a machine without a network says
    ("socket", 1, *STREAM, errno.EPERM),
    ("socketpair", 0, ALL, (1,), errno.EAFNOSUPPORT),
    ("socketpair", 1, *STREAM, errno.EPERM),
    ("setsockopt", 2, ALL, (1, 2, 9, 13, 15, 16, 20, 21), errno.EPERM),  # addresses and times; no buffers, no filters
    *((call, n, 1, (0,), errno.EOPNOTSUPP) for call, n in (("sendto", 3), ("sendmsg", 2), ("sendmmsg", 3))),  # MSG_OOB
)
MACHINES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}  # the kernel's name for it, column above

LOAD, AND, EQUAL, AT_LEAST, RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
ALLOW, ERROR = 0x7FFF0000, 0x00050000
PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)


def _numbers(table: str, column: int) -> dict[str, int]:
    words = table.split()
    return {name: int(n) for name, n in zip(words[::3], words[1 + column :: 3], strict=True) if n != "-"}


def _condition(argument: int, mask: int, values: tuple[int, ...], error: int) -> list[bytes]:
    """Goes on behind itself where the argument has one of the values."""
    tests = [_step(EQUAL, value, len(values) - n, 0) for n, value in enumerate(values)]
    return [_step(LOAD, 16 + 8 * argument), _step(AND, mask), *tests, _step(RETURN, ERROR | error)]


@cache
def program() -> bytes:
    """The filter as the kernel reads it. Raises OSError for a processor it is not written for."""
    machine = platform.machine()
    if machine not in MACHINES:
        raise OSError(errno.ENOTSUP, f"no filter of system calls for {machine}")
    architecture, column = MACHINES[machine]
    calls = _numbers(ALLOWED, column)
    verdicts = {number: ERROR | error for error, table in SAID.items() for number in _numbers(table, column).values()}
    verdicts.update(dict.fromkeys(calls.values(), ALLOW))

    def verdict(number: int) -> int:
        return verdicts.get(number, ERROR | (errno.ENOSYS if number >= NEW else errno.EPERM))

    unknown = _step(RETURN, ERROR | errno.ENOSYS)
    parts = [_step(LOAD, 4), _step(EQUAL, architecture, 1, 0), unknown, _step(LOAD, 0)]  # calls of a 32-bit program
    for call in dict.fromkeys(call for call, *_ in CHECKED):
        steps = [step for row in CHECKED if row[0] == call for step in _condition(*row[1:])]
        parts += [_step(EQUAL, calls[call], 0, len(steps) + 1), *steps, _step(RETURN, ALLOW)]
    runs = [(next(numbers), said) for said, numbers in groupby(range(1024), verdict)]  # the last has no end: x32 too
    for first, said in reversed(runs):
        parts += [_step(AT_LEAST, first, 0, 1 if first else 0), _step(RETURN, said)]
    return b"".join(parts)


def install(libc: ctypes.CDLL) -> None:
    """Filter this process's system calls and its children's for ever. Needs no_new_privs. Raises OSError."""
    code = ctypes.create_string_buffer(program())
    length_and_place = struct.pack("HP", len(code) // 8, ctypes.addressof(code))
    if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, length_and_place, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "filter of system calls")
