"""Removes secrets from the output of machines, line by line, before any of it is stored."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import unquote, urlsplit

from kubevnfm_secrets import MASK

SHORTEST: Final = 3
"""A shorter text would be found everywhere, and masking it would protect nothing."""
_BOOTSTRAP_TOKEN: Final = re.compile(r"\b[a-z0-9]{6}\.[a-z0-9]{16}\b")
"""kubeadm's join tokens, also those that were not made here (kubeadm.k8s.io/v1beta4, BootstrapToken)."""


class Mask:
    """The secrets of one phase; more can be added while it runs."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets: set[str] = set()
        self._pattern: re.Pattern[str] | None = None
        for secret in secrets:
            self.add(secret)

    def add(self, secret: str) -> None:
        """Mask the secret from now on: the whole, each of its lines, and the password in it if it is a URL."""
        # Output is masked line by line, so a secret of several lines, such as a private key, never appears whole.
        parts = {secret, *secret.splitlines()}
        if "://" in secret:
            # Programs print the password as it stands in the URL, or decoded.
            password = urlsplit(secret).password
            parts |= {password, unquote(password)} if password else set()
        self._secrets |= {part for part in parts if len(part) >= SHORTEST}
        # re takes the first alternative that matches. If a short secret is the beginning of a longer one, the rest of
        # the longer one would stay in clear.
        longest_first = sorted(self._secrets, key=lambda part: (-len(part), part))
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def __call__(self, text: str) -> str:
        """Return the text with ``***`` for every secret and every kubeadm token."""
        if self._pattern is not None:
            text = self._pattern.sub(MASK, text)
        return _BOOTSTRAP_TOKEN.sub(MASK, text)
