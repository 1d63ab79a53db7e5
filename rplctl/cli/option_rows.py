"""Rows of option tables as parameters of a verb's function: Typer reads what it takes from its signature."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any

from rplctl.cli.options import option
from rplctl.config import Option

Verb = Callable[..., None]


def takes(*parameters: Parameter) -> Callable[[Verb], Verb]:
    """The function, of the options of every command and keywords, takes these and no others."""

    def decorate(function: Verb) -> Verb:
        options = Parameter("options", Parameter.POSITIONAL_OR_KEYWORD)
        function.__signature__ = Signature([options, *parameters])  # type: ignore[attr-defined]
        return function

    return decorate


def parameter(name: str, kind: Any, given: Any) -> Parameter:
    """`given`: an option or a switch."""
    return Parameter(name, Parameter.KEYWORD_ONLY, default=given, annotation=kind)


def option_parameter(o: Option) -> Parameter:
    """Of a row of the option table; a list may be given several times."""
    flags = tuple(f"--{name.replace('_', '-')}" for name in (o.name, o.old_name) if name)
    kind = list[str] | None if o.holds else str | None
    return parameter(o.name, kind, option(flags, o.range_text, sentence(o.help)))


def sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."
