"""The seccomp filter of a confined process: the system calls that pure computation needs, by name.

libseccomp compiles it, because it knows the numbers on each architecture. It is a part of every distribution (apt, systemd
and OpenSSH need it). PyPI has no binding that is maintained: pyseccomp's last release is of 2021. Here are the five
functions that this takes.
"""

from __future__ import annotations

import ctypes
import socket
import tempfile
import termios
from functools import cache
from typing import Final

_ALLOW: Final = 0x7FFF0000
_ENOSYS: Final = 0x00050000 | 38
"""The result of a refused call: as if the kernel did not have it, so the C library takes its older way where it has one."""
_NOTIFY: Final = 0x7FC00000
_LIBRARY: Final = "libseccomp.so.2"

_CALLS: Final = """
    access alarm arch_prctl brk chdir chmod clock_getres clock_gettime clock_nanosleep close close_range copy_file_range
    dup dup2 dup3 execve exit exit_group faccessat faccessat2 fadvise64 fallocate fchdir fchmod fchmodat fcntl fdatasync
    flock fstat fstatfs fsync ftruncate futex futex_waitv getcwd getdents getdents64 getegid geteuid getgid getgroups
    getitimer getpgid getpgrp getpid getppid getpriority getrandom getresgid getresuid getrlimit getrusage getsid gettid
    gettimeofday getuid link linkat lseek lstat madvise membarrier mkdir mkdirat mmap mprotect mremap msync munmap
    nanosleep newfstatat open openat pause pipe pipe2 poll ppoll pread64 preadv preadv2 pselect6 pwrite64
    pwritev pwritev2 read readahead readlink readlinkat readv rename renameat renameat2 restart_syscall riscv_hwprobe
    rmdir rseq rt_sigaction rt_sigpending rt_sigprocmask rt_sigreturn rt_sigsuspend rt_sigtimedwait sched_getaffinity
    sched_yield select sendfile set_robust_list set_tid_address setgroups setitimer setresgid setresuid setrlimit
    sigaltstack splice stat statfs statx symlink symlinkat sync_file_range sysinfo time times truncate ugetrlimit umask
    uname unlink unlinkat utime utimensat utimes write writev
""".split()  # noqa: SIM905 - a list of names is read as a text
"""Without: processes and threads (clone, fork), signals to others, sockets, namespaces, mounts, tracing and the memory of
other processes, keys, io_uring, bpf, and every call that is younger than this list. ``prlimit64`` is admitted for the
process itself."""


class _Comparison(ctypes.Structure):
    """struct scmp_arg_cmp: an argument of a system call compared with a number."""

    _fields_ = (
        ("argument", ctypes.c_uint),
        ("operator", ctypes.c_int),
        ("wanted", ctypes.c_uint64),
        ("second", ctypes.c_uint64),
    )


_EQUAL, _MASKED_EQUAL = 4, 7
_CLONE_THREAD: Final = 0x10000
_FAST_OPEN: Final = 0x20000000
"""Flag of send calls that makes them connect."""
_Rule = tuple[str, int, *tuple[_Comparison, ...]]


def _is(argument: int, value: int) -> _Comparison:
    return _Comparison(argument, _EQUAL, value, 0)


def _has(argument: int, mask: int, value: int) -> _Comparison:
    return _Comparison(argument, _MASKED_EQUAL, mask, value)


_TCGETS2: Final = 0x802C542A
"""The request of isatty since glibc 2.42."""
_REQUESTS: Final = (
    termios.TCGETS,
    _TCGETS2,
    termios.TIOCGWINSZ,
    termios.FIONREAD,
    termios.FIONBIO,
    termios.FIOCLEX,
    termios.FIONCLEX,
)
"""The requests of ``ioctl`` that reading needs. Python uses FIONBIO for ``setblocking`` and FIOCLEX for ``set_inheritable``; the
terminal's are refused by every file that a confined process has. Without those of sockets (SIOCGIFCONF ...): a socket that was
handed over belongs to the host's network, and would list its interfaces and addresses."""
_WORD: Final = 0xFFFFFFFF
"""The kernel reads requests, levels and names of options as 32 bits."""
_CONDITIONAL: Final[tuple[_Rule, ...]] = (
    ("prlimit64", _ALLOW, _is(0, 0)),
    *(("ioctl", _ALLOW, _has(1, _WORD, request)) for request in _REQUESTS),
)
_NETWORK: Final = """
    epoll_create1 epoll_ctl epoll_pwait epoll_wait eventfd2 getpeername getsockname recvfrom recvmmsg recvmsg shutdown
""".split()  # noqa: SIM905 - a list of names is read as a text
"""``getsockname`` shows the host's address towards the peer, which the peer sees too."""
_OPTIONS: Final[tuple[tuple[int, int], ...]] = (
    *(
        (socket.SOL_SOCKET, name)
        for name in (
            socket.SO_KEEPALIVE,
            socket.SO_LINGER,
            socket.SO_OOBINLINE,
            socket.SO_RCVBUF,
            socket.SO_RCVTIMEO,
            socket.SO_REUSEADDR,
            socket.SO_SNDBUF,
            socket.SO_SNDTIMEO,
        )
    ),
    *(
        (socket.IPPROTO_TCP, name)
        for name in (
            socket.TCP_CORK,
            socket.TCP_KEEPCNT,
            socket.TCP_KEEPIDLE,
            socket.TCP_KEEPINTVL,
            socket.TCP_MAXSEG,
            socket.TCP_NODELAY,
            socket.TCP_QUICKACK,
            socket.TCP_USER_TIMEOUT,
        )
    ),
    (socket.IPPROTO_IP, socket.IP_TOS),
    (socket.IPPROTO_IPV6, socket.IPV6_TCLASS),
    (socket.IPPROTO_IPV6, socket.IPV6_V6ONLY),
)
"""Level and name of the options that a client sets or reads. Without those that name interfaces and addresses of the host
(SO_BINDTODEVICE, SO_BINDTOIFINDEX, IP_UNICAST_IF, IP_ADD_MEMBERSHIP ...): their errors say which ones exist."""
_READ_OPTIONS: Final[tuple[tuple[int, int], ...]] = (
    *((socket.SOL_SOCKET, name) for name in (socket.SO_ACCEPTCONN, socket.SO_DOMAIN, socket.SO_ERROR)),
    *((socket.SOL_SOCKET, name) for name in (socket.SO_PROTOCOL, socket.SO_TYPE)),
)
"""Options that a client also reads: what kind of socket it has, and how a connect has ended."""
_NETWORK_CONDITIONAL: Final[tuple[_Rule, ...]] = (
    ("clone", _ALLOW, _has(0, _CLONE_THREAD, _CLONE_THREAD)),
    *(
        ("socket", _ALLOW, _is(0, family), _has(1, 0xF, socket.SOCK_STREAM), _has(2, _WORD, protocol))
        for family in (socket.AF_INET, socket.AF_INET6)
        for protocol in (0, socket.IPPROTO_TCP)
    ),
    *(("setsockopt", _ALLOW, _has(1, _WORD, level), _has(2, _WORD, name)) for level, name in _OPTIONS),
    *(
        ("getsockopt", _ALLOW, _has(1, _WORD, level), _has(2, _WORD, name))
        for level, name in (*_OPTIONS, *_READ_OPTIONS)
    ),
    ("socketpair", _ALLOW, _is(0, socket.AF_UNIX)),
    ("connect", _NOTIFY),
    ("sendto", _ALLOW, _has(3, _FAST_OPEN, 0)),
    ("sendmsg", _ALLOW, _has(2, _FAST_OPEN, 0)),
    ("sendmmsg", _ALLOW, _has(3, _FAST_OPEN, 0)),
)
"""Without ``bind``, ``listen`` and ``accept``; a socket of the host's network only comes from the listener. A second
``connect`` of such a socket is decided by the listener too, which refuses to disconnect it (AF_UNSPEC)."""

_THREADS: Final = "epoll_create1 epoll_ctl epoll_pwait epoll_wait eventfd2".split()  # noqa: SIM905 - as above
_THREADS_CONDITIONAL: Final[tuple[_Rule, ...]] = (("clone", _ALLOW, _has(0, _CLONE_THREAD, _CLONE_THREAD)),)
"""For a program that has threads and no network."""


class FilterUnavailable(Exception):
    """libseccomp is missing or has failed; the message says which."""


def _library() -> ctypes.CDLL:
    try:
        return ctypes.CDLL(_LIBRARY)
    except OSError:
        raise FilterUnavailable(f"{_LIBRARY} is not installed (Debian and Ubuntu: libseccomp2)") from None


def number_of(name: str) -> int:
    """Return the number of a system call on this machine's architecture. Raises FilterUnavailable."""
    return int(_library().seccomp_syscall_resolve_name(name.encode()))


@cache
def compiled(*, network: bool = False, threads: bool = False) -> bytes:
    """Return the filter for this machine's architecture (an array of struct sock_filter). Raises FilterUnavailable.

    ``network``: also admit threads and TCP; each connect is decided by the listener of the filter. ``threads``: also admit
    threads and waiting for events, which the runtime of Go needs.
    """
    more, more_conditional = (_NETWORK, _NETWORK_CONDITIONAL) if network else (_THREADS, _THREADS_CONDITIONAL)
    is_more = network or threads
    library = _library()
    library.seccomp_init.restype = ctypes.c_void_p
    context = ctypes.c_void_p(library.seccomp_init(ctypes.c_uint32(_ENOSYS)))
    if not context:
        raise FilterUnavailable(f"{_LIBRARY} cannot make a filter for this machine")
    try:
        for name in (*_CALLS, *(more if is_more else ())):
            number = library.seccomp_syscall_resolve_name(name.encode())
            # Negative: this architecture, or this version of the library, does not have it.
            if number >= 0:
                _checked(library.seccomp_rule_add_array(context, ctypes.c_uint32(_ALLOW), number, 0, None), name)
        for name, action, *conditions in (*_CONDITIONAL, *(more_conditional if is_more else ())):
            number = library.seccomp_syscall_resolve_name(name.encode())
            listed = (_Comparison * len(conditions))(*conditions)
            made = library.seccomp_rule_add_array(context, ctypes.c_uint32(action), number, len(conditions), listed)
            _checked(made, name)
        with tempfile.TemporaryFile() as file:
            _checked(library.seccomp_export_bpf(context, file.fileno()), "export")
            file.seek(0)
            return file.read()
    finally:
        library.seccomp_release(context)


def _checked(result: int, what: str) -> None:
    if result != 0:
        raise FilterUnavailable(f"{_LIBRARY}: {what}: error {-result}")
