"""Alerts as Alertmanager posts them, with the labels that each of Tacker's paths needs; further labels are ignored."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, Final, Generic, Literal, TypeVar

from kubevnfm_kit.ids import is_id
from kubevnfm_sol.faults import EventType, PerceivedSeverity
from kubevnfm_sol.wrong_attributes import wrong_attributes
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictFloat,
    StrictInt,
    StrictStr,
    ValidationError,
    model_validator,
)

MOST_ALERTS: Final = 1000
"""Alerts of one message. Alertmanager limits them by ``max_alerts`` of a receiver, and by the groups of a route."""
_LONGEST_TEXT: Final = 1024
_LONGEST_MOMENT: Final = 64
_NO_END: Final = 1
"""The year that Alertmanager names as the end of an alert that has none yet."""


def _id(text: str) -> str:
    if not is_id(text):
        raise ValueError("an id expected: letters, digits, '.', '_' and '-', at most 128 of them")
    return text


def _moment(given: object) -> datetime:
    try:
        if isinstance(given, str) and len(given) <= _LONGEST_MOMENT:
            moment = datetime.fromisoformat(given)
            if moment.tzinfo is not None:
                return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise ValueError("a date and time with time zone expected (RFC 3339)")


Id = Annotated[StrictStr, AfterValidator(_id)]
Text = Annotated[StrictStr, Field(min_length=1, max_length=_LONGEST_TEXT)]
Moment = Annotated[datetime, BeforeValidator(_moment)]


class _Part(BaseModel):
    """A part of an alert; null means absent."""

    # Alerts may hold secrets: no error repeats them.
    model_config = ConfigDict(extra="ignore", frozen=True, hide_input_in_errors=True, defer_build=True)

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, given: Any) -> Any:
        if isinstance(given, Mapping):
            return {name: value for name, value in given.items() if value is not None}
        return given


class Labels(_Part):
    """The labels of every alert."""

    receiver_type: Literal["tacker"]
    alertname: Text | None = None
    """The name of its rule."""


class Annotations(_Part):
    """The texts that a rule adds to an alert."""


L = TypeVar("L", bound=Labels)
N = TypeVar("N", bound=Annotations)


class Alert(_Part, Generic[L, N]):
    """One alert of a message."""

    subject: ClassVar[str]
    """The label that names what it is about."""

    status: Literal["firing", "resolved"]
    labels: L
    annotations: N
    starts_at: Moment = Field(alias="startsAt")
    """When it began to fire."""
    named_end: Moment | None = Field(default=None, alias="endsAt")
    fingerprint: Id
    """Made of the labels: the same for each message about it."""

    @property
    def is_firing(self) -> bool:
        """Whether it lasts."""
        return self.status == "firing"

    @property
    def ends_at(self) -> datetime | None:
        """When it has ended; None: it has not."""
        return None if self.named_end is None or self.named_end.year == _NO_END else self.named_end

    @property
    def fact_id(self) -> str:
        """The same for each message about this firing of it."""
        return f"{self.fingerprint}/{self.starts_at.isoformat()}"


class FaultLabels(Labels):
    """Those of ``/alert``."""

    function_type: Literal["vnffm"]
    vnf_instance_id: Id
    perceived_severity: PerceivedSeverity
    event_type: EventType
    pod: StrictStr | None = None
    """A regular expression for the beginning of ``resourceId`` of the compute resources that it is about."""
    node: Text | None = None


class FaultAnnotations(Annotations):
    """Those of ``/alert``."""

    probable_cause: StrictStr | None = None
    fault_type: StrictStr | None = None
    fault_details: StrictStr | None = None


class FaultAlert(Alert[FaultLabels, FaultAnnotations]):
    """An alarm."""

    subject = "vnf_instance_id"


class MeasuredAnnotations(Annotations):
    """Those of ``/pm_event`` and ``/pm_threshold``."""

    value: StrictInt | StrictFloat | Text
    """A number, or a text of one."""


class _MeasuredLabels(Labels):
    metric: Text
    object_instance_id: Id
    sub_object_instance_id: Text | None = None


class PmEventLabels(_MeasuredLabels):
    """Those of ``/pm_event``."""

    function_type: Literal["vnfpm"]
    job_id: Id


class PmEventAlert(Alert[PmEventLabels, MeasuredAnnotations]):
    """A value that a PM job asks for."""

    subject = "job_id"


class PmThresholdLabels(_MeasuredLabels):
    """Those of ``/pm_threshold``."""

    function_type: Literal["vnfpm_threshold"]
    threshold_id: Id


class PmThresholdAlert(Alert[PmThresholdLabels, MeasuredAnnotations]):
    """A value that is compared with a threshold."""

    subject = "threshold_id"


class HealLabels(Labels):
    """Those of ``/alert/auto_healing``."""

    function_type: Literal["auto_heal"]
    vnf_instance_id: Id
    vnfc_info_id: Id


class HealAlert(Alert[HealLabels, Annotations]):
    """A VNFC that is to be healed."""

    subject = "vnf_instance_id"


class ScaleLabels(Labels):
    """Those of ``/alert/auto_scaling``."""

    function_type: Literal["auto_scale"]
    vnf_instance_id: Id
    auto_scale_type: Literal["SCALE_OUT", "SCALE_IN"]
    aspect_id: Text


class ScaleAlert(Alert[ScaleLabels, Annotations]):
    """An aspect that is to be scaled by one step."""

    subject = "vnf_instance_id"


A = TypeVar("A", bound=Alert[Any, Any])


class WrongAlert(Exception):
    """An alert cannot be read: the places that are wrong, each with what was expected."""

    def __init__(self, places: tuple[tuple[str, str], ...]) -> None:
        super().__init__("; ".join(f"{place}: {reason}" for place, reason in places))
        self.places = places


def read_alert(model: type[A], given: object, place: str) -> A:
    """Return an alert of a message; ``place``: where it is in that. Raises WrongAlert."""
    try:
        return model.model_validate(given)
    except ValidationError as error:
        raise WrongAlert(wrong_attributes(error, model, place)) from error
