"""Rows of option tables as parameters of a verb's function: Typer reads what it takes from its signature."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Annotated, Any

import typer

from rplctl.config import Option

Verb = Callable[..., None]


def takes(*parameters: Parameter) -> Callable[[Verb], Verb]:
    """The function, of a context and keywords, takes these and no others."""

    def decorate(function: Verb) -> Verb:
        context = Parameter("context", Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
        function.__signature__ = Signature([context, *parameters])  # type: ignore[attr-defined]
        function.__annotations__ = {}
        return function

    return decorate


def parameter(name: str, annotation: Any, default: Any) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def option_parameter(o: Option) -> Parameter:
    """Of a row of the option table; a list may be given several times."""
    flags = [f"--{name.replace('_', '-')}" for name in (o.name, o.old_name) if name]
    kind = typer.Option(*flags, metavar=o.range_text, help=sentence(o.help))
    annotation = Annotated[list[str] | None, kind] if o.holds else Annotated[str | None, kind]
    return parameter(o.name, annotation, None)


def sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."
