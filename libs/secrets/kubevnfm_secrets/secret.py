"""One secret value: plain in memory or sealed, never shown by accident."""

from __future__ import annotations

import hmac
from collections.abc import Collection
from typing import Any, Self

from kubevnfm_kit.json_types import JsonObject
from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, SerializationInfo
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from kubevnfm_secrets.keyring import KeyRing

MASK = "***"
SEALED_KEY = "$sealed"
_RING = "kubevnfm_key_ring"
_NAMES = "kubevnfm_secret_names"


def sealing(ring: KeyRing, names: Collection[str] = ()) -> JsonObject:
    """Return the context for ``model_dump(mode="json", context=...)`` under which secrets are sealed, not masked.

    In KeyValuePairs (`SecretParams`) the values under these ``names`` are sealed too.
    """
    return {_RING: ring, _NAMES: frozenset(names)}


def ring_of(info: SerializationInfo) -> KeyRing | None:
    """Return the key ring of a serialisation that seals, None of one that masks."""
    ring = (info.context or {}).get(_RING)
    return ring if isinstance(ring, KeyRing) else None


def names_of(info: SerializationInfo) -> frozenset[str]:
    """Return the further secret names of a serialisation that seals."""
    names = (info.context or {}).get(_NAMES)
    return names if isinstance(names, frozenset) else frozenset()


def is_mask(value: object) -> bool:
    """Return whether a value is what is shown in place of a secret: a client has sent back what it has read."""
    return value == MASK or (isinstance(value, Secret) and value == Secret(MASK))


class Secret:
    """A password, token, key or kubeconfig.

    Printing, formatting, logging and plain serialising show ``***``. Documents and messages are written under
    ``sealing(ring)`` and hold ``{"$sealed": "v1..."}``. Only ``reveal`` gives the value.
    """

    __slots__ = ("_plain", "_sealed")

    def __init__(self, plain: str) -> None:
        self._plain: str | None = plain
        self._sealed: str | None = None

    @classmethod
    def from_sealed(cls, sealed: str) -> Self:
        """Wrap a text that a key ring sealed; it is opened when it is used."""
        secret = cls("")
        secret._plain, secret._sealed = None, sealed
        return secret

    @property
    def characters(self) -> int:
        """About how long the value is: the length of the form that it has at present, in clear or sealed."""
        return len(self._plain if self._plain is not None else self._sealed or "")

    def reveal(self, ring: KeyRing) -> str:
        """Return the value. Raises UnknownKey when the ring lacks the key it was sealed with."""
        if self._plain is not None:
            return self._plain
        assert self._sealed is not None
        return ring.open(self._sealed)

    def seal(self, ring: KeyRing) -> str:
        """Return the sealed text; one already sealed is kept as it is."""
        if self._sealed is not None:
            return self._sealed
        assert self._plain is not None
        return ring.seal(self._plain)

    def document(self, ring: KeyRing) -> dict[str, str]:
        """Return the JSON form that documents and messages hold."""
        return {SEALED_KEY: self.seal(ring)}

    def __repr__(self) -> str:
        return f"Secret('{MASK}')"

    def __str__(self) -> str:
        return MASK

    def __format__(self, spec: str) -> str:
        return format(MASK, spec)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        # In constant time, so that a comparison does not show how much of a secret was right.
        if self._plain is not None and other._plain is not None:
            return hmac.compare_digest(self._plain.encode(), other._plain.encode())
        # Two seals of one text differ by their nonces: without the ring only the same sealed text is known to be equal.
        return self._sealed is not None and self._sealed == other._sealed

    def __hash__(self) -> int:
        return hash((self._plain, self._sealed))

    def __reduce__(self) -> Any:
        # Pickle would write the plain value to a place that masks nothing.
        raise TypeError("a Secret is not pickled: seal it or reveal it")

    @classmethod
    def _from_json(cls, value: Any) -> Secret:
        if isinstance(value, Secret):
            return value
        if isinstance(value, str):
            return cls(value)
        if isinstance(value, dict) and set(value) == {SEALED_KEY} and isinstance(value[SEALED_KEY], str):
            return cls.from_sealed(value[SEALED_KEY])
        raise ValueError("a text expected")  # never with the value: it would end up in the error

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        def write(secret: Secret, info: SerializationInfo) -> Any:
            ring = ring_of(info)
            if ring is not None:
                return secret.document(ring)
            return MASK if info.mode == "json" else secret

        return core_schema.no_info_plain_validator_function(
            cls._from_json, serialization=core_schema.plain_serializer_function_ser_schema(write, info_arg=True)
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {
            "type": "object",
            "description": "a secret, sealed with the key ring (AES-256-GCM)",
            "properties": {SEALED_KEY: {"type": "string"}},
            "required": [SEALED_KEY],
        }
