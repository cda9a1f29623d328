"""The systems that measure a job or threshold: the site's Prometheus, or those that its request names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

import structlog
from kubevnfm_clients.outbound import AddressNotAllowed, AddressRules
from kubevnfm_kit.errors import Unprocessable, VnfmError
from kubevnfm_kit.json_types import JsonMapping

from kubevnfm_lcm_api.measurement_sources import SITE, shown_address
from kubevnfm_lcm_api.performance.domain.monitoring import Monitoring
from kubevnfm_lcm_api.performance.domain.ports import Measurer, MeasurerUnavailable

log = structlog.get_logger()

POD_METRICS: Final = "metrics.k8s.io"
"""Stands for the clusters themselves: they are sampled (`pod_sampling`)."""
_MOST_OUTAGES: Final = 1000


@dataclass
class Sources:
    """Finds the measurers."""

    site: Measurer | None
    """None: the settings name none."""
    named: Callable[[str], Measurer]
    """Returns the measurer at an address that a request names; its connections follow the address rules."""
    rules: AddressRules
    _away: dict[str, None] = field(default_factory=dict)
    """Those that did not answer the last time, the newest ones: requests can name many that never answer."""

    def chosen(self, monitoring: Monitoring) -> list[str]:
        """Return the addresses to ask, the first one that answers counts; ``site`` for that of the settings. Raises Unprocessable.

        ``metrics.k8s.io``, if there is no Prometheus: whether that measures the objects is to be checked. None for a request that is monitored from outside: values come to its webhook.
        """
        for url in (*monitoring.own_urls, *(() if self.site is not None else monitoring.reload_urls)):
            host = urlsplit(url).hostname or ""
            is_address = ":" in host or host.replace(".", "").isdigit()
            if is_address and not self.rules.admits(host):
                raise Unprocessable("metadata/monitoring/targetsInfo", str(AddressNotAllowed()))
        if monitoring.own_urls:
            return list(monitoring.own_urls)
        if self.site is not None:
            return [SITE]
        if not monitoring.is_given:
            return [POD_METRICS]
        return list(monitoring.reload_urls)

    def measurers(self, internal: JsonMapping) -> Sequence[tuple[str, Measurer]]:
        """Return the measurers of a stored job or threshold, each with its address."""
        found = [(each, self.site if each == SITE else self.named(each)) for each in internal["sources"]]
        return [(each, measurer) for each, measurer in found if measurer is not None]

    @staticmethod
    def is_sampled(internal: JsonMapping) -> bool:
        """Return whether a stored job or threshold is measured by the clusters themselves."""
        return bool(internal["sources"] == [POD_METRICS])

    def answered(self, address: str) -> None:
        """Note that one answers: the end of an outage has a line in the log."""
        if address in self._away:
            del self._away[address]
            log.info("prometheus_answers_again", address=shown_address(address))

    def failed(self, address: str, error: VnfmError) -> None:
        """Note that one does not answer: the beginning of an outage has a line in the log."""
        if address not in self._away:
            if len(self._away) >= _MOST_OUTAGES:
                del self._away[next(iter(self._away))]
            self._away[address] = None
            if isinstance(error, MeasurerUnavailable):
                log.warning("prometheus_does_not_answer", address=shown_address(address), reason=str(error))
            else:
                log.warning("prometheus_refuses_query", address=shown_address(address), reason=str(error))


def names_of(body: JsonMapping) -> str:
    """Return the measurers of a stored job or threshold, as one text (`due.SourceOf`)."""
    names = body["internal"]["sources"]
    # Each cluster is one, and which these are is known only after the instances were read.
    objects = body.get("objectInstanceIds", [body.get("objectInstanceId", "")]) if names == [POD_METRICS] else ()
    return " ".join([*names, *objects])
