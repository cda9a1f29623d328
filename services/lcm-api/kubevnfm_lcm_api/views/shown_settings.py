"""The settings of the gateway as a reader may see them: never a secret, the name of a login, or the login of an address. Pure.

Every setting is shown, whatever is added to the model; by its type and name it is decided whether its value is, too.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Any, Final

from kubevnfm_kit.json_schema import attribute_docstrings
from kubevnfm_secrets import is_secret_name, shown_url
from pydantic import BaseModel

from kubevnfm_lcm_api.http.models import Shown
from kubevnfm_lcm_api.views.causes.wording import line

_LOGIN_NAMES: Final = ("user", "username", "client_id")
"""How the settings with names of logins end."""
_GROUPS: Final[Mapping[str, str]] = {
    "AccessSettings": "Authentication and limits of callers",
    "ListenerTls": "TLS",
    "OutboundSettings": "Calls to addresses that requests name",
    "CallbackSettings": "Subscribers",
    "PackageSettings": "VNF packages",
    "ArtifactSettings": "Packages that are fetched on demand",
    "GrantSettings": "NFVO",
    "LifecycleSettings": "Life cycle",
    "OnapSettings": "ONAP",
    "PageSettings": "Web page",
    "TraceSettings": "Traces",
    "VnfNetworkSettings": "Networks of VNFs",
    "ProcessSettings": "Process",
}
_OTHERS: Final = "Gateway"
_MOST: Final = 100
_LONGEST: Final = 500

Value = bool | int | float | str | list[str]


class SettingShown(Shown):
    """A setting."""

    name: str
    """As it is in ``kubevnfm.toml``; in the environment in capitals, with the prefix of the process."""
    group: str
    text: str | None = None
    """Its purpose."""
    value: Value | None = None
    """Absent: it has none, or it is hidden."""
    isSet: bool  # noqa: N815  # as it is on the wire
    """Whether it has another value than its default."""
    isHidden: bool  # noqa: N815  # as it is on the wire
    """Whether its value is a secret, or names a login."""


def shown_settings(settings: BaseModel) -> list[SettingShown]:
    """Return every setting, those of a group together."""
    model = type(settings)
    texts = attribute_docstrings(model)
    found = [_setting(settings, name, texts.get(name)) for name in model.model_fields]
    groups = [*_GROUPS.values(), _OTHERS]
    return sorted(found, key=lambda each: groups.index(each.group))


def _setting(settings: BaseModel, name: str, text: str | None) -> SettingShown:
    model, value = type(settings), getattr(settings, name)
    shown = None if _names_login(name) or is_secret_name(name) else _value(value)
    default = model.model_fields[name].get_default(call_default_factory=True, validated_data={})
    return SettingShown(
        name=name,
        group=_GROUPS.get(_owner(model, name).__name__, _OTHERS),
        text=" ".join(text.replace("``", "").split()) if text else None,
        value=shown,
        isSet=value != default,
        isHidden=shown is None and not _is_nothing(value),
    )


def _owner(model: type[BaseModel], name: str) -> type:
    return next((one for one in model.__mro__ if name in inspect.get_annotations(one)), model)


def _names_login(name: str) -> bool:
    return any(name == end or name.endswith(f"_{end}") for end in _LOGIN_NAMES)


def _is_nothing(value: object) -> bool:
    return value is None or value == "" or value == () or value == {}


def _value(value: Any) -> Value | None:
    """Return a value that can be shown; None: it has none, or it is of a type that may hold a secret."""
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping):
        value = tuple(f"{key}={each}" for key, each in value.items() if _text(each) is not None)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return list(_texts(value))
    return _text(value)


def _texts(values: Sequence[Any]) -> Iterator[str]:
    for each in values[:_MOST]:
        text = _text(each)
        if text is not None:
            yield text


def _text(value: Any) -> str | None:
    if not isinstance(value, str | Path | IPv4Network | IPv6Network):
        return None
    text = str(value)
    if "://" in text:
        # The second leaves out the logins and queries of further addresses.
        return line(shown_url(text), _LONGEST)
    return None if "@" in text else line(text, _LONGEST)
