"""The cause of an operation's state: the first row of the table that fits its reports."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from typing import Final

from kubevnfm_lcm_api.lifecycle.core.sequences import SEQUENCES
from kubevnfm_lcm_api.views.causes.evidence import Evidence, reports
from kubevnfm_lcm_api.views.causes.models import Cause, CauseObject
from kubevnfm_lcm_api.views.causes.rule import BEGIN, NAME, OBJECT, Rule, Task
from kubevnfm_lcm_api.views.causes.rules import TABLE
from kubevnfm_lcm_api.views.causes.situation import Situation
from kubevnfm_lcm_api.views.causes.wording import filled, named, quoted, sentence, without_logins

_PAGE: Final = "errors.md"
_WAITS: Final = "waits"
"""The code of a report without one: a handler waits by itself, and nothing has failed."""
_SLUG: Final = re.compile(r"[a-z][a-z0-9-]{0,60}")
_SEARCHED: Final = 4096
"""Characters of a report that are searched: as many as an error has."""
_BEHIND: Final = 1500
"""Characters behind what a rule has found in which the rest of it is searched."""
_MOST_REPORTS: Final = 200
"""Reports that are searched: a search takes some 50 microseconds, and an operation may have thousands of tasks."""
_REMEMBERED: Final = 512
_SUBJECT: Final = re.compile(
    rf"{BEGIN}(?!(?:Too|Invalid|Duplicate|Required|Unsupported|Internal|VNF|Machines|Property) )"
    rf"([A-Z][A-Za-z]{{1,60}}) (?:({OBJECT})/)?({OBJECT})(?: \([^)]{{1,200}}\)| \(\d+ of \d+\))?: "
)
"""How infra-k8s names an object."""
_NEXT: Final = re.compile(r", (?:warning [A-Z]\w{1,60}: |[A-Z]\w{1,60} (?:True|False|Unknown)\b)")
"""The begin of the next thing that infra-k8s says of the same object: a condition or a warning."""
_OTHER: Final = re.compile(rf"; (?=[A-Z][A-Za-z]{{1,60}} {NAME}: |{NAME} \(OS::\w{{1,40}}::\w{{1,40}}\): )")
"""The begin of what infra-k8s or Heat says of another object."""
_MOST_PARTS: Final = 10
"""Objects that are searched one by one; more take too long."""
_POD: Final = re.compile(
    rf"\bpod (?:({OBJECT})(?=: (?:container|unschedulable|held by|its node|[A-Z])| cannot start))|\bpod=({OBJECT})(?=_)"
)
_CONTAINER: Final = re.compile(rf"\bcontainer(?: ({OBJECT})(?=: [A-Z])|=({OBJECT}))")
_RESOURCE: Final = re.compile(rf"{BEGIN}({NAME}) \(OS::\w{{1,40}}::(\w{{1,40}})\): ")
_STACK: Final = re.compile(rf"\bstack (?:named )?({NAME})(?=[: ])")
_NODE: Final = re.compile(rf"\bnode ({NAME}): ")
_LATE: Final = re.compile(rf"{BEGIN}({NAME}): (?:False|Unknown) ")
_OF_PODS: Final = re.compile(r"FailedCreate: ")
"""How the controller of a workload says that a pod of it is refused."""
_OURS: Final = frozenset({"Nfvo", "Service", "Broker", "Database", "Package", "Receiver"})
"""Kinds of objects that are in no VIM."""
_WITHOUT_NAMESPACE: Final = frozenset(
    {
        "Namespace",
        "PriorityClass",
        "RuntimeClass",
        "Webhook",
        "APIService",
        "CustomResourceDefinition",
        "Node",
        "Vim",
        *_OURS,
    }
    - {"Service"}
)


def cause_of(situation: Situation) -> Cause | None:
    """Return why the operation waits, has failed or is slow; None if it goes on well, or has ended so."""
    found = [
        replace(each, text=without_logins(each.text[: 2 * _SEARCHED])[:_SEARCHED])
        for each in islice(reports(situation), _MOST_REPORTS)
    ]
    # The deepest reason counts: that something took too long is one only where nothing else is known.
    for is_shallow in (False, True):
        for each in found:
            fits = _fit(each, is_shallow)
            if fits is not None and (each.is_sign or not fits[0].is_shallow):
                return _explained(replace(each, since=_since(each, fits[0], found)), *fits, situation)
    sign = next((each for each in found if each.is_sign), None)
    return None if sign is None else _as_reported(sign)


def _since(report: Evidence, rule: Rule, found: Sequence[Evidence]) -> str | None:
    """Return when the cause began: an error comes at the end of a wait that has named it before."""
    if report.is_wait:
        return report.since
    earlier = [
        each.since
        for each in found
        if each.since
        and each.step is report.step
        and (fits := _fit(each, rule.is_shallow))
        and fits[0].slug == rule.slug
    ]
    return min(earlier, default=report.since)


def _fit(report: Evidence, is_shallow: bool) -> tuple[Rule, re.Match[str] | None] | None:
    return fitting(report.code or (_WAITS if report.is_sign else ""), report.text, is_shallow)


def best_task(cause: Cause | None) -> Task:
    """Return the task that leads on most often after this cause."""
    return "retry" if cause is None else _BEST.get((cause.code, cause.remedy or ""), "retry")


_BEST: Final[Mapping[tuple[str, str], Task]] = {(each.slug, f"{each.do}."): each.best for each in reversed(TABLE)}


@lru_cache(maxsize=_REMEMBERED)
def fitting(code: str, text: str, is_shallow: bool) -> tuple[Rule, re.Match[str] | None] | None:
    """Return the first row that fits, and what it has found in the text: in what the text says about one object."""
    parts = _OTHER.split(text, maxsplit=_MOST_PARTS)
    for rule in TABLE:
        if rule.is_shallow is not is_shallow or (rule.codes and code not in rule.codes):
            continue
        if rule.text is None:
            return rule, None
        for part in parts:
            match = rule.text.search(part)
            if match is not None and (
                rule.then is None or rule.then.search(part, match.start(), match.end() + _BEHIND)
            ):
                return rule, match
    return None


def _explained(report: Evidence, rule: Rule, match: re.Match[str] | None, situation: Situation) -> Cause:
    facts = _facts(report, rule, match)
    node = report.node or facts["node"] or None
    about = _object(rule, facts, situation)
    return Cause(
        code=rule.slug,
        text=sentence(filled(rule.says, facts)),
        object=about,
        since=report.since,
        step=report.step.id if report.step is not None else None,
        node=node,
        isWait=report.is_wait,
        remedy=f"{rule.do}.",
        page=f"{_PAGE}#{rule.slug}",
    )


def _facts(report: Evidence, rule: Rule, match: re.Match[str] | None) -> dict[str, str]:
    """Return the names that a sentence may have, and their texts."""
    text, begin, end = (report.text, 0, 0) if match is None else (match.string, match.start(), match.end())
    subject = _last(_SUBJECT, text, begin) or _SUBJECT.search(text)
    kind, namespace, name = subject.groups() if subject is not None else ("", "", "")
    whole = "a pod of " if kind and _OF_PODS.search(text, subject.end() if subject is not None else 0, begin) else ""
    pod = _last(_POD, text, end)
    pod_name = pod[1] or pod[2] if pod is not None else name if kind == "Pod" else ""
    container, resource = _last(_CONTAINER, text, end), _last(_RESOURCE, text, end)
    # The begin names the subject of the whole report.
    node, late, stack = _NODE.search(report.text), _last(_LATE, text, begin), _STACK.search(report.text)
    step = report.step
    facts = {
        "kind": kind,
        "namespace": namespace or "",
        "name": named(name),
        "thing": f"{whole}{kind} {named(name)}" if kind else "an object",
        "pod_name": named(pod_name),
        "pod": f"pod {named(pod_name)}" if pod_name else f"a pod of {kind} {named(name)}" if kind else "a pod",
        "container": f"container {named(container[1] or container[2])}" if container is not None else "a container",
        "resource_name": named(resource[1]) if resource is not None else "",
        "resource_kind": resource[2] if resource is not None else "",
        "node": named(report.node or (node[1] if node is not None else "")),
        "late": named(late[1]) if late is not None else "",
        "stack_name": named(stack[1]) if stack is not None else "",
        "service": SEQUENCES.step(step).command.service if step is not None else "lcm-api",
        "title": f'"{named(SEQUENCES.step(step).title)}"' if step is not None else "the operation",
        **report.facts,
    }
    facts["machine"] = f"machine {facts['node']}" if facts["node"] else "a machine"
    behind = rule.then.search(text, begin, end + _BEHIND) if rule.then is not None and match is not None else None
    found = {**(behind.groupdict() if behind is not None else {}), **(match.groupdict() if match is not None else {})}
    for group, value in found.items():
        if value:
            bare = group.rstrip("0123456789")
            facts[bare] = quoted(_NEXT.split(value, maxsplit=1)[0]) if bare == "said" else named(value)
            if bare == "sort":  # a kind of things
                facts[bare] = facts[bare].replace("_", " ").lower()
    if rule.words:
        seen = text[begin : end + _BEHIND]
        facts["why"] = next((words for key, words in rule.words.items() if re.search(key, seen)), "")
    return facts


def _last(pattern: re.Pattern[str], text: str, until: int) -> re.Match[str] | None:
    """Return what the pattern finds last of all that begins at ``until`` or before."""
    last = None
    for found in pattern.finditer(text):
        if found.start() > until:
            break
        last = found
    return last


def _object(rule: Rule, facts: Mapping[str, str], situation: Situation) -> CauseObject | None:
    vnf = situation.record.facts
    vim = vnf.vim_ids[0] if len(vnf.vim_ids) == 1 else None
    vim_name = situation.vim_names.get(vim) if vim is not None else None
    kind, name, namespace = filled(rule.about, facts), facts.get(rule.named, ""), facts["namespace"]
    # A kind that the report names is in its spelling: "security group", "Subnet".
    kind = "".join(word[:1].upper() + word[1:] for word in kind.split())
    if not kind and facts["kind"]:
        kind, name = facts["kind"], facts["name"]
    elif not kind and facts["resource_kind"]:
        kind, name = facts["resource_kind"], facts["resource_name"]
    elif not name and facts["kind"] == kind:
        name = facts["name"]
    elif not name:
        of_kind = {
            "Pod": facts["pod_name"],
            "Machine": facts["node"],
            "Stack": facts["stack_name"],
            "Vim": vim_name or vim or "",
            "Nfvo": "NFVO",
            "Broker": "RabbitMQ",
            "Database": "MongoDB",
            "Service": facts["service"],
            "Package": f"{named(vnf.vnf_product_name)} ({vnf.vnfd_id})" if vnf.vnf_product_name else vnf.vnfd_id,
        }
        name = of_kind.get(kind, "")
        # A pod that is not named stands for its workload, or its machine: kubeadm pulls images itself.
        if kind == "Pod" and not name:
            kind, name = (facts["kind"], facts["name"]) if facts["kind"] else ("Machine", facts["node"])
    if not kind or not name:
        return None
    in_cluster = bool(namespace) and kind not in _WITHOUT_NAMESPACE
    is_in_vim = in_cluster or kind not in _OURS
    return CauseObject(
        kind=kind,
        name=name,
        namespace=namespace if in_cluster else None,
        vimId=vim if is_in_vim else None,
        vimName=vim_name if is_in_vim else None,
    )


def _as_reported(report: Evidence) -> Cause:
    """Return the report itself as the cause: its code is in the tables of errors."""
    return Cause(
        code=report.code,
        text=sentence(report.text),
        since=report.since,
        step=report.step.id if report.step is not None else None,
        node=report.node,
        isWait=report.is_wait,
        page=f"{_PAGE}#{report.code}" if _SLUG.fullmatch(report.code) else _PAGE,
    )
