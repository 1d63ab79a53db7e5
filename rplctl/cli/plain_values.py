"""Texts and lists of them, whole numbers, paths and switches without pydantic.

Typer converts every value through pydantic, whose import alone takes half of what `show-status` may take (design D16).
Our options need none of it. Where a Typer has other insides than those used here, its own conversion stays in force.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer


class PlainValue:
    """Takes the place of Typer's converter of one parameter."""

    def __init__(self, convert: Callable[[Any], Any], wanted: str) -> None:
        self._convert = convert
        self._wanted = wanted

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        if value is None:
            return None
        try:
            return self._convert(value)
        except ValueError:
            raise typer.BadParameter(f"'{value}' is not {self._wanted}", ctx=ctx, param=param) from None


_PLAIN = {
    bool: PlainValue(bool, "a switch"),
    str: PlainValue(str, "a text"),
    int: PlainValue(int, "a valid integer"),
    Path: PlainValue(Path, "a path"),
    list[str]: PlainValue(list, "texts"),
}


def use_plain_values(command: Any) -> None:
    """For every parameter of a command, its help option included, and of the commands below it."""
    all_parameters = command.get_params

    def get_params(context: Any) -> list[Any]:
        parameters: list[Any] = all_parameters(context)
        for parameter in parameters:
            annotation = getattr(getattr(parameter, "type_descriptor", None), "annotation", None)
            if annotation in _PLAIN and hasattr(parameter, "_runtime_param"):
                parameter._runtime_param = _PLAIN[annotation]
        return parameters

    command.get_params = get_params
    for child in getattr(command, "commands", {}).values():
        use_plain_values(child)
