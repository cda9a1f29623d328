"""Causes: VIMs and NFVOs that do not answer or refuse, and the services of this manager themselves."""

from __future__ import annotations

from typing import Final

from kubevnfm_lcm_api.views.causes.rule import rule

_SAID: Final = r"(?P<said>.{1,300})"
_OPENSTACK: Final = r"(?P<api>Keystone|Heat|Nova|Neutron|Glance|Cinder|Octavia)"
_LOOK: Final = "Look at the VIM, and at the network between it and this manager"

OUTSIDE: Final = (
    # --- NFVO
    rule(
        "nfvo-away",
        "The NFVO does not answer the request for a grant: {said}",
        "Look at the NFVO, and at the address and credentials in the settings",
        code="nfvo-away",
        text=_SAID,
        about="Nfvo",
    ),
    rule(
        "nfvo-away",
        "The NFVO did not answer the request for a grant in time: {said}",
        "Look at the NFVO, then send the request of the operation again",
        code="grant-timeout",
        text=r"last failure: (?P<said>.{1,250})",
        about="Nfvo",
    ),
    rule(
        "nfvo-undecided",
        "The NFVO has not decided about the grant yet.",
        "Let the NFVO decide",
        code="nfvo-undecided",
        about="Nfvo",
    ),
    rule(
        "nfvo-undecided",
        "The NFVO did not decide about the grant in time.",
        "Let the NFVO decide, then send the request of the operation again",
        code="grant-timeout",
        about="Nfvo",
    ),
    rule(
        "grant-refused",
        "The NFVO refused the grant: {said}",
        "Let the NFVO allow the operation, then send its request again",
        code="grant-refused",
        text=_SAID,
        about="Nfvo",
    ),
    rule(
        "grant-unusable",
        "The grant of the NFVO cannot be used: {said}",
        "Correct the grant in the NFVO (docs/granting.md), then send the request of the operation again",
        code="grant-unusable",
        text=_SAID,
        about="Nfvo",
    ),
    # --- packages
    rule(
        "package-not-fetched",
        "The VNF package cannot be fetched: {said}",
        "Check the address and the credentials of the catalogue",
        code="package-not-fetched",
        text=_SAID,
        about="Package",
    ),
    rule(
        "package-unusable",
        "The VNF package of the operation cannot be used: {said}",
        "Onboard or enable the package",
        code="package-unusable",
        text=_SAID,
        about="Package",
    ),
    # --- the database of this manager
    rule(
        "store-away",
        "The database of this manager cannot be used: {said}",
        "Look at the database and at the network to it",
        code="store-unavailable",
        text=_SAID,
        about="Database",
    ),
)
"""By their codes alone what is no VIM: its reports have addresses and errors of connections as those of VIMs have."""

SERVICES: Final = (
    # --- VIMs
    rule(
        "vim-token-expired",
        "{api} no longer accepts the token of this manager: it has expired.",
        "Nothing, a new token is fetched by itself; if it lasts, compare the clocks and the life of tokens",
        text=rf"{_OPENSTACK}: the token has expired",
        about="Vim",
    ),
    rule(
        "vim-login-refused",
        "The VIM refuses the login: user, password, application credential or project is wrong or disabled.",
        "Correct the access data of the VIM (PUT /v1.0/vims/ID), or enable the user or the project in Keystone",
        text=r"Keystone rejects the user, password, application credential or project|has no such application credential"
        r"|the login belongs to ",
        about="Vim",
    ),
    rule(
        "vim-login-refused",
        "The Kubernetes API of the VIM does not accept its credentials.",
        "Correct the access data of the VIM (PUT /v1.0/vims/ID)",
        text=r"credentials of the VIM are not accepted|: unauthorized$",
        about="Vim",
    ),
    rule(
        "vim-login-refused",
        "The VIM refuses the login: {said}",
        "Correct the access data of the VIM (PUT /v1.0/vims/ID)",
        code="vim-unauthorized vim-access-refused cluster-unauthorized cluster-token-refused vim-token-refused vim-access-data-missing",
        text=_SAID,
        about="Vim",
    ),
    rule(
        "vim-not-trusted",
        "The TLS certificate of the VIM[, {api},] is not trusted: {said}",
        "Give the VIM its authority (cacert in PUT /v1.0/vims/ID), or correct the certificate of the cloud",
        text=rf"(?:{_OPENSTACK}(?: \((?:https?://)[^)]{{1,300}}\))?: )?the TLS certificate is not trusted: {_SAID}",
        about="Vim",
    ),
    rule(
        "vim-role-missing",
        "{api} does not allow it: the user of the VIM lacks a role in the project.",
        "Give the user of the VIM the role in the project",
        text=rf"{_OPENSTACK}: .{{0,200}}?(?:\b403\b|not authorized to perform|Policy doesn't allow|disallowed by policy)",
        about="Vim",
    ),
    rule(
        "vim-role-missing",
        "The VIM does not allow it: {said}",
        "Give the user of the VIM the permission that is named",
        code="vim-forbids",
        text=_SAID,
        about="Vim",
    ),
    rule(
        "vim-faulty",
        "{api} of the VIM reports a fault of its own: {said}",
        "Look at the service of the VIM and its log",
        text=rf"{_OPENSTACK}(?: \((?:https?://)[^)]{{1,300}}\))?: (?P<said>(?:answered )?(?:5\d\d|429)\b.{{0,250}})",
        about="Vim",
    ),
    rule(
        "vim-away",
        "{api} of the VIM does not answer: {said}",
        _LOOK,
        code="vim-unavailable vim-unreachable outside-unavailable step-timed-out",
        text=rf"{_OPENSTACK}(?: \((?:https?://)[^)]{{1,300}}\))?: {_SAID}",
        about="Vim",
    ),
    rule(
        "vim-away",
        "{api} of the VIM does not answer: {said}",
        _LOOK,
        text=rf"^{_OPENSTACK}(?: \((?:https?://)[^)]{{1,300}}\))?: (?P<said>connection refused|no answer in time|its host name cannot be resolved|no route to host|network unreachable|it (?:closed|reset) the connection.{{0,60}}|the connection failed)",
        about="Vim",
    ),
    rule(
        "vim-away",
        "The Kubernetes API at {url} does not answer: {said}",
        _LOOK,
        code="cluster-unavailable",
        text=rf"(?P<url>https?://[^\s]{{1,200}}?)(?: does not answer)?: (?:no answer since \S{{1,40}}; the last error: )?{_SAID}",
        about="Vim",
    ),
    rule(
        "vim-away",
        "The Kubernetes API at {url} does not answer: {said}",
        _LOOK,
        text=r"(?P<url>https?://[^\s]{1,200}?)(?: does not answer)?: (?P<said>no answer in time|Cannot connect to host.{1,200}|Server disconnected|connection refused)",
        about="Vim",
    ),
    rule(
        "vim-away",
        "The VIM does not answer: {said}",
        _LOOK,
        code="vim-unavailable vim-unreachable vim-too-slow cluster-unavailable",
        text=_SAID,
        about="Vim",
    ),
    rule(
        "vim-unknown",
        "The VIM of the operation is not registered.",
        "Register it under this id, or name another one in the request",
        code="vim-unknown",
        about="Vim",
        best="rollback",
    ),
    rule(
        "vim-service-missing",
        "The OpenStack lacks a service that the operation needs: {said}",
        "Install the service, or choose another region",
        code="vim-service-missing",
        text=_SAID,
        about="Vim",
    ),
    rule(
        "vim-refused",
        "The VIM refuses the request: {said}",
        "Correct what the VIM names",
        code="vim-refused cluster-refused",
        text=_SAID,
        about="Vim",
    ),
    # --- the services of this manager
    rule(
        "broker-away",
        "The message broker does not answer this gateway, so no step is sent and no result arrives.",
        "Look at RabbitMQ and at the network to it; what is stored is sent afterwards",
        code="broker-away broker-lost bus-closed",
        about="Broker",
    ),
    rule(
        "service-away",
        "The service {other} does not answer.",
        "Look at its health endpoint and its log",
        text=r"(?P<other>lcm-api|infra-openstack|infra-k8s|mgmt-executor|vim-registry|credentials-receiver) (?:does not answer|did not answer)",
        about="Service",
        named="other",
    ),
    rule(
        "service-crashes",
        "The service {service} ended three times while it worked on this step.",
        "Find out what ended it (its log, the kernel's log, its limit of memory)",
        code="handler-ended-process",
        about="Service",
        named="service",
    ),
    rule(
        "service-fault",
        "The service {service} met an error of its own.",
        "Report it with the log of the service",
        code="internal-error plan-invalid vnfm-error",
        about="Service",
        named="service",
    ),
    rule(
        "graceful-timeout",
        "The machines have time to end their work: the graceful timeout of the request ends at {until}.",
        "Wait for it; a termination with FORCEFUL would not have waited",
        text=r"the graceful timeout of the request ends at (?P<until>[\dTZ:.+-]{10,40})",
    ),
    rule(
        "cancelled",
        "A caller cancelled the operation, so it rests until it is retried, rolled back or failed.",
        "Decide how the operation ends",
        code="cancelled",
    ),
    rule(
        "suspended",
        "The VNF instance or its region is suspended for maintenance: {said}",
        "Resume it (DELETE of its suspension)",
        code="suspended",
        text=_SAID,
    ),
    rule(
        "service-away",
        "The service {service} has not answered for this step[ within {seconds} s]: is it running?",
        "Look at its health endpoint and its log",
        code="step-unanswered",
        text=r"(?:no answer within (?P<seconds>[\d.e+]{1,12}) s)?",
        about="Service",
        named="service",
        is_shallow=True,
    ),
    rule(
        "step-too-slow",
        "{title} was not done when its time was over[: {said}]",
        "Find out what it waits for, or give it more time in the request",
        code="step-timed-out timed-out",
        text=r"^(?:.{0,300}?; (?:last error|it waited): (?P<said>.{1,250}))?",
        is_shallow=True,
    ),
    rule(
        "slow",
        "{title} runs for {elapsed}, and its earlier runs took {usual}[; last report: {said}]",
        "Look at what the step works on; its log and its tasks say how far it is",
        code="slow",
        text=r"(?P<said>.{1,300})?",
        is_shallow=True,
    ),
    rule(
        "waits",
        "{title} waits: {said}",
        "Remove what it waits for",
        code="waits",
        text=_SAID,
        is_shallow=True,
    ),
)
