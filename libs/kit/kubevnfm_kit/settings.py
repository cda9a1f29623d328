"""What every service's settings share: frozen, from the environment (and a file, where one is named), checked at once."""

from __future__ import annotations

import logging
import sys
from typing import Self

from pydantic import ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict


class ServiceSettings(BaseSettings):
    """Base of a service's ``Settings``; a subclass sets ``env_prefix="KUBEVNFM_<SERVICE>_"`` in its model_config."""

    model_config = SettingsConfigDict(frozen=True, extra="ignore", use_attribute_docstrings=True, env_file=None)

    @field_validator("log_level", check_fields=False)
    @classmethod
    def _is_a_level(cls, given: str) -> str:
        if given.upper() not in logging.getLevelNamesMapping():
            raise ValueError("DEBUG, INFO, WARNING or ERROR expected")
        return given

    @classmethod
    def read_or_exit(cls) -> Self:
        """Return the settings; ends the process with one line on stderr and code 1 when they cannot be used.

        The line names each variable and what is wrong with it, never its value: that may be a secret.
        """
        try:
            return cls()
        except ValidationError as error:
            prefix = cls.model_config.get("env_prefix", "")
            found = [f"{prefix}{'.'.join(map(str, one['loc']))}".upper() + f": {one['msg']}" for one in error.errors()]
            sys.exit("; ".join(found))
