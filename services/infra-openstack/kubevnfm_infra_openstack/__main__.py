"""Runs infra-openstack until it is told to end."""

from __future__ import annotations

from kubevnfm_kit.logging import configure_logging
from kubevnfm_kit.run import run_until_signal

from kubevnfm_infra_openstack.settings import Settings
from kubevnfm_infra_openstack.wiring import standalone

if __name__ == "__main__":
    settings = Settings()
    configure_logging("infra-openstack", level=settings.log_level, form=settings.log_form)
    run_until_signal(standalone(settings))
