"""Removes secrets from what other systems say, such as the output of machines and the messages of API servers."""

from __future__ import annotations

import json
import re
import shlex
from base64 import b64encode
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import quote, unquote, urlsplit

from kubevnfm_secrets.names import is_secret_name
from kubevnfm_secrets.secret import MASK

ANYWHERE: Final = 6
"""A secret of so many characters is masked wherever it stands, also inside a word."""
WHOLE_WORD: Final = 4
"""A shorter one only as a word of its own, otherwise ``pass`` would be masked in ``passed``. One that is shorter still
would be found everywhere, so it is masked only as the value of something with a secret name."""
_RUN: Final = 16
"""Characters of base64 that are compared with the base64 of each secret: programs wrap it, so a line has only a part."""
_BOOTSTRAP_TOKEN: Final = re.compile(r"\b[a-z0-9]{6}\.[a-z0-9]{16}\b")
"""kubeadm's join tokens, also those that were not made here (kubeadm.k8s.io/v1beta4, BootstrapToken)."""
_BASE64: Final = re.compile(rf"[A-Za-z0-9+/_-]{{{_RUN},}}={{0,2}}")
_ASSIGNED: Final = re.compile(
    r"""(?<!\w)(?P<name>[A-Za-z][\w.-]{0,127})(?P<sign>["']?\s*[=:]\s*["']?|\s+)(?P<value>[^\s"',;}\]]+)"""
)
"""``name=value``, ``name: value``, ``"name": "value"``, ``--name value``. Names start at the start of a word and are
bounded: otherwise the time for a long line would grow with the square of its length."""


class Mask:
    """A function that masks secrets in a text; more secrets can be added while it is in use."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets: set[str] = set()
        """Those that are masked wherever they stand, in every form."""
        self._words: set[str] = set()
        self._short: set[str] = set()
        self._encoded: set[str] = set()
        """The base64 of the secrets, in the alphabet of RFC 4648 clause 4."""
        self._longest_first: tuple[str, ...] | None = ()
        """All that is replaced anywhere; None if secrets were added since."""
        self._word: re.Pattern[str] | None = None
        for secret in secrets:
            self.add(secret)

    def add(self, secret: str) -> None:
        """Mask the secret from now on: the whole, each of its lines, and the password in it if it is a URL.

        A text of at least `ANYWHERE` characters is also masked in base64, alone or within a longer text, and as JSON,
        URLs and shells write it.
        """
        # Output of machines is masked line by line, so a secret of several lines, such as a private key, never appears whole.
        parts = {secret, *secret.splitlines()}
        if "://" in secret:
            # Programs print the password as it stands in the URL, or decoded.
            password = urlsplit(secret).password
            parts |= {password, unquote(password)} if password else set()
        self._short |= {part for part in parts if 0 < len(part) < WHOLE_WORD}
        self._words |= {part for part in parts if WHOLE_WORD <= len(part) < ANYWHERE}
        for part in parts:
            if len(part) >= ANYWHERE:
                self._secrets |= {part, *_escaped(part)}
                self._encoded.update(_encoded(part))
        self._longest_first = None
        self._word = None

    def __call__(self, text: str) -> str:
        """Return the text with ``***`` for every secret and every kubeadm token."""
        if self._encoded:
            text = _BASE64.sub(self._encoded_masked, text)
        for secret in self._replaced():
            text = text.replace(secret, MASK)
        if self._words:
            self._word = self._word or _pattern_of(self._words)
            text = self._word.sub(MASK, text)
        if self._short:
            text = _ASSIGNED.sub(self._assigned_masked, text)
        return _BOOTSTRAP_TOKEN.sub(MASK, text)

    def _replaced(self) -> tuple[str, ...]:
        """Return what is replaced, longest first: the rest of a secret that begins with another one would stay in clear.

        One replacement after the other is much faster than one pattern of all of them: a kubeconfig has hundreds of
        lines and forms, and compiling their pattern takes most of a second.
        """
        if self._longest_first is None:
            url_safe = {encoded.replace("+", "-").replace("/", "_") for encoded in self._encoded}
            parts = self._secrets | self._encoded | url_safe
            self._longest_first = tuple(sorted(parts, key=lambda part: (-len(part), part)))
        return self._longest_first

    def _encoded_masked(self, run: re.Match[str]) -> str:
        """Mask a part of a secret's base64; the pattern finds only a whole one."""
        plain = run[0].rstrip("=").replace("-", "+").replace("_", "/")
        return MASK if any(plain in encoded for encoded in self._encoded) else run[0]

    def _assigned_masked(self, assigned: re.Match[str]) -> str:
        is_secret = assigned["value"] in self._short and is_secret_name(assigned["name"])
        return f"{assigned['name']}{assigned['sign']}{MASK}" if is_secret else assigned[0]


def _pattern_of(words: Iterable[str]) -> re.Pattern[str]:
    # re takes the first alternative that matches.
    longest_first = sorted(words, key=lambda word: (-len(word), word))
    return re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(map(re.escape, longest_first))})(?![A-Za-z0-9])")


def _escaped(secret: str) -> set[str]:
    """Return the secret as JSON, URLs and shells write it."""
    forms = {json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1], quote(secret, safe="")}
    return forms | {quote(secret), shlex.quote(secret).strip("'")}


def _encoded(secret: str) -> Iterator[str]:
    """Yield the base64 of the secret at the three positions that it can have in a longer text.

    The first and last characters of base64 also depend on the neighbours of the secret; they are left out.
    """
    raw = secret.encode()
    for offset in range(3):
        encoded = b64encode(bytes(offset) + raw).decode()
        yield encoded[-(-offset * 8 // 6) : (offset + len(raw)) * 8 // 6]
