"""haproxy and keepalived on the command line; the lab's balancer does their work."""

from __future__ import annotations

from collections.abc import Mapping

from kubevnfm_lab.machines.lb_config import BadConfiguration, parse_haproxy
from kubevnfm_lab.machines.programs.call import Call, Exit, Failed, Program, options


async def haproxy(call: Call) -> Exit:
    """Haproxy -v, and -c -f FILE: whether a configuration is valid."""
    given = options(call.args, with_value=("-f", "-p", "-C"))
    if given.has("-v", "-vv"):
        return Exit(0, "HAProxy version 2.4.24-0ubuntu0.22.04.2 2024/10/31 - https://haproxy.org/\n")
    for name in given.all("-f"):
        try:
            parse_haproxy(call.path(name).read_text())
        except FileNotFoundError:
            raise Failed(
                f"[ALERT]    Cannot open configuration file/directory {name} : No such file or directory"
            ) from None
        except BadConfiguration as error:
            raise Failed(f"{error}\n[ALERT]    config : Error(s) found in configuration file : {name}") from error
    return Exit(0, "" if given.has("-q") else "Configuration file is valid\n")


async def keepalived(call: Call) -> Exit:
    """Keepalived --version, and -t: whether the configuration file exists."""
    given = options(call.args, with_value=("-f", "--use-file"))
    if given.has("-v", "--version"):
        return Exit(0, stderr="Keepalived v2.2.4 (08/21,2021)\n")
    name = given.get("-f", "--use-file", default="/etc/keepalived/keepalived.conf")
    if not call.path(name).exists():
        raise Failed(f"(Line 1) Unable to find configuration file {name}", 4)
    return Exit()


PROGRAMS: Mapping[str, Program] = {"haproxy": haproxy, "keepalived": keepalived}
