"""Print results to stdout and everything else to stderr.

The option --format chooses the layout. Without this option, the layout depends on stdout:

terminal   Lists are tables, and show-status of one channel has the vertical layout. Prose is folded. A table that is
           still too wide is shown in the vertical layout.
pipe       show-status has the `\\G` layout, and lists are TSV. Lines are never wrapped or truncated.

With --format json, the output is the same everywhere: a list of objects, keyed by column.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal

from rplctl.cli.color import as_error, has_color
from rplctl.cli.globals import Globals, channel_at_work, leave_channel
from rplctl.cli.text import Row, ascii_table, clean, shortened, shown, to_json, tsv, vertical
from rplctl.command.channel.context import Note
from rplctl.errors import LockBusy, RplError, UsageError, for_channel
from rplctl.position import BinlogPosition


def write(text: str) -> None:
    """Write the whole text to stdout at once. If the reader has closed the pipe, the error is raised here (cli.run
    handles it).
    """
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure:
        reconfigure(errors="backslashreplace")
    sys.stdout.write(text)
    sys.stdout.flush()


def show_rows(options: Globals, columns: Sequence[str], rows: Sequence[Row], *, prefer_vertical: bool = False) -> None:
    """Print a list of records in the chosen format. `prefer_vertical` prefers the layout of show-status."""
    chosen = options.format or ("table" if options.is_terminal else "vertical" if prefer_vertical else "tsv")
    if chosen == "json":
        write(to_json(list(rows)))
    elif chosen == "tsv":
        write(tsv(columns, rows))
    elif chosen == "vertical":
        write(vertical(rows))
    elif not options.is_terminal and not has_color(sys.stdout):
        write(ascii_table(columns, rows))
    elif prefer_vertical and len(rows) == 1 and not options.format:
        write(vertical(rows))
    else:
        _terminal_table(options, columns, rows)


def show_records(options: Globals, records: Sequence[Any], kind: type[Any], **rest: Any) -> None:
    """Print dataclasses of type `kind`, whose field names are the column names. `rest` is passed to `show_rows`."""
    rows = [asdict(record) for record in records]
    if options.format == "json":  # all verbs use Channel_Name, but earlier versions of two verbs used Channel_name
        rows = [row | ({"Channel_Name": row["Channel_name"]} if "Channel_name" in row else {}) for row in rows]
    show_rows(options, tuple(kind.__dataclass_fields__), rows, **rest)


def _terminal_table(options: Globals, columns: Sequence[str], rows: Sequence[Row]) -> None:
    """Print a table that fits the terminal. If the option `-f table` is given, each column has its full width."""
    from rich import box
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    widths = {name: max([cell_len(name), *(cell_len(shown(row[name])) for row in rows)]) for name in columns}
    gaps = 3 * (len(columns) - 1)
    fits = options.is_terminal and not options.format
    console = Console(
        markup=False,
        highlight=False,
        emoji=False,
        no_color=False,  # `has_color` has already read NO_COLOR
        force_terminal=has_color(sys.stdout) or None,
        color_system="standard" if has_color(sys.stdout) else None,
        width=None if fits else sum(widths.values()) + gaps,
    )
    if fits and sum(_least(name, width) for name, width in widths.items()) + gaps > console.width:
        write(vertical(rows))
        return
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for name in columns:
        is_number = bool(rows) and all(isinstance(row[name], int | float) or row[name] is None for row in rows)
        justify: Literal["left", "right"] = "right" if is_number else "left"
        least = _least(name, widths[name])
        table.add_column(Text(name), justify=justify, no_wrap=name not in _PROSE, min_width=least, overflow="fold")
    for row in rows:
        table.add_row(*(Text(shown(row[name]), style=_style(name, row[name])) for name in columns))
    console.print(table)
    sys.stdout.flush()


# Only on a terminal, these columns may be folded.
_PROSE = frozenset({"Detail", "Hint", "Notes", "Steps", "Info", "Last_Error", "Note"})
_PROSE_WIDTH = 20  # the minimum width of a folded column


def _least(name: str, width: int) -> int:
    return min(width, _PROSE_WIDTH) if name in _PROSE else width


_GOOD, _BAD, _DOUBTFUL = "green", "bold red", "yellow"
_STYLES = {"Yes": _GOOD, "OK": _GOOD, "No": _BAD, "FAIL": _BAD, "Connecting": _DOUBTFUL, "WARN": _DOUBTFUL}


def _style(column: str, value: object) -> str:
    if column.endswith(("_Running", "Result")):
        return _STYLES.get(str(value), "")
    return _BAD if column.endswith("_Error") and value else ""


def many(count: int, thing: str) -> str:
    """Return a count with its noun, such as `1 relay log` or `2 relay logs`."""
    return f"{count} {thing}{'' if count == 1 else 's'}"


_gathered: list[Any] | None = None


@contextmanager
def one_list(options: Globals) -> Iterator[None]:
    """Print all JSON results of the block as one list at its end, because a command prints only one JSON document.

    If the block has no results, nothing is printed.
    """
    global _gathered
    if options.format != "json" or _gathered is not None:
        yield
        return
    _gathered = []
    try:
        yield
    finally:
        found, _gathered = _gathered, None
        if found:
            write(to_json(found))


def row_of(result: Any) -> dict[str, object]:
    """Return the columns of a command's result, which is a dataclass, by their names.

    A column has the name of its field with capitalized words. The column of the field `channel` is Channel_Name. The
    metadata "column" of a field can contain another name, or '' for no column. For a field that is itself a record or a
    mapping, "column" maps attributes or keys to column names. Notes are not included, because they are printed before.
    """
    row: dict[str, object] = {}
    for known in fields(result):
        usual = _USUAL.get(known.name, "_".join(word.capitalize() for word in known.name.split("_")))
        name, value = known.metadata.get("column", usual), getattr(result, known.name)
        if isinstance(name, Mapping):
            inside = value if isinstance(value, Mapping) else {inner: getattr(value, inner) for inner in name}
            row |= {column: inside[inner] for inner, column in name.items()}
        elif name and isinstance(value, tuple):
            row[name] = [asdict(one) if is_dataclass(one) and not isinstance(one, type) else one for one in value]
        elif name:
            row[name] = str(value) if isinstance(value, Path | BinlogPosition) else value
    return row


_USUAL = {"channel": "Channel_Name", "notes": ""}


def say(options: Globals, text: str, result: Any, *steps: str) -> None:
    """Print the result of a command that changes something: its notes, and then one line of text.

    With JSON, the whole result is printed instead of the text. `steps` are further lines, for a dry run.
    """
    say_notes(options, getattr(result, "notes", ()))
    if options.format == "json":
        said = row_of(result)
        write(to_json([said])) if _gathered is None else _gathered.append(said)
    elif not options.quiet:
        write("".join(clean(line) + "\n" for line in (text, *steps)))


def say_notes(options: Globals, notes: Iterable[Note]) -> None:
    """Print warnings and notes to stderr in MySQL's format."""
    if options.quiet:
        return
    for note in notes:
        number = f" {note.errno}" if note.errno else ""
        sys.stderr.write(clean(f"Note{number}: {note.text}") + "\n")


def confirm(question: str, *, yes: bool) -> None:
    """Ask the operator for confirmation on a terminal. `yes` skips the question.

    Raises UsageError if the operator declines, or if there is no terminal to ask on.
    """
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(f"{question} This needs a confirmation.", hint="add --yes")
    sys.stderr.write(f"{clean(question)} [y/N] ")
    sys.stderr.flush()
    answer = sys.stdin.readline()
    if not answer:  # Ctrl-D does not end the line
        sys.stderr.write("\n")
    if answer.strip().lower() not in ("y", "yes"):
        raise UsageError("the command was not confirmed, and nothing was changed")


@dataclass(slots=True, kw_only=True)
class _Reporting:
    """The settings of `reporting` for the errors of the present command line."""

    as_json: bool = False
    quiet: bool = False
    is_under_way: bool = False  # True while a command line runs; only then `channel_at_work` is valid


_reporting = _Reporting()


@contextmanager
def reporting(*, as_json: bool, quiet: bool) -> Iterator[None]:
    """Set how the errors of the block are printed: as JSON, or only some of them.

    If `quiet`, the error that another process holds a lock is not printed, so that cron sends no mail.
    """
    leave_channel()
    _reporting.as_json, _reporting.quiet, _reporting.is_under_way = as_json, quiet, True
    try:
        yield
    finally:
        _reporting.as_json = _reporting.quiet = _reporting.is_under_way = False


def report(error: RplError, channel: str | None = None) -> None:
    """Print the error. `channel` is the name to print if the command works on several channels.

    With JSON, the error is one object on one line.
    """
    if _reporting.quiet and isinstance(error, LockBusy):
        return
    whose = channel if channel is not None else error.channel
    hint = for_channel(error.hint, channel_at_work() if whose is None and _reporting.is_under_way else whose)
    if _reporting.as_json:
        sys.stderr.write(
            to_json(
                {
                    "Errno": error.errno,
                    "Error": error.message,
                    "Hint": hint,
                    "Channel_Name": whose,
                    "Position": error.position,
                    "Exit_Code": error.exit_code,
                }
            )
        )
        return
    head = as_error(f"ERROR {error.errno}" if error.errno else "ERROR", sys.stderr)
    lines = [f": {error.message}"]
    if channel is not None:
        lines.append(f"channel: '{channel}'")
    if error.position:
        lines.append(f"position: {error.position}")
    if hint:
        lines += f"hint: {hint}".replace("\n", "\n      ").split("\n")  # one line for each alternative
    sys.stderr.write(head + "".join(clean(shortened(line)) + "\n" for line in lines))
