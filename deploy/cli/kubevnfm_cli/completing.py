"""The possible next words of a command line: verbs, options, nouns, names of contexts, ids and names that exist now."""

from __future__ import annotations

import importlib
import queue
import re
import threading
from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from kubevnfm_cli import plugins
from kubevnfm_cli.commands import VERBS

if TYPE_CHECKING:
    from kubevnfm_cli.call import Parser

LIMIT_S: Final = 1.0
"""The longest time for what the gateway knows."""
_MOST: Final = 200
_SAFE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,127}")
"""A word that means nothing else to a shell; others are not offered, as names come from anyone."""
_OF_VNF: Final = ("instantiate", "scale", "heal", "operate", "change-package", "modify", "terminate", "drift")
_OF_OPERATION: Final = ("retry", "rollback", "fail", "cancel", "wait", "watch", "why", "logs", "trace")
_OF_SEVERAL: Final = ("get", "delete", "describe", "why")
_WITH_NOUN: Final = ("get", "describe", "delete", "create")
_IMPOSSIBLE: Final = {
    ("create", "op"), ("create", "alarm"), ("create", "automatic-action"), ("delete", "op"), ("delete", "alarm"),
}  # fmt: skip
"""An operation is not created, but started by verbs of its own; an automatic action is asked for by others."""
_WORDS: Final[Mapping[str, Sequence[str]]] = {
    "config": ("view", "use-context", "set-context", "delete-context"),
    "completion": ("bash", "zsh", "fish"),
}
_VALUES: Final[Mapping[str, str]] = {
    "--package": "pkg", "--instance": "vnf", "--vim": "vim", "--vnf": "vnf", "--op": "op",
}  # fmt: skip
"""The kind of things that an option names."""


def candidates(words: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """Return what the last word could become; the others are before it. Nothing is raised, and nothing printed."""
    before, begun = list(words[:-1]), words[-1] if words else ""
    found = dict.fromkeys(each for each in _all(before, begun, environment) if each.startswith(begun))
    return [each for each in found if _SAFE.fullmatch(each.lstrip("-").rstrip("="))]


def _all(before: Sequence[str], begun: str, environment: Mapping[str, str]) -> Iterable[str]:
    previous = before[-1] if before else ""
    if previous in ("-o", "--output"):
        from kubevnfm_cli.output import KINDS

        return (*KINDS, "jsonpath=")
    if previous == "--context":
        return _contexts(environment)
    verb = next((word for word in before if word in VERBS), None)
    if verb is None:
        is_first = not [word for word in before if not word.startswith("-")]
        if before == ["help"]:
            return VERBS
        return ["help", *VERBS, *plugins.names(environment)] if is_first or previous.startswith("-") else ()
    if begun.startswith("-"):
        return _options(verb)
    if previous in _VALUES:
        return _live(_VALUES[previous], before, environment)
    valued = _with_value(verb)
    if previous in valued:
        return ()  # a file, which the shell knows, or any text
    return _arguments(verb, _given(before[before.index(verb) + 1 :], valued), begun, before, environment)


def _given(words: Sequence[str], valued: set[str]) -> list[str]:
    """Return the words that are neither options nor their values; ``valued``: the options that have one."""
    return [
        word
        for place, word in enumerate(words)
        if not word.startswith("-") and (place == 0 or words[place - 1] not in valued)
    ]


def _arguments(
    verb: str, given: Sequence[str], begun: str, before: Sequence[str], environment: Mapping[str, str]
) -> Iterable[str]:
    if verb in _WORDS:
        is_name = verb == "config" and len(given) == 1
        return _contexts(environment) if is_name else _WORDS[verb] if not given else ()
    if verb == "explain":
        from kubevnfm_cli.verbs.explain import KINDS, OPERATIONS, SITE

        if given:
            return _live("pkg", before, environment) if given[0] in OPERATIONS and len(given) == 1 else ()
        return (SITE, *KINDS, *OPERATIONS)
    if verb == "ack":
        return _live("alarm", before, environment)
    if verb in _OF_VNF:
        states = ("start", "stop") if verb == "operate" and len(given) == 1 else ()
        return states if given else _live("vnf", before, environment)
    if verb not in (*_WITH_NOUN, *_OF_OPERATION):
        return ()
    return _things(verb, given, begun, before, environment)


def _things(
    verb: str, given: Sequence[str], begun: str, before: Sequence[str], environment: Mapping[str, str]
) -> Iterable[str]:
    """Return nouns, and what there is of one: behind it as a word, or behind its slash."""
    from kubevnfm_cli.nouns import NOUNS, WORDS

    names = [noun.name for noun in NOUNS if (verb, noun.name) not in _IMPOSSIBLE]
    known = ("op", "vnf") if verb in _OF_OPERATION else names
    word, slash, _ = (given[0] if given else begun).partition("/")
    noun = WORDS[word].name if word in WORDS else ""
    if slash and not given:
        return [f"{word}/{one}" for one in _live(noun, before, environment)] if noun in known else ()
    if not given:
        return (*known, *(_live("op", before, environment) if verb in _OF_OPERATION else ()))
    if noun not in known or slash or verb == "create":
        return ()
    is_last = verb not in _OF_SEVERAL and len(given) > 1
    return () if is_last else _live(noun, before, environment)


def _parser(verb: str) -> Parser:
    from kubevnfm_cli.call import Parser

    parser = Parser(verb, VERBS[verb].summary)
    importlib.import_module(VERBS[verb].module).arguments(parser)
    return parser


def _with_value(verb: str) -> set[str]:
    """Return the options of a verb that a value follows."""
    return {option for action in _parser(verb)._actions if action.nargs != 0 for option in action.option_strings}


def _options(verb: str) -> Iterable[str]:
    return [option for action in _parser(verb)._actions for option in action.option_strings if option.startswith("--")]


def _contexts(environment: Mapping[str, str]) -> Iterable[str]:
    from kubevnfm_cli import contexts
    from kubevnfm_cli.faults import Fault

    try:
        return list(contexts.read_contexts(contexts.config_path(environment)).by_name)
    except Fault:
        return ()


def _live(noun: str, before: Sequence[str], environment: Mapping[str, str]) -> Iterable[str]:
    """Return ids and names that the gateway has, if it answers in time."""
    answer: queue.Queue[list[str]] = queue.Queue()

    def ask() -> None:
        try:
            answer.put(_asked(noun, before, environment))
        except Exception:  # noqa: BLE001  # a completion that fails offers nothing, whatever the reason
            answer.put([])

    # A thread that does not end does not keep the process.
    threading.Thread(target=ask, daemon=True).start()
    try:
        return answer.get(timeout=LIMIT_S)
    except queue.Empty:
        return ()


def _asked(noun_name: str, before: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    from kubevnfm_cli import lists
    from kubevnfm_cli.call import gateway_of
    from kubevnfm_cli.nouns import noun_of

    noun = noun_of(noun_name)
    chosen = Namespace(
        context=_value(before, "--context"),
        url=_value(before, "--url"),
        insecure_skip_tls_verify="--insecure-skip-tls-verify" in before,
    )
    gateway = gateway_of(environment, chosen)
    items = lists.read_list(gateway, noun, {}, _MOST).items
    names = [str(name) for one in items if (name := noun.name_of(one))]
    return [*names, *(str(noun.table.id_of(one)) for one in items)]


def _value(words: Sequence[str], option: str) -> str | None:
    place = max((index for index, word in enumerate(words) if word == option), default=None)
    return words[place + 1] if place is not None and place + 1 < len(words) else None
