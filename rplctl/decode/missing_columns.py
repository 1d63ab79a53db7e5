"""Complete row images that lack columns, for targets that need all columns (binlog_row_image MINIMAL, FULL_NODUP, …).

The image of an INSERT lacks the columns that the INSERT did not set. They have their defaults. The image of an UPDATE
lacks unchanged columns. Invariant: no value is guessed.

The images may also lack generated columns that have changed. MariaDB logs no virtual column in MINIMAL images and in
the after images of FULL_NODUP. MariaDB 11.8.9 logs no generated column with any UPDATE (10.11 logs them). If such a
column may have changed, the target computes its value (`schema.generated`), or the channel stops.

A batch may have the value of a generated column from an older image than the columns in its expression. The net change
then ignores this value (`outdated`). (Manual: binlog_row_image.)

In a table without a key, the before image must find the row by its values. A VIRTUAL column over a TIMESTAMP has
another value in each session, so `without_session_values` removes it from before images.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from rplctl import mysql_errors as er
from rplctl.errors import COPY_ALL, COPY_TABLE, LOSES_CHANNEL, OR_EXCLUDE, RplError
from rplctl.event.images import NOT_IN_IMAGE, Images
from rplctl.schema.context import DdlContext
from rplctl.schema.default_value import default_value
from rplctl.schema.generated import columns_by_time_zone, integer_expressions, names_in
from rplctl.schema.model import TableModel
from rplctl.schema.row_key import key_of
from rplctl.schema.value import NotComputable
from rplctl.target.base import Value
from rplctl.target.registry import value_form

_INCOMPLETE = (
    f"to copy the table again, because the log keeps the incomplete row {COPY_TABLE}\n"
    "To log complete rows in sessions that connect later, run on a MySQL source: SET GLOBAL binlog_row_image=FULL\n"
    "To copy all tables of a MariaDB source (11.8.9 never logs the column) into a MariaDB target that computes it, "
    f"{LOSES_CHANNEL}, run: {COPY_ALL}{OR_EXCLUDE}"
)
_SESSION = DdlContext(time_zone="?", server_version="")  # the log always has values that depend on the session


def defaults_of(model: TableModel, held: Iterable[int]) -> dict[int, Value]:
    """Return the default of each column that the image of an INSERT lacks, by the column's index.

    `held` has the indexes of the columns that are in the image. Raises RplError 1364 if only the source can compute a
    default.
    """
    known = set(held)
    found: dict[int, Value] = {}
    for number, column in enumerate(model.columns):
        if number not in known and number not in integer_expressions(model):
            try:
                found[number] = default_value(column, _SESSION)
            except NotComputable as error:
                raise _unknown(model, column.name, str(error)) from error
    return found


def check_generated(model: TableModel, changed: Iterable[int]) -> None:
    """Check that the image of an UPDATE has the value of each generated column that may have changed.

    `changed` has the indexes of the columns that are in the image. A generated column may have changed if it depends on
    one of these columns. Raises RplError 1364 if the image lacks such a generated column, and rplctl cannot compute its
    value.
    """
    held = set(changed)
    names = {model.columns[number].name.casefold() for number in held}
    for number, column in enumerate(model.columns):  # a generated column may depend on an earlier one
        if column.generated is None or number in held:
            continue
        if names_in(column.generated) & names:
            if number not in integer_expressions(model):
                raise _unknown(model, column.name, "it is generated from columns that changed")
            names.add(column.name.casefold())


def check_updates(model: TableModel, images: Images) -> None:
    """Check each UPDATE of a table with `check_generated`. Raises RplError 1364 as `check_generated` does.

    With FULL_NODUP, the after image of an UPDATE lacks the virtual columns, but an earlier image of the row has their
    old values. This is the before image, or the image of an earlier INSERT. Without the check, a net change would write
    such an old value to the target.
    """
    afters = images.after[(images.before >= 0) & (images.after >= 0)]
    held = images.cell_start[afters] != NOT_IN_IMAGE
    if held.all() or not any(column.generated is not None for column in model.columns):
        return
    for pattern in np.unique(held, axis=0):
        check_generated(model, np.flatnonzero(pattern).tolist())


def outdated(model: TableModel, cell_image: npt.NDArray[np.int32]) -> Iterator[tuple[int, npt.NDArray[np.bool_]]]:
    """Yield (index, mask) for each generated column that the target computes.

    The mask marks the rows whose logged value of the column is outdated, because a column in its expression comes from
    a newer image. This is possible with FULL_NODUP, whose after image may lack the generated column. The logged value
    then comes from the before image, or from an earlier INSERT.
    """
    for column, expression in integer_expressions(model).items():
        terms = [part for part in expression if isinstance(part, int)]
        if terms:
            yield column, (cell_image[:, column] >= 0) & (cell_image[:, terms].max(axis=1) > cell_image[:, column])


def without_session_values(images: Images, model: TableModel, target_kind: str) -> Images:
    """Return the images in which before images lack values that another session of the source does not see.

    A table with a key finds its rows by the key, so its images are returned unchanged. So are those for a target that
    computes the generated columns itself.
    """
    unstable = [number for number in columns_by_time_zone(model) if number < images.column_count]
    if not unstable or key_of(model) or value_form(target_kind).knows_defaults:
        return images
    before = images.before[images.before >= 0]
    if not before.size:  # inserted rows stay complete, so that they are loaded in bulk
        return images
    starts = images.cell_start.copy()
    starts[np.ix_(before, np.array(unstable))] = NOT_IN_IMAGE
    return replace(images, cell_start=starts)


def _unknown(model: TableModel, column: str, why: str) -> RplError:
    return RplError(
        f"cannot complete a row image of {model.qualified_name}, which lacks column '{column}': only the source can "
        f"compute its value ({why})",
        errno=er.NO_DEFAULT_FOR_FIELD,
        hint=_INCOMPLETE,
    )
