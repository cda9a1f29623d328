"""Secrets as a type: encrypted in documents and messages, masked everywhere else, revealed at the moment of use."""

from kubevnfm_secrets.keyring import KeyRing, UnknownKey
from kubevnfm_secrets.masking import Mask
from kubevnfm_secrets.names import is_secret_name
from kubevnfm_secrets.secret import MASK, Secret, is_mask, sealing
from kubevnfm_secrets.tree import (
    SECRET_NAMES,
    SecretParams,
    hidden_names,
    hide,
    listed_names,
    map_secrets,
    mask,
    opened,
    revealed,
    sealed,
    without_secrets,
)
from kubevnfm_secrets.urls import shown_url

__all__ = [
    "MASK",
    "SECRET_NAMES",
    "KeyRing",
    "Mask",
    "Secret",
    "SecretParams",
    "UnknownKey",
    "hidden_names",
    "hide",
    "is_mask",
    "is_secret_name",
    "listed_names",
    "map_secrets",
    "mask",
    "opened",
    "revealed",
    "sealed",
    "sealing",
    "shown_url",
    "without_secrets",
]
