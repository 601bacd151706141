"""What all models of the settings share: no unknown keys, no silent conversions, no values in errors or in `repr`."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from squidbot.config.secrets import shown

SERVER_NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"

ServerName = Annotated[str, StringConstraints(pattern=SERVER_NAME)]
Glob = Annotated[str, StringConstraints(min_length=1)]
Seconds = Annotated[float, Field(gt=0, le=31_536_000)]
Count = Annotated[int, Field(ge=0, le=1_000_000_000)]
Positive = Annotated[int, Field(gt=0, le=1_000_000_000)]


class Strict(BaseModel):
    """A part of the settings."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False, hide_input_in_errors=True, validate_default=False
    )

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        for name in sorted(self.model_fields_set):
            value = getattr(self, name)
            yield name, value if isinstance(value, BaseModel) else shown(value, name)


def rule(text: str, hint: str | None = None) -> PydanticCustomError:
    """A rule of ours that a value breaks, as pydantic carries it to the report."""
    return PydanticCustomError("rule", "{text}", {"text": text, "hint": hint})


def broken(text: str, *at: str | int, value: Any = None, hint: str | None = None) -> InitErrorDetails:
    """The same, with its place in the model, for rules over several fields."""
    return InitErrorDetails(type=rule(text, hint), loc=at, input=value)


def joined(title: str, more: Sequence[InitErrorDetails], found: ValidationError | None = None) -> ValidationError:
    """One error of what the rules over several fields found and of what pydantic itself found."""
    details = [_detail(error) for error in found.errors(include_url=False)] if found else []
    return ValidationError.from_exception_data(title, [*details, *more], hide_input=True)


def _detail(error: Any) -> InitErrorDetails:
    kind, context = error["type"], error.get("ctx", {})
    if kind == "rule":
        kind = PydanticCustomError("rule", "{text}", context)
    return InitErrorDetails(type=kind, loc=error["loc"], input=error["input"], ctx=context)
