"""Quotes the words of a receiver, which may repeat the request or a part of it, without the credentials that it was sent."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from typing import Final

from kubevnfm_secrets import MASK

_RUN: Final = 12
"""So many characters in a row that also a secret has are masked: shorter runs may be words."""
_LONGEST: Final = 512
"""Characters of a quotation: it becomes part of the operation's error."""


class Quotation:
    """Masks the secrets of one request, whole or in part, also in base64."""

    def __init__(self, secrets: Iterable[str]) -> None:
        forms = {form for secret in secrets for form in (secret, b64encode(secret.encode()).decode())}
        self._runs = {form[at : at + _RUN] for form in forms for at in range(len(form) - _RUN + 1)}

    def __call__(self, text: str) -> str:
        """Return the text, masked and then cut: what is cut first could end in a part of a secret."""
        masked = [False] * len(text)
        for at in range(len(text) - _RUN + 1):
            if text[at : at + _RUN] in self._runs:
                masked[at : at + _RUN] = [True] * _RUN
        quoted: list[str] = []
        for at, character in enumerate(text):
            if not masked[at]:
                quoted.append(character)
            elif at == 0 or not masked[at - 1]:
                quoted.append(MASK)
        return "".join(quoted)[:_LONGEST]
