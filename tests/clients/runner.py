"""Runs commands of the ``openstack`` command line, one after another, in the environment that it is installed in.

Each line of the input is a command's arguments as JSON; each line of the output its exit code and what it printed. Every
command is a process of its own, as for a person who types it: the client keeps things in its modules. Forked where the
modules are imported already, it saves their import.
"""

import contextlib
import io
import json
import os
import sys

import tackerclient.osc.plugin
import tackerclient.osc.v1.nfvo.vim
import tackerclient.osc.v1.vnflcm.vnflcm
import tackerclient.osc.v1.vnfpkgm.vnf_package
import tackerclient.v1_0.client  # noqa: F401  # imported for the processes to come
from openstackclient.shell import OpenStackShell


def run(arguments: list[str]) -> None:
    """Run one command and print its answer."""
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        try:
            code = OpenStackShell().run(arguments)
        except SystemExit as end:  # argparse ends so
            code = end.code
    sys.stdout.write(f"{json.dumps([code, out.getvalue(), errors.getvalue()])}\n")
    sys.stdout.flush()


def main() -> None:
    """Run until the input ends."""
    while line := sys.stdin.readline():
        child = os.fork()
        if child == 0:
            try:
                run(json.loads(line))
            finally:
                os._exit(0)
        os.waitpid(child, 0)


main()
