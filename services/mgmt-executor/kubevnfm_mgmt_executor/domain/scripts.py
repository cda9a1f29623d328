"""Scripts of the package: what they are given, and what is taken of their answer (sequences.md 6.5, 6.7)."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

from kubevnfm_events.base import Facts
from kubevnfm_kit.errors import VnfmError
from kubevnfm_sandbox.answers import place_of
from kubevnfm_secrets import KeyRing, Secret, hide, map_secrets, sealed
from kubevnfm_sol.vim import CREATED_BY, VimConnectionInfo
from pydantic import Field, ValidationError

_VIMS: Final = "vimConnectionInfo"
MAY_CHANGE: Final = (_VIMS, "metadata", "extensions", "vnfConfigurableProperties")
"""The attributes of the VnfInstance that a script may change, beside the metadata of instantiatedVnfInfo and its machines."""
_INFO: Final = "instantiatedVnfInfo"
_MACHINES: Final = "vnfcResourceInfo"
_INSTANCE, _DATA = "vnf_instance", "user_script_err_handling_data"
_UTF_8: Final = codecs.getincrementaldecoder("utf-8")

Path_ = tuple[str, ...]


class Edit(Facts):
    """ScriptEdit, with secrets sealed as in a message."""

    path: tuple[str, ...]
    change: dict[str, object] = Field(default_factory=dict)


class Answer(Facts):
    """ScriptAnswer, with secrets sealed as in a message: an error carries it too, and errors have no key ring."""

    edits: tuple[Edit, ...] = ()
    data: dict[str, object] = Field(default_factory=dict)


class ScriptFailed(VnfmError, code="mgmt-script-failed", title="Mgmt driver execution failed"):
    """A script of the package ended with an exit status other than 0, or its answer cannot be used."""

    def __init__(self, task: str, reason: str, *, remains: Answer | None = None) -> None:
        """``remains``: what it has answered all the same."""
        super().__init__(f"{task} failed: {reason}")
        self.remains = remains


class ScriptTimedOut(VnfmError, code="mgmt-script-timed-out", title="Mgmt driver execution failed", status=504):
    """A script of the package did not end within its time and was killed."""


@dataclass(frozen=True)
class Opening:
    """The further connections, names and files of a script that sends credentials."""

    reach: tuple[tuple[str, int], ...]
    """The addresses and ports to which it may connect."""
    names: Mapping[str, tuple[str, ...]]
    """The addresses of the names that it may look up."""
    private_files: Mapping[str, bytes] = field(repr=False)
    """Content by the environment variable that names the file."""


@dataclass(frozen=True)
class ScriptRun:
    """One run of a script."""

    file: str
    package: Path
    given: Mapping[str, Any]
    """The dictionary that the script reads as a pickle from stdin, secrets in clear."""
    folders: Mapping[str, Path]
    reach: tuple[tuple[str, int], ...]
    """The addresses and ports to which it may connect; port 0: any."""
    timeout_s: float
    driver_class: str = ""
    """The class of the file that runs the phase, as a driver of Tacker's v1; empty: the file itself is run."""
    opening: Opening | None = None
    """None: the script sends no credentials."""


@dataclass(frozen=True)
class ScriptOutcome:
    """How it ended."""

    status: int
    output: bytes
    """The end of its stderr."""
    stdout: bytes
    """The end of what it printed, if it was killed."""
    timed_out: bool
    value: object
    """The object whose pickle stdout is."""
    unreadable: str
    """Why stdout, if it is not empty, is no pickle of plain values. Text of the package's code."""
    refused: str = ""
    """Why what its process answered is not accepted; a text of ours."""


@dataclass(frozen=True)
class Granted:
    """The addresses of a VNF that its code may have."""

    reach: tuple[tuple[str, int], ...]
    """Addresses and ports to connect to; port 0: any."""
    refused: tuple[str, ...]
    """For each of the others, its text and why it is refused."""


class Grants(Protocol):
    """Judges the addresses that a package chooses, with the facts of now. Raises OutsideUnavailable if they are not known."""

    async def granted(self, addresses: Sequence[str], port: int | None = None) -> Granted:
        """Return which of the addresses are granted; ``port`` None: for a script, which connects to ports of its choice."""
        ...

    async def refusal_of_url(self, url: str) -> str:
        """Return why the host of the URL is refused; empty: it is granted. Raises OSError if its name cannot be resolved."""
        ...


class Scripts(Protocol):
    """Runs scripts apart from the service."""

    async def run(self, run: ScriptRun, *, when_cancelled: Callable[[ScriptOutcome], None]) -> ScriptOutcome:
        """Run the script. Raises SandboxUnavailable, ScriptRefused.

        ``when_cancelled`` gets what the script has said until the caller is cancelled.
        """
        ...


def with_access(given: Mapping[str, Any], vim_key: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the script gets, with attributes of an entry of the instance's vimConnectionInfo."""
    instance = given[_INSTANCE]
    vims = instance.get("vimConnectionInfo") or {}
    changed = {**vims, vim_key: {**(vims.get(vim_key) or {}), **entry}}
    return {**given, _INSTANCE: {**instance, "vimConnectionInfo": changed}}


def is_text(stdout: bytes) -> bool:
    """Return whether stdout is a text that the script has printed. Tacker ignores it too."""
    # A pickle of any protocol since 2 begins with a byte that no UTF-8 text has. A long text is cut within a character.
    try:
        return "\0" not in _UTF_8().decode(stdout)
    except UnicodeDecodeError:
        return False


def read_answer(
    value: object, given: Mapping[str, Any], ring: KeyRing, *, marked: frozenset[str], vim_id: str | None = None
) -> Answer:
    """Return what the script has changed, and what it wants to keep.

    ``given``: what it got, in clear. ``marked``: texts that were secret there. ``vim_id``: the VIM that it has created, of
    which its own entry is left out. Attributes that Tacker does not read are ignored as there. An entry of a VIM that is there stays as
    it is, but for that of the cluster that the package has built, which may be taken out; another one is for a VIM that no one has registered.

    Raises: ValueError with the attribute that a script may not change, or that is malformed.
    """
    if value is None:
        return Answer()
    if not isinstance(value, Mapping):
        raise ValueError(f"a dict or nothing expected on stdout, not {type(value).__name__}")
    data = value.get(_DATA, {})
    if not isinstance(data, Mapping):
        raise ValueError(f"{_DATA}: a dict expected")
    _check_names(data, (_DATA,))
    edits: list[Edit] = []
    answered = value.get(_INSTANCE)
    if answered is not None:
        if not isinstance(answered, Mapping):
            raise ValueError(f"{_INSTANCE}: a dict expected")
        # Once for all edits: a script can make as many of them, and of machines, as its answer has room for.
        plain, hidden = _by_id(answered), _by_id(_hidden(answered, marked))
        entries: set[Path_] = set()
        for path in _edited(_by_id(given[_INSTANCE]), plain):
            _check(path, answered)
            if path[0] == _VIMS and path[:2] not in entries:
                entries.add(path[:2])
                _check_form(path, answered)
            if vim_id is not None and _is_entry_of(vim_id, path, answered):
                continue
            if path[0] == _VIMS:
                _check_entry(path, answered, given)
            _check_names(dict.fromkeys(path), (_INSTANCE,))
            _check_names(_value_at(plain, path), (_INSTANCE, *path))
            value = _value_at(hidden, path)
            # Without a value it is absent, as in what the script was given.
            edits.append(Edit(path=path, change={} if value is None else {"value": sealed(value, ring)}))
    return Answer(edits=tuple(edits), data=sealed(_hidden(data, marked), ring))


def _is_entry_of(vim_id: str, path: Path_, answered: Mapping[str, Any]) -> bool:
    """Return whether the path is an entry for the VIM: the registration adds one that is complete."""
    if path[0] != _VIMS or len(path) < 2:
        return False
    entry = (answered.get(path[0]) or {}).get(path[1])
    return isinstance(entry, Mapping) and entry.get("vimId") == vim_id


def _hidden(tree: Any, marked: frozenset[str]) -> Any:
    """Return the tree with its secrets hidden: those with a secret name, and those that were secret when they were given."""

    def hide_known(node: Any) -> Any:
        if isinstance(node, Mapping):
            return {name: hide_known(one) for name, one in node.items()}
        if isinstance(node, list | tuple):
            return [hide_known(one) for one in node]
        return Secret(node) if isinstance(node, str) and node in marked else node

    return hide_known(hide(tree))


def _by_id(instance: Any) -> dict[str, Any]:
    """Return the instance with its machines as a mapping by id."""
    info = instance.get(_INFO)
    if not isinstance(info, Mapping):
        return dict(instance)
    machines = info.get(_MACHINES) or ()
    by_id = {str(one.get("id")): one for one in machines if isinstance(one, Mapping)}
    return {**instance, _INFO: {**info, _MACHINES: by_id}}


def _edited(before: Any, after: Any, path: Path_ = ()) -> Iterator[Path_]:
    """Yield the paths of the values that differ, as deep as both are objects."""
    for name in {**before, **after}:
        here = (*path, name)
        old, new = before.get(name), after.get(name)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            yield from _edited(old, new, here)
        elif not _is_same(old, new):
            yield here


def _is_same(old: object, new: object) -> bool:
    # Attributes without a value are absent in what the script gets.
    if not old and not new and not isinstance(old, int) and not isinstance(new, int):
        return True
    return old == new


def _check(path: Path_, answered: Mapping[str, Any]) -> None:
    """Raise ValueError if the script may not change the value there, or has left it malformed."""
    top = path[0]
    may = top in MAY_CHANGE
    may = may or path[:2] == (_INFO, "metadata")
    may = may or (path[:2] == (_INFO, _MACHINES) and path[3:4] == ("metadata",))
    if not may:
        raise ValueError(f"{_INSTANCE}: a script may not change {place_of(path)}")
    if top not in MAY_CHANGE:
        return
    if not isinstance(answered.get(top) or {}, Mapping):
        raise ValueError(f"{_INSTANCE}/{top}: a dict expected")


def _check_form(path: Path_, answered: Mapping[str, Any]) -> None:
    """Raise ValueError if the entry of a VIM that the path is in has been left malformed."""
    if len(path) > 1 and path[1] in answered.get(_VIMS, {}):
        try:
            VimConnectionInfo.model_validate(answered[_VIMS][path[1]])
        except ValidationError:
            raise ValueError(f"{_INSTANCE}/{place_of(path[:2])}: a VimConnectionInfo expected") from None


def _check_entry(path: Path_, answered: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Raise ValueError for a change of an entry that is there, and for a new one of a VIM that the operation does not have.

    With the endpoint of an entry a script would have the VIM's stored password sent to a server of its own; with the id of a
    registered VIM its instance would be on a VIM that no request has named.
    """
    instance = given[_INSTANCE]
    present, after = instance.get(_VIMS) or {}, answered.get(_VIMS) or {}
    for key in path[1:2] or present:
        if key in present:
            is_own = (present[key].get("extra") or {}).get(CREATED_BY) == instance["id"]
            if key in after or not is_own:
                raise ValueError(
                    f"{_INSTANCE}: a script may not change {place_of(path)}: an entry of a VIM stays as it is"
                )
            continue
        vim_id = VimConnectionInfo.model_validate(after[key]).vim_id
        asked = (given.get("request") or {}).get(_VIMS) or {}
        if vim_id is not None and vim_id not in {one.get("vimId") for one in (*present.values(), *asked.values())}:
            raise ValueError(
                f"{_INSTANCE}/{_VIMS}/{place_of((key,))}/vimId: neither the request nor the instance names VIM {place_of((vim_id,))}"
            )


def _check_names(tree: object, place: Path_) -> None:
    """Raise ValueError for a name that begins with ``$``: these are reserved for sealed secrets and for the database.

    A sealed secret that the script has made up could not be opened, and every later step that reads the instance would fail.
    """
    if isinstance(tree, list | tuple):
        for one in tree:
            _check_names(one, place)
    elif isinstance(tree, Mapping):
        for name, value in tree.items():
            if str(name).startswith("$"):
                raise ValueError(f"{place_of((*place, str(name)))}: a name may not begin with $")
            _check_names(value, (*place, str(name)))


def _value_at(tree: Any, path: Path_) -> Any:
    """Return the value there; None if there is none."""
    for name in path:
        if not isinstance(tree, Mapping) or name not in tree:
            return None
        tree = tree[name]
    return tree


def secrets_in(tree: Any, reveal: Callable[[Secret], str]) -> frozenset[str]:
    """Return the tree's secrets in clear."""
    found: set[str] = set()
    map_secrets(tree, lambda secret: found.add(reveal(secret)))
    return frozenset(found)
