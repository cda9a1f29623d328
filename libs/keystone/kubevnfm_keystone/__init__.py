"""Logs in to an OpenStack: reads access data, opens sessions, chooses the region, and explains failures."""

from kubevnfm_keystone.access_rules import AccessRule, RulesForbid, check_rules, refusal_of
from kubevnfm_keystone.application_credentials import ApplicationCredential, ApplicationCredentials
from kubevnfm_keystone.catalogue import OPTIONAL, REQUIRED, TITLES, Catalogue, CatalogueLacks
from kubevnfm_keystone.counted_session import OpenstackMetrics
from kubevnfm_keystone.failures import UNREADABLE, Failure, NotKeystone, failure_of
from kubevnfm_keystone.identity import OtherIdentity, check_identity
from kubevnfm_keystone.login import KeystoneLogin, read_login
from kubevnfm_keystone.session import KeystoneSession

__all__ = [
    "OPTIONAL",
    "REQUIRED",
    "TITLES",
    "UNREADABLE",
    "AccessRule",
    "ApplicationCredential",
    "ApplicationCredentials",
    "Catalogue",
    "CatalogueLacks",
    "Failure",
    "KeystoneLogin",
    "KeystoneSession",
    "NotKeystone",
    "OpenstackMetrics",
    "OtherIdentity",
    "RulesForbid",
    "check_identity",
    "check_rules",
    "failure_of",
    "read_login",
    "refusal_of",
]
