"""Runs commands of the ``openstack`` command line, one after another, in the environment that it is installed in.

Each input line holds the arguments of a command as JSON; each output line holds its exit code, output and errors. Every
command runs in its own process, as in a shell, because the client keeps state in its modules. The process is forked after
the modules are imported, which saves their import.
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
import tackerclient.osc.v2.vnffm.vnffm_alarm
import tackerclient.osc.v2.vnffm.vnffm_sub
import tackerclient.osc.v2.vnfpm.vnfpm_job
import tackerclient.osc.v2.vnfpm.vnfpm_report
import tackerclient.osc.v2.vnfpm.vnfpm_threshold
import tackerclient.v1_0.client  # noqa: F401  # imported for the forked processes
from openstackclient.shell import OpenStackShell


def run(arguments: list[str]) -> None:
    """Run one command and print its answer."""
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        try:
            code = OpenStackShell().run(arguments)
        except SystemExit as end:  # raised by argparse
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
