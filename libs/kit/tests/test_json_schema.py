"""Descriptions in JSON Schemas: what `use_attribute_docstrings` of pydantic gives, made later."""

from __future__ import annotations

from typing import Generic, TypeVar

from kubevnfm_kit.json_schema import DescribedSchema, attribute_docstrings
from pydantic import AliasChoices, BaseModel, ConfigDict, Field

T = TypeVar("T")


class Part(BaseModel):
    """A part."""

    plain: str
    name: str
    """Its name."""
    other: str = Field(default="", description="As said in Field.")
    """Not this."""


class Whole(Part, Generic[T]):
    """A whole, with attributes of `Part`."""

    model_config = ConfigDict(populate_by_name=True)

    class Inner(BaseModel):
        """A model with an attribute of the same name."""

        name: str
        """The name of the inner."""

    parts: tuple[Part, ...]
    """Its parts:
    all of them."""
    first: Part | None = None
    """The first of them."""
    level: int = Field(validation_alias=AliasChoices("scaleLevel", "scaleToLevel"))
    """The level."""
    held: T
    """The thing that it holds."""
    inner: Inner

    def of_no_attribute(self) -> None:
        """Not an attribute."""


class Narrower(Whole[int]):
    """One that declares an attribute again, without a docstring."""

    held: int


def described(model: type[BaseModel]) -> dict[str, str | None]:
    shown = model.model_json_schema(schema_generator=DescribedSchema)["properties"]
    return {name: one.get("description") for name, one in shown.items()}


def test_attributes_are_described_by_their_docstrings() -> None:
    assert described(Whole[int]) == {
        "plain": None,
        "name": "Its name.",
        "other": "As said in Field.",
        "parts": "Its parts:\nall of them.",
        "first": "The first of them.",
        "scaleLevel": "The level.",
        "held": "The thing that it holds.",
        "inner": None,
    }
    schema = Whole[int].model_json_schema(schema_generator=DescribedSchema)
    assert schema["$defs"]["Inner"]["properties"]["name"]["description"] == "The name of the inner."
    assert schema["$defs"]["Part"]["properties"]["name"]["description"] == "Its name."
    assert described(Narrower)["held"] is None
    assert described(Narrower)["parts"] == "Its parts:\nall of them."


def test_a_class_within_a_function_has_docstrings_too() -> None:
    class Local(BaseModel):
        name: str
        """A local name."""

    assert attribute_docstrings(Local) == {"name": "A local name."}


def test_pydantic_describes_the_same() -> None:
    """Its own way reads the source too, so the two are compared on one class."""

    class Model(BaseModel):
        model_config = ConfigDict(use_attribute_docstrings=True)

        name: str
        """Its name,

        in two paragraphs.
        """
        part: Part
        """With a reference."""
        numbers: dict[str, int] = {}
        """With a default."""

    class Later(BaseModel):
        name: str
        """Its name,

        in two paragraphs.
        """
        part: Part
        """With a reference."""
        numbers: dict[str, int] = {}
        """With a default."""

    ours = Later.model_json_schema(schema_generator=DescribedSchema)["properties"]
    assert ours == Model.model_json_schema()["properties"]
