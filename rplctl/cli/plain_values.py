"""Convert the values of options without pydantic: texts, lists of texts, whole numbers, paths and switches.

Typer converts every value through pydantic. The import of pydantic alone takes half of the time limit of `show-status`
(design D16), and rplctl's options do not need it. If the internals of the installed Typer differ from those used here,
Typer's own conversion is used.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer

from rplctl.cli.text import clean, shortened


class PlainValue:
    """A replacement for Typer's converter of one parameter. `wanted` is a noun phrase for the error, for example "a
    path".
    """

    def __init__(self, convert: Callable[[Any], Any], wanted: str) -> None:
        self._convert = convert
        self._wanted = wanted

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        if value is None:
            return None
        try:
            return self._convert(value)
        except ValueError:
            text = clean(shortened(f"'{value}'"))
            raise typer.BadParameter(f"{text} is not {self._wanted}", ctx=ctx, param=param) from None


def _whole_number(text: str | int) -> int:
    """Return the whole number in a text of ASCII digits. int() would also accept digits of other scripts, and
    underscores.
    """
    if isinstance(text, int):
        return text  # a default value
    value = int(text) if re.fullmatch(r"[-+]?[0-9]{1,19}", text) else _LARGEST + 1
    if abs(value) > _LARGEST:
        raise ValueError(text)
    return value


_LARGEST = (1 << 63) - 1
_PLAIN = {
    bool: PlainValue(bool, "a switch"),
    str: PlainValue(str, "a text"),
    int: PlainValue(_whole_number, "a valid integer"),
    Path: PlainValue(Path, "a path"),
    list[str]: PlainValue(list, "texts"),
}


def use_plain_values(command: Any) -> None:
    """Use the conversions of this module for every parameter of a command and its subcommands, including the help
    option.
    """
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
