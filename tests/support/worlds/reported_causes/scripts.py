"""Reports about code of packages."""

from __future__ import annotations

from typing import Final

from worlds.reported_causes.case import Case

SCRIPTS: Final = (
    Case(
        "no sandbox",
        "sandbox-unavailable",
        "code of a VNF package is not run, because it cannot be confined: unshare: Operation not permitted. Allow namespaces to this service, or set trust_packages if you trust every package (docs/security.md)",
        "sandbox-unavailable",
        "Code of the package is not run: the kernel of the service's host does not let it be confined.",
        "Service infra-k8s",
    ),
    Case(
        "a script that failed",
        "mgmt-script-failed",
        "instantiate_end failed: Scripts/own.py ended with exit status 3; its last output:\n| Traceback\n| ValueError: no address",
        "script-failed",
        'The script Scripts/own.py of the package ended with exit status 3: "ValueError: no address".',
        "Package vnfd-1",
    ),
    Case(
        "a script that hung",
        "mgmt-script-timed-out",
        "instantiate_end: Scripts/own.py was killed after 60 s",
        "script-timed-out",
        "The script Scripts/own.py of the package was killed after 60 s.",
        "Package vnfd-1",
    ),
    Case(
        "a user data class that fails, in words that Nova has too",
        "user-data-failed",
        "user_data.py: the class failed:\n| KeyError: 'No valid host was found'",
        "user-data-failed",
        "The user data class of the package failed: \"user_data.py: the class failed: | KeyError: 'No valid host was found'\".",
        "Package vnfd-1",
    ),
    Case(
        "a script whose answer is refused",
        "script-answer-refused",
        "instantiate_end: Scripts/own.py: a dict or nothing expected on stdout, not list",
        "script-failed",
        'A script of the package failed: "instantiate_end: Scripts/own.py: a dict or nothing expected on stdout, not list".',
        "Package vnfd-1",
    ),
    Case(
        "a script that a server of its own refuses",
        "mgmt-script-failed",
        "instantiate_end failed: Scripts/own.py ended with exit status 7; its last output:\n| curl: (7) Failed to connect to billing.example port 443: Connection refused",
        "script-failed",
        'The script Scripts/own.py of the package ended with exit status 7: "curl: (7) Failed to connect to billing.example port 443: Connection refused".',
        "Package vnfd-1",
    ),
    Case(
        "a script that fills its disk",
        "mgmt-script-failed",
        "instantiate_end failed: Scripts/own.py ended with exit status 1; its last output:\n| OSError: [Errno 28] No space left on device",
        "script-failed",
        'The script Scripts/own.py of the package ended with exit status 1: "OSError: [Errno 28] No space left on device".',
        "Package vnfd-1",
    ),
)
