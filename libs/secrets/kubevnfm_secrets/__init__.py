"""Secrets as a type: encrypted in documents and messages, masked everywhere else, revealed at the moment of use."""

from kubevnfm_secrets.keyring import KeyRing, UnknownKey
from kubevnfm_secrets.secret import MASK, Secret, sealing
from kubevnfm_secrets.tree import SecretParams, hide, map_secrets, mask, opened, revealed, sealed, without_secrets

__all__ = [
    "MASK",
    "KeyRing",
    "Secret",
    "SecretParams",
    "UnknownKey",
    "hide",
    "map_secrets",
    "mask",
    "opened",
    "revealed",
    "sealed",
    "sealing",
    "without_secrets",
]
