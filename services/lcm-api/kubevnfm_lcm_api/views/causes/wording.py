"""The sentence of a cause: ours, short, and foreign text in it bounded and quoted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from kubevnfm_kit.printable import printable

LONGEST: Final = 300
_QUOTED: Final = 140
_NAMED: Final = 100
_SPACE: Final = re.compile(r"\s+")
_ADDRESS: Final = re.compile(r"://[^\s\"']+")
_LOGIN: Final = re.compile(r"(?<=://)[^/?#]*@")
"""Up to the last @: a password may have one, too."""
_BEHIND_ADDRESS: Final = "):;,."
"""The punctuation of a sentence behind an address."""
_GO: Final = re.compile(r"rpc error: code = \w{1,40} desc = ")
"""How programs in Go begin what they quote."""
_REQUEST: Final = re.compile(
    r"\s*(?:\(HTTP \d{3}\)|\(Request-ID: [\w-]{1,80}\)|Neutron server returns request_ids: \[[^\]]{0,400}\])"
)
"""Added by clients of OpenStack: it says nothing to a reader, and is in the operation's error for a search in logs."""
_OPTION: Final = re.compile(r"\[([^\[\]]{1,100})\]")
_NAME: Final = re.compile(r"\{(\w+)\}")


def line(text: str, most: int = LONGEST) -> str:
    """Return the text on one line, without the logins and queries of its addresses, cut behind a word at ``most`` characters."""
    # Only what can be shown is read: a text of a megabyte costs no more than a short one.
    flat = _SPACE.sub(" ", printable(_SPACE.sub(" ", text[: most * 8]))).strip()
    flat = without_logins(flat)
    if len(flat) <= most:
        return flat
    cut = flat[: most - 1]
    head, space, _ = cut.rpartition(" ")
    return (head if space and len(head) > most // 2 else cut).rstrip(" ,;:") + "…"


def without_logins(text: str) -> str:
    """Return the text without the logins and queries of its addresses. Before it is cut: a part of a login is not known as one."""

    def bare(found: re.Match[str]) -> str:
        address, _, query = found[0].partition("?")
        return _LOGIN.sub("", address) + query[len(query.rstrip(_BEHIND_ADDRESS)) :]

    return _ADDRESS.sub(bare, text)


def sentence(text: str) -> str:
    """Return the text as one sentence: a capital letter, a full stop, at most `LONGEST` characters."""
    flat = line(text, LONGEST - 1)
    if not flat:
        return "No reason was reported."
    ended = flat if flat.endswith((".", "!", "?", "…")) else f"{flat}."
    first, rest = ended[:1], ended[1:]
    # Names of programs and services keep their case.
    is_name = (
        re.match(
            r"(?:kubeadm|kubelet|etcd|sshd|dpkg|cloud-init|infra-|lcm-|additionalParams|mgmt-|vim-registry|https?:)",
            ended,
        )
        is not None
    )
    return ended if is_name else first.upper() + rest


def filled(template: str, facts: Mapping[str, str]) -> str:
    """Return the template with its names in braces replaced; a part in brackets is left out if one of its names has no text."""

    def option(found: re.Match[str]) -> str:
        return found[1] if all(facts.get(name) for name in _NAME.findall(found[1])) else ""

    chosen = _OPTION.sub(option, template)
    return _NAME.sub(lambda found: facts.get(found[1], "") or "(unknown)", chosen)


def quoted(text: str) -> str:
    """Return foreign text as a quotation."""
    text = _REQUEST.sub("", _GO.sub("", text[: _QUOTED * 8]))
    flat = line(text.replace('"', "'"), _QUOTED).rstrip(" .,;:")
    if flat.endswith("]") and "[" not in flat:
        flat = flat.rstrip("]")
    return f'"{flat}"' if flat else ""


def named(text: str) -> str:
    """Return a foreign name, bounded."""
    return line(text, _NAMED).strip("'\" ,;:")


def duration(seconds: float) -> str:
    """Return a duration for people: ``45 s``, ``12 min``, ``3 h 20 min``."""
    if seconds < 1:
        return "less than 1 s"
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 90:
        return f"{minutes} min"
    hours, left = divmod(minutes, 60)
    return f"{hours} h {left} min" if left else f"{hours} h"
