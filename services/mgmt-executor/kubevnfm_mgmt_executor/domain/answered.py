"""The form of what a script or a driver class of the package returns, before its content is judged (scripts.py, driver_vims.py)."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

_Id = Annotated[str, Field(max_length=255)]


class _Foreign(BaseModel):
    """Attributes that are not named here are compared with those that the script was given, or ignored as Tacker does (sequences.md 6.5)."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True)


class _Machine(_Foreign):
    """An entry of vnfcResourceInfo."""

    id: _Id | None = None
    metadata: dict[str, Any] | None = None


class _Info(_Foreign):
    """``instantiatedVnfInfo``."""

    metadata: dict[str, Any] | None = None
    vnfcResourceInfo: list[_Machine] | None = None  # noqa: N815 - SOL003's name


class _Instance(_Foreign):
    """A VnfInstance, or the part of it that the script has changed."""

    vimConnectionInfo: dict[_Id, dict[str, Any]] | None = None  # noqa: N815 - SOL003's name
    metadata: dict[str, Any] | None = None
    extensions: dict[str, Any] | None = None
    vnfConfigurableProperties: dict[str, Any] | None = None  # noqa: N815 - SOL003's name
    instantiatedVnfInfo: _Info | None = None  # noqa: N815 - SOL003's name


class Answered(_Foreign):
    """The dictionary whose pickle a script writes to stdout."""

    vnf_instance: _Instance | None = None
    user_script_err_handling_data: dict[str, Any] = Field(default_factory=dict)
    vim: dict[str, Any] | None = None
    """The VIM that a driver class creates."""
