"""Causes: code of VNF packages that fails. Its output is foreign text that no other row may read."""

from __future__ import annotations

from typing import Final

from kubevnfm_lcm_api.views.causes.rule import BEGIN, NAME, rule

_SAID: Final = r"(?P<said>.{1,300})"

SCRIPTS: Final = (
    rule(
        "script-timed-out",
        "The script {script} of the package was killed after {seconds} s.",
        "Correct the script, or what it waited for",
        code="mgmt-script-timed-out",
        text=rf"{BEGIN}(?P<script>{NAME}) was killed after (?P<seconds>[\d.e+]{{1,12}}) s",
        about="Package",
    ),
    rule(
        "script-failed",
        "The script {script} of the package ended with exit status {status}[: {said}]",
        "Correct the script, or what it found",
        code="mgmt-script-failed",
        text=rf"{BEGIN}(?P<script>{NAME}) ended with exit status (?P<status>-?\d{{1,5}})(?:.{{0,4000}}\n\| (?P<said>[^\n]{{1,200}})\s*$)?",
        about="Package",
    ),
    rule(
        "script-failed",
        "A script of the package failed: {said}",
        "Correct the script",
        code="mgmt-script-failed script-answer-refused script-refused",
        text=_SAID,
        about="Package",
        best="rollback",
    ),
    rule(
        "sandbox-unavailable",
        "Code of the package is not run: the kernel of the service's host does not let it be confined.",
        "Allow user namespaces and seccomp to the service, or set trust_packages (docs/security.md)",
        code="sandbox-unavailable",
        about="Service",
    ),
    rule(
        "user-data-failed",
        "The user data class of the package failed: {said}",
        "Correct the class, and onboard the package again",
        code="user-data-failed user-data-timed-out",
        text=_SAID,
        about="Package",
        best="rollback",
    ),
)
