"""The forms that attributes of a request must have, each with the phrase that its errors use.

A form says "a Linux user name", and the error reads "a Linux user name expected". No error quotes the value, because
the value may be a secret.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from ipaddress import IPv4Network
from types import MappingProxyType
from typing import ClassVar, Final

from kubevnfm_secrets import KeyRing, Secret, UnknownKey
from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, model_validator
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from kubevnfm_cluster.ssh_keys import KeyUnusable, read_private_key

USER_NAME: Final = r"[a-z_][a-z0-9_-]{0,31}"
PASSWORD: Final = r"[^\r\n\x00]{1,1024}"  # noqa: S105  # a pattern: one line, because sudo reads the password as a line
HOST: Final = r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?"
ANY_TEXT: Final = r"(?s:.*)"
SECRET_SCHEMA: Final[Mapping[str, object]] = {"type": "string", "writeOnly": True, "format": "password"}
_NO_KEYS: Final = KeyRing([bytes(32)])
"""A secret that is not sealed is plain in memory: revealing it needs no key."""


def malformed(expected: str, *, attribute: str = "") -> PydanticCustomError:
    """Return the error of a value with the wrong type or form; ``attribute`` names a part of the value."""
    return PydanticCustomError("malformed", "{expected} expected", {"expected": expected, "attribute": attribute})


def missing(attribute: str, expected: str) -> PydanticCustomError:
    """Return the error of an object without an attribute that it needs."""
    return PydanticCustomError("absent", "missing: {expected} expected", {"expected": expected, "attribute": attribute})


@dataclass(frozen=True)
class Form:
    """Metadata of a model's field: ``check`` returns the plain form of a value, or raises ValueError."""

    expected: str
    check: Callable[[object], object]
    schema: Mapping[str, object] = field(default_factory=dict, hash=False, compare=False)
    """The same in JSON Schema, as far as it can say it; see `form_schema`."""

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        # Before pydantic's own validation, which would read the text "5" as a number and the number 1 as true.
        return core_schema.no_info_before_validator_function(self._plain, handler(source))

    def _plain(self, value: object) -> object:
        try:
            return self.check(value)
        except ValueError:
            # Without the cause: the ValueError of a library may quote the value.
            raise malformed(self.expected) from None


def text(expected: str, pattern: str = ANY_TEXT) -> Form:
    """Return the form of a text that matches the whole pattern."""

    def read(value: str) -> str:
        if not re.fullmatch(pattern, value):
            raise ValueError
        return value

    return parsed(expected, read, _matching(pattern))


def _matching(pattern: str) -> Mapping[str, object]:
    return {} if pattern == ANY_TEXT else {"pattern": f"^(?:{pattern})$"}


def parsed(expected: str, read: Callable[[str], str], schema: Mapping[str, object] = MappingProxyType({})) -> Form:
    """Return the form of a text that ``read`` returns in its plain form; it raises ValueError for another one.

    ``schema``: what JSON Schema says of the text.
    """

    def check(value: object) -> str:
        if not isinstance(value, str):
            raise ValueError
        return read(value)

    return Form(expected, check, {"type": "string", **schema})


def in_clear(value: object) -> object:
    """Return the text of a secret that is not sealed; any other value as it is."""
    if not isinstance(value, Secret):
        return value
    try:
        return value.reveal(_NO_KEYS)
    except UnknownKey:
        return value


def secret(expected: str, pattern: str = ANY_TEXT) -> Form:
    """Return the form of a secret text. A sealed one was checked before it was sealed."""

    def check(value: object) -> object:
        clear = in_clear(value)
        if isinstance(clear, str) and re.fullmatch(pattern, clear):
            return Secret(clear)
        if isinstance(clear, Secret | Mapping):  # the type Secret itself refuses an object that is no sealed value
            return clear
        raise ValueError

    return Form(expected, check, {**SECRET_SCHEMA, **_matching(pattern)})


def whole(low: int, high: int) -> Form:
    """Return the form of a whole number within bounds."""

    def check(value: object) -> int:
        # In Python, True is an int.
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise ValueError
        return value

    schema = {"type": "integer", "minimum": low, "maximum": high}
    return Form(f"a whole number from {low} to {high}", check, schema)


def one_of(*known: str) -> Form:
    """Return the form of a text out of a list."""

    def check(value: object) -> object:
        if value not in known:
            raise ValueError
        return value

    return Form(" or ".join(known), check, {"type": "string", "enum": list(known)})


def network(prefixes: range) -> Form:
    """Return the form of an IPv4 network. Host bits are masked: ``192.168.3.0/16`` is ``192.168.0.0/16``.

    A prefix length must be given, because an address alone would mean a network of one address.
    """
    lengths = f"/{prefixes.start} to /{prefixes.stop - 1}"

    def check(value: object) -> IPv4Network:
        if isinstance(value, IPv4Network):
            return value
        if not isinstance(value, str) or "/" not in value:
            raise ValueError
        found = IPv4Network(value, strict=False)
        if found.prefixlen not in prefixes:
            raise ValueError
        return found

    return Form(f"an IPv4 network such as 10.10.0.0/24 with a prefix length from {lengths}", check, {"type": "string"})


def _is_flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError
    return value


def _package_path(value: str) -> str:
    if value.startswith("/") or ".." in value.split("/"):
        raise ValueError
    if re.search(r"[\\\x00-\x1f]", value) or (path := posixpath.normpath(value)) == ".":
        raise ValueError
    return path


def array(expected: str, *, least: int = 1) -> Form:
    """Return the form of an array with so many members or more."""

    def check(value: object) -> object:
        # A tuple comes from a model that was dumped, a list from JSON.
        if not isinstance(value, list | tuple) or len(value) < least:
            raise ValueError
        return value

    return Form(expected, check, {"minItems": least} if least else {})


FLAG: Final = Form("true or false", _is_flag, {"type": "boolean"})
PACKAGE_PATH: Final = parsed("a relative path inside the package", _package_path)
"""``./Scripts/install.sh`` becomes ``Scripts/install.sh``."""
ARRAY: Final = array("an array of objects", least=0)
FILLED_ARRAY: Final = array("an array of at least one object")


@dataclass(frozen=True)
class LoginNames:
    """The attributes of a login over SSH: a user, and either a password or a private key."""

    prefix: str = ""
    is_optional: bool = False

    @property
    def username(self) -> str:
        return f"{self.prefix}username"

    @property
    def password(self) -> str:
        return f"{self.prefix}password"

    @property
    def private_key(self) -> str:
        return f"{self.prefix}private_key"

    @property
    def passphrase(self) -> str:
        return f"{self.prefix}private_key_passphrase"

    @property
    def every(self) -> tuple[str, ...]:
        """All of them."""
        return self.username, self.password, self.private_key, self.passphrase


def _check_login(given: MutableMapping[str, object], names: LoginNames) -> None:
    """Check a login. A key that is not sealed loses its passphrase, so that it is opened only once."""
    has_password, has_key = names.password in given, names.private_key in given
    if names.passphrase in given and not has_key:
        raise missing(names.private_key, "the private key of the passphrase")
    if has_password and has_key:
        raise malformed(f"only one of {names.password} and {names.private_key}", attribute=names.private_key)
    if not (has_password or has_key) and (names.username in given or not names.is_optional):
        raise missing(names.password, f"one of {names.password} and {names.private_key}")
    if (has_password or has_key) and names.username not in given:
        raise missing(names.username, "the user of the login")
    if has_key:
        _open_key(given, names)


def _open_key(given: MutableMapping[str, object], names: LoginNames) -> None:
    key, passphrase = in_clear(given[names.private_key]), in_clear(given.get(names.passphrase))
    for name, value in ((names.private_key, key), (names.passphrase, passphrase)):
        if not isinstance(value, str | Secret | Mapping | None):
            raise malformed("a text", attribute=name)
    # Sealed values were checked before they were sealed.
    if not isinstance(key, str) or not isinstance(passphrase, str | None):
        return
    try:
        given[names.private_key] = Secret(read_private_key(key, passphrase))
    except KeyUnusable as error:
        place = names.private_key if error.place == "private_key" else names.passphrase
        raise malformed(error.expected, attribute=place) from None
    given.pop(names.passphrase, None)


class Part(BaseModel):
    """An object of a request. Null and empty texts count as not given, because clients write them for "none"."""

    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True, populate_by_name=True)

    pairs: ClassVar[tuple[tuple[str, str], ...]] = ()
    """Attributes of which both must be given, or none."""
    logins: ClassVar[tuple[LoginNames, ...]] = ()
    """The logins over SSH among the attributes."""
    is_closed: ClassVar[bool] = False
    """Whether attributes that the object does not have are refused."""

    @model_validator(mode="before")
    @classmethod
    def _given(cls, value: object) -> object:
        # Built in code, such as a default: it was validated then.
        if isinstance(value, Part):
            return value
        if not isinstance(value, Mapping):
            raise malformed("an object")
        present = {name: item for name, item in value.items() if item is not None and item not in ("", Secret(""))}
        if (
            cls.is_closed
            and (unknown := next((name for name in value if name not in cls.model_fields), None)) is not None
        ):
            raise malformed(f"unknown: one of {', '.join(cls.model_fields)}", attribute=str(unknown))
        for name, attribute in cls.model_fields.items():
            # Here instead of in pydantic, whose "Field required" does not say what is expected.
            if attribute.is_required() and name not in present:
                raise missing(name, _expected(attribute))
        for pair in cls.pairs:
            absent = [name for name in pair if name not in present]
            if len(absent) == 1:
                raise missing(absent[0], f"both of {' and '.join(pair)}, or none,")
        for names in cls.logins:
            _check_login(present, names)
        return present


def _expected(field: FieldInfo) -> str:
    return next((form.expected for form in field.metadata if isinstance(form, Form)), "an object")
