"""The template of a service's process: settings, key ring, bus, database, calls of other services; run until a signal.

A service's ``__main__`` names its settings and its wiring, and calls `run_service`. The same wiring runs in
``deploy/single`` on other backends, so nothing of RabbitMQ or MongoDB is named in a service.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TypeVar

from kubevnfm_bus.rabbit import RabbitBus
from kubevnfm_clients.session import Peers, internal_session
from kubevnfm_kit import live_spans
from kubevnfm_kit.logging import configure_logging
from kubevnfm_kit.metrics import Metrics
from kubevnfm_kit.run import run_until_signal
from kubevnfm_kit.settings import ProcessSettings
from kubevnfm_secrets import KeyRing
from kubevnfm_store.measured import measured
from kubevnfm_store.mongo.store import MongoStore
from kubevnfm_store.port import UnsupportedServer

from kubevnfm_worker.backends import Backends
from kubevnfm_worker.certificates import certificate_files
from kubevnfm_worker.reports import reporting
from kubevnfm_worker.steady import steady_clock

S = TypeVar("S", bound=ProcessSettings)
Wiring = Callable[[S, Backends, Peers], AbstractAsyncContextManager[object]]
"""Enters the service: consuming and serving while the block lasts."""
_FOLDERS = ("data_dir", "cache_dir")
"""The settings with the folders of services."""


def run_service(service: str, settings_class: type[S], wiring: Wiring[S]) -> None:
    """Run the service until SIGTERM or SIGINT, then drain and close it.

    Ends the process with one line on stderr and code 1 when the environment's settings are invalid, or the database server is
    not supported.
    """
    settings = settings_class.read_or_exit()
    configure_logging(service, level=settings.log_level, form=settings.log_form)
    try:
        run_until_signal(standalone(service, settings, wiring))
    except UnsupportedServer as error:
        raise SystemExit(f"{service}: {error}") from error


@asynccontextmanager
async def standalone(service: str, settings: S, wiring: Wiring[S]) -> AsyncIterator[None]:
    """Enter the service on RabbitMQ and MongoDB; leaving closes the service first, then its connections."""
    ring, metrics = KeyRing.from_text(settings.keys.get_secret_value()), Metrics()
    # The service is entered last and left first: its drain still needs bus and database.
    async with (
        # Outermost: the drain of the service is measured too.
        live_spans.sending(settings, service),
        internal_session(settings.internal_tls) as session,
        MongoStore.connect(settings.mongo_url.get_secret_value(), settings.mongo_database) as database,
        database.heeding_pauses(),
        RabbitBus.connect(
            settings.amqp_url.get_secret_value(),
            service=service,
            key_ring=ring,
            declares=settings.amqp_declares,
            metrics=metrics,
        ) as bus,
        steady_clock(database) as clock,
        metrics.watching(version("kubevnfm-worker")),
        _reported(
            service,
            settings,
            wiring,
            Backends(bus, measured(database, "mongodb"), ring, clock, metrics=metrics),
            Peers(settings.token_for, session),
        ),
    ):
        yield


@asynccontextmanager
async def _reported(
    service: str, settings: S, wiring: Wiring[S], backends: Backends, peers: Peers
) -> AsyncIterator[None]:
    """Enter the service, and report that it runs while it does."""
    backends.process.services.append(service)
    named = (getattr(settings, name, None) for name in _FOLDERS)
    backends.process.folders.extend(folder for folder in named if isinstance(folder, Path))
    backends.process.certificates.update(certificate_files(settings))
    async with wiring(settings, backends, peers), reporting(backends):
        yield
