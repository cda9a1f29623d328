"""The names under which attributes hold secrets: a rule over the words of a name."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
"""The words of ``snake_case``, ``kebab-case``, ``camelCase`` and ``HTTPHeader``; digits separate words too."""

_SECRETS: Final = frozenset(
    {
        "pass", "pwd", "pw", "pswd", "passwd", "password", "passphrase", "passcode", "psk", "secret", "token", "credential",
        "kubeconfig", "otp", "puk", "authkey", "passkey", "keytab", "htpasswd",
    }
)  # fmt: skip
"""Words that say secret wherever they stand in a name, also in the plural."""
_IN_A_WORD: Final = re.compile(
    r"passw(or)?d|passphrase|secret|credential|kubeconfig|(token|pwd|psk|pw|(?<!by)(?<!com)(?<!sur)(?<!tres)(?<!over)pass)$"
    r"|(private|priv|client|certificate|cert|access|api|secret|shared|sign(ing)?|encryption|auth|master|session|ssh)key$"
)
"""The same in words that are written together: ``dbpassword``, ``adminpass``, ``apikey``."""
_SIGN: Final = re.compile(r"pass|p[sw]|secret|token|credential|kubeconfig|otp|puk|key", re.IGNORECASE)
"""A part of each of these words: most names have none, and a request may have hundreds of thousands."""
_KINDS_OF_KEYS: Final = frozenset(
    {
        "private", "priv", "client", "certificate", "cert", "access", "api", "secret", "shared", "signing", "encryption",
        "decryption", "auth", "authentication", "master", "session", "ssl", "tls", "hmac", "symmetric", "wpa", "ssh", "root",
    }
)  # fmt: skip
"""A key of these kinds is secret; a ``key`` alone names an entry, and a public one is public."""
_ABOUT_A_SECRET: Final = frozenset(
    {
        "policy", "url", "uri", "urls", "endpoint", "host", "port", "length", "size", "len", "type", "kind", "format", "expiry",
        "expires", "expire", "expiration", "ttl", "lifetime", "validity", "timeout", "name", "names", "id", "ids", "uuid",
        "ref", "reference", "count", "number", "enabled", "disabled", "required", "needed", "rotation", "age", "path", "paths", "file",
        "files", "dir", "folder", "mode", "method", "algorithm", "hint", "through", "thru", "store", "manager", "provider",
        "issuer", "audience", "scope", "scopes", "version", "status", "state", "at", "date", "time", "created", "updated",
        "changed", "complexity", "strength", "usage", "per", "rate", "login", "authentication", "request",
    }
)  # fmt: skip
"""After the secret word: the attribute is about a secret and is none (``token_url``, ``password_policy``)."""
_QUANTITIES: Final = frozenset({"max", "min", "maximum", "minimum", "num", "number"})


@lru_cache(maxsize=8192)
def is_secret_name(name: str) -> bool:
    """Return whether an attribute of this name holds a secret.

    It does if one of its words says so (``admin_pass``, ``dbPwd``, ``psk2``, ``root_password_value``), and no later word
    says that it is only about one. A name that is not recognised can be listed in the request (``tree.SECRET_NAMES``).
    """
    # Names come from requests: the time for a long one must stay small.
    if _SIGN.search(name, 0, 256) is None:
        return False
    words = [word.lower() for word in _WORDS.findall(name[:256])]
    if words and words[0] in _QUANTITIES:
        return False
    found = [index for index in range(len(words)) if _says_secret(words, index)]
    return bool(found) and not _ABOUT_A_SECRET.intersection(words[found[-1] + 1 :])


def _says_secret(words: list[str], index: int) -> bool:
    word = words[index]
    single = word.removesuffix("s") if not word.endswith("ss") else word
    if single in _SECRETS or (not word.endswith("less") and _IN_A_WORD.search(single)):
        return True
    return single == "key" and index > 0 and words[index - 1] in _KINDS_OF_KEYS
