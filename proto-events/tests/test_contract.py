"""The lists that other packages derive from the message classes."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from kubevnfm_events import MESSAGES, CancelStep, Command, CommandFailed, Event
from kubevnfm_events.contract import cancel_commands, commands, messages, published_by, replies, services
from kubevnfm_events.lcm import AdvanceOperation, OperationChanged
from kubevnfm_events.services import ServiceReported
from kubevnfm_events.stacks import (
    CancelOpenstackStep,
    CreateResources,
    ResourcesChanged,
    ResourcesCreated,
    RestoreResources,
)

WITHOUT_REPLY = {
    "kubevnfm.lcm.advance_operation.v1",
    "kubevnfm.lcm.deliver_notification.v1",
    "kubevnfm.infra.openstack.compare_stacks.v1",
    "kubevnfm.infra.k8s.watch_machines.v1",
    "kubevnfm.infra.k8s.compare_objects.v1",
    "kubevnfm.infra.k8s.watch_kubeconfigs.v1",
    "kubevnfm.infra.k8s.read_vnfcs.v1",
}
"""No step waits for these: lcm-api sends the first two to itself to be woken up, repeats the last while pods differ, and the others in rounds."""


def test_a_command_names_the_event_of_its_success() -> None:
    assert CreateResources.reply is ResourcesCreated
    assert AdvanceOperation.reply is None


def test_a_command_inherits_the_reply_of_its_base() -> None:
    assert RestoreResources.reply is ResourcesChanged


@pytest.mark.parametrize("command", commands(), ids=lambda command: command.type)
def test_every_command_has_a_service_and_a_reply_or_a_reason_for_none(command: type[Command]) -> None:
    assert command.service
    needs_none = issubclass(command, CancelStep) or command.type in WITHOUT_REPLY
    assert (command.reply is None) == needs_none


def test_replies_are_those_of_the_commands_and_the_failure() -> None:
    found = replies()
    assert CommandFailed in found
    assert ResourcesCreated in found
    assert OperationChanged not in found
    assert [event.type for event in found] == sorted({event.type for event in found})


def test_every_service_with_a_command_that_a_step_waits_for_can_be_asked_to_cancel_it() -> None:
    cancels = cancel_commands()
    assert cancels["infra-openstack"] is CancelOpenstackStep
    assert set(cancels) == {command.service for command in commands() if command.reply is not None}
    assert all(cancel.service == service for service, cancel in cancels.items())


def test_every_event_has_a_service_that_publishes_it() -> None:
    """Else no user of the broker may publish it, and its first publication would wait for ever."""
    published = {event.type for service in services() for event in published_by(service)}
    assert published == {message.type for message in messages() if issubclass(message, Event)}


def test_a_report_on_a_service_is_published_with_a_key_of_that_service() -> None:
    """The broker looks at the key only; a process of several services has no broker, and its key is that of none."""
    for named, key in ((("infra-k8s",), "infra-k8s"), (("infra-k8s", "lcm-api"), "several"), ((), "several")):
        report = ServiceReported(
            process="p", services=named, host="h", pid=1, version="1", started_at=datetime(2030, 1, 1, tzinfo=UTC)
        )
        assert report.own_key() == f"service.state.reported.{key}"
        allowed = {service for service in services() if report.own_key() == ServiceReported.key_of(service)}
        assert allowed == {key} & {"infra-k8s"}


def test_messages_of_a_test_are_not_part_of_the_contract() -> None:
    class Outsider(Event, kind="test.contract.outsider"):
        """Registered, but defined by a test."""

    assert MESSAGES[Outsider.type] is Outsider
    assert Outsider not in messages()


def test_a_second_cancel_command_of_a_service_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MESSAGES, "kubevnfm.infra.zz.cancel_step.v1", _second_cancel())
    with pytest.raises(TypeError, match="infra-openstack has two"):
        cancel_commands()


def _second_cancel() -> type[CancelStep]:
    class Second(CancelStep, service="infra-openstack"):
        """As if a second class were added to the contract."""

    Second.__module__ = CancelOpenstackStep.__module__
    return Second
