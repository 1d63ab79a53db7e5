"""Choose the tables of a copy, by their names in the target, from those that the channel's filters accept.

Invariant: a table that the target already has is copied only with `replace`, and together with all tables that
reference it. Otherwise, foreign keys would change the rows of these tables, while the events of the copied table are
skipped. If the account may not see a table, clone does not silently exclude the table, but fails and names the missing
GRANT.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

from rplctl import mysql_errors as er
from rplctl.clone.source_tables import Missing, SourceTables, TableSize, Wanted, read_source_tables
from rplctl.clone.table_groups import table_groups
from rplctl.command.channel.context import Repositories
from rplctl.command.show_clone import cloned
from rplctl.config import Config, split_list
from rplctl.decode.filter_rules import ReplicationFilter, moved
from rplctl.errors import RplError, SourceError, UsageError
from rplctl.info import MasterInfo
from rplctl.own_tables.initial_models import stands
from rplctl.schema.bounds import chunk_key
from rplctl.schema.model import TableModel
from rplctl.schema.statement import TableName
from rplctl.sql_run import run
from rplctl.sql_text import backticked, written
from rplctl.target import dialect_of, open_target, statement_target

SNAPSHOT_ENGINE = "innodb"
_LOCKED_ENGINES = ("myisam", "aria", "memory")  # a lock on the table shows exactly the changes that are logged
DUMP = "to see how to copy the tables with a dump (INITIAL COPY), run: man 1 rplctl"
_MOST_NAMED = 10
_ROWS_A_SECOND, _BYTES_A_SECOND = 120_000, 20 << 20  # measured with two MariaDB servers that share two cores


@dataclass(frozen=True, slots=True)
class Choice:
    """The operator's choice of tables to copy.

    `databases` and `tables` contain names in the target. If both are empty, all tables that the target lacks are
    copied. With `replace`, tables that the target already has are copied, too.
    """

    databases: tuple[str, ...] = ()
    tables: tuple[TableName, ...] = ()
    replace: bool = False

    @classmethod
    def of(cls, databases: str, tables: str, *, replace: bool) -> Choice:
        """Return the choice for two lists in the format of the filters: names, separated by commas.

        Raises UsageError if a table is not named as db.table.
        """
        names = []
        for name in split_list(tables):
            database, _, table = name.partition(".")
            if not (database and table):
                raise UsageError(f"--tables {name}: a table must be named db.table")
            names.append((database, table))
        return cls(tuple(split_list(databases)), tuple(names), replace)

    @property
    def is_made(self) -> bool:
        return bool(self.databases or self.tables)

    def takes(self, name: TableName) -> bool:
        return not self.is_made or name in self.tables or name[0] in self.databases


@dataclass(frozen=True, slots=True, kw_only=True)
class TableToClone:
    """One row in the list of tables to copy. The field names are the column names of the output.

    `Row_count` and `Byte_count` are estimates of the source. `Seconds` is an estimate for a machine with two cores.
    These three are None for a table that the account may not see.
    """

    Database_name: str
    Table_name: str
    Row_count: int | None
    Byte_count: int | None
    Note: str
    Seconds: float | None = None
    Missing_Grant: str = ""


@dataclass(frozen=True, slots=True)
class ClonePlan:
    """The plan of a copy: the tables to copy, and the reason for a refusal.

    `models` maps the source's name of each table to its definition. `refusal` is the error that forbids the copy, or
    None.
    """

    source: SourceTables
    models: dict[TableName, TableModel]
    listed: tuple[TableToClone, ...]
    refusal: RplError | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """A table of the source that the filters accept.

    `model` is the definition with the table's name on the source. `ours` is the definition with the name in the target.
    """

    model: TableModel
    ours: TableModel
    facts: TableSize

    @property
    def name(self) -> TableName:
        return self.ours.database, self.ours.name


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chosen:
    """The source's tables, the chosen ones among them, and the state of each. All names are the target's."""

    choice: Choice
    tables: Mapping[TableName, _Found]
    taken: Mapping[TableName, _Found]
    there: Collection[TableName]  # tables that exist in the target
    begun: Collection[TableName]  # tables that are already being copied
    names: Collection[TableName]  # all names, including sequences
    is_new: bool  # True for a channel without a position
    clash: Sequence[TableName]  # tables whose names the target cannot distinguish

    @property
    def stay(self) -> set[TableName]:
        """The tables that keep their present rows, because this copy does not include them.

        They exist in the target, or another copy of them has begun.
        """
        return {*self.there, *self.begun}


def make_plan(repositories: Repositories, master: MasterInfo, choice: Choice, *, is_new: bool) -> ClonePlan:
    """Return the plan for the chosen tables. `is_new` is True for a channel without a position.

    Raises SourceError or TargetError if a server reports an error, and UsageError for a table that cannot be read.
    """
    config = repositories.config
    rules = ReplicationFilter.from_config(config)
    source = read_source_tables(config, master, wanted(rules, choice), is_new=is_new)
    unknown = TableSize(engine="InnoDB", rows=0, bytes=0)
    found = [
        _Found(model=model, ours=moved(model, rules), facts=source.facts.get(name, unknown))
        for name, model in source.catalog.tables.items()
    ]
    tables = {each.name: each for each in found if not each.model.is_sequence}
    begun = {row.name for row in cloned(repositories) if row.is_open}
    there, alike = _in_target(config, tables, begun)
    taken = {
        name: each
        for name, each in tables.items()
        if choice.takes(name) and name not in begun and (name not in there or choice.replace)
    }
    clash = next((names for names in alike if not taken.keys().isdisjoint(names)), [])
    chosen = _Chosen(
        choice=choice,
        tables=tables,
        taken=taken,
        there=there,
        begun=begun,
        names={each.name for each in found},
        is_new=is_new,
        clash=clash,
    )
    refusal = next(_refusals(chosen, rules, source.missing), None)
    listed = [*_of_missing(source.missing, rules), *_listed(chosen, found)]
    models = {(each.model.database, each.model.name): each.model for each in taken.values()}
    return ClonePlan(source, models, tuple(listed), refusal)


def wanted(rules: ReplicationFilter, choice: Choice) -> Wanted:
    def accepts(database: str, table: str) -> bool:
        return rules.accepts_rows(rules.rewritten(database), table)

    if choice.is_made:
        databases = [*choice.databases, *(database for database, _ in choice.tables)]
        named = () if choice.databases else choice.tables
    else:
        databases = [*rules.do_db]
        listed = [tuple(name.split(".", 1)) for name in rules.do_table if "." in name]
        named = () if rules.wild_do_table else tuple((database, table) for database, table in listed)
        if not databases and rules.wild_do_table:
            patterns = [rule.partition(".")[0] for rule in rules.wild_do_table]
            if not any(set("%_\\") & set(pattern) for pattern in patterns):
                databases = [*patterns, *(database for database, _ in listed)]
    return Wanted(
        accepts,
        tuple(dict.fromkeys(old for name in databases for old in _sources(name, rules))),
        tuple((old, table) for database, table in named for old in _sources(database, rules)),
    )


def _sources(database: str, rules: ReplicationFilter) -> list[str]:
    """Return the names that a database of the target has on the source, by the rules of `replicate_rewrite_db`."""
    return [old for old in (*(o for o, new in rules.rewrite_db if new == database), database)
            if rules.rewritten(old) == database]  # fmt: skip


def _in_target(
    config: Config, tables: Mapping[TableName, _Found], begun: Collection[TableName]
) -> tuple[set[TableName], list[list[TableName]]]:
    """Return which of `tables` exist in the target, and groups of tables that would become one table there.

    Such a group exists if the target ignores letter case in names. Tables in `begun` do not count as existing.
    """
    with closing(open_target(config.target_url)) as target:
        server = statement_target(target)
        there = {
            name
            for name, each in tables.items()
            if name not in begun and (server.table_model(*name) is not None if server else stands(target, each.ours))
        }
        dialect = dialect_of(target.kind)
        is_folded = dialect.is_one_file
        if server:
            with target.engine.connect() as connection:
                is_folded = bool(run(connection, written("SELECT @@lower_case_table_names")).scalar())
        alike: dict[str, list[TableName]] = {}
        for name in tables if is_folded else ():
            alike.setdefault(".".join(filter(None, dialect.place_of(*name))).casefold(), []).append(name)
    return there, [names for names in alike.values() if len(names) > 1]


def refusal_of_rights(missing: Collection[Missing]) -> RplError | None:
    """Return the error that names the missing privileges and their GRANTs. Return None if no privilege is missing."""
    if not missing:
        return None
    lacking = dict.fromkeys(m.right if not m.database else f"SELECT on {m.database}.{m.table or '*'}" for m in missing)
    grants = [m.grant for m in missing]
    more = f"\nTo list all {len(grants)} statements, run: rplctl clone --dry-run" if len(grants) > _MOST_NAMED else ""
    other = ""
    if any(not m.database and m.right == "SELECT" for m in missing):
        other = (
            "\nTo copy only the tables that the account may read (a server hides all others), run: "
            "rplctl change-filter --replicate-do-table DB.TABLE; rplctl clone"
        )
    return SourceError(
        f"the account lacks privileges on the source: {some(list(lacking))}",
        errno=er.TABLEACCESS_DENIED_ERROR,
        hint="to grant them, run on the source: " + " ".join(grants[:_MOST_NAMED]) + more + other,
    )


def _refusals(chosen: _Chosen, rules: ReplicationFilter, missing: Collection[Missing]) -> Iterator[RplError]:
    """Yield the reasons for which the chosen tables cannot be copied, the most important reason first."""
    choice, there = chosen.choice, sorted(_shown(name) for name in chosen.there if chosen.choice.takes(name))
    if left_out := [_shown(name) for name in choice.tables if not rules.accepts_rows(*name)]:
        text = f"the channel's filters exclude {some(left_out)}"
        yield UsageError(
            text,
            hint="to see the filters, run: rplctl show-status\n"
            "To see how to change the filter that excludes the tables, run: rplctl change-filter --help",
        )
    if refusal := refusal_of_rights(missing):
        yield refusal
    if gone := [name for name in choice.tables if name not in chosen.names]:
        yield SourceError(
            f"the source has no table {_shown(gone[0])}",
            errno=er.NO_SUCH_TABLE,
            hint="write the name as on the source, with its letter case. To list the tables, run on the source: "
            f"SHOW TABLES FROM {backticked(gone[0][0])}",
        )
    databases = {database for database, _ in chosen.names}
    if empty := [name for name in choice.databases if name not in databases]:
        text = f"the source has no table in {empty[0]} that the channel's filters accept"
        yield SourceError(text, errno=er.BAD_DB_ERROR, hint="to see the filters, run: rplctl show-status")
    if there and choice.is_made and not choice.replace:
        hint = "add --replace to drop the table and copy it again; rows that only the target has are lost"
        yield UsageError(f"the target already has {some(there)}", hint=hint)
    if there and chosen.is_new and not choice.replace:
        yield UsageError(
            f"the target already has tables of the source: {some(there)}",
            hint="to drop these tables, with the rows that only the target has, and copy them again, run: rplctl "
            "clone --replace\n"
            f"To exclude {there[0]}, which then receives no changes, run: rplctl change-filter "
            f"--replicate-ignore-table {shlex.quote(there[0])}; rplctl clone\n"
            "To copy only the missing tables, if the rows belong to a known position, run: rplctl change-master "
            "--master-log-file FILE --master-log-pos POSITION; rplctl clone",
        )
    if chosen.clash:
        yield UsageError(
            f"{some([_shown(name) for name in chosen.clash])} are the same table for the target",
            hint="to exclude one of them, which then receives no changes, run: rplctl change-filter "
            f"--replicate-ignore-table {shlex.quote(_shown(chosen.clash[-1]))}; rplctl clone\n"
            "To copy both, use a target that distinguishes their names",
        )
    known = (SNAPSHOT_ENGINE, *_LOCKED_ENGINES)
    if strange := [_shown(name) for name, each in chosen.taken.items() if each.facts.engine.lower() not in known]:
        yield SourceError(
            f"clone does not support the engine of {some(strange)}",
            hint=f"to change the engine, run on the source: ALTER TABLE {strange[0]} ENGINE=InnoDB\n"
            "To copy the table after that, run: rplctl clone\n"
            f"To exclude {strange[0]}, which then receives no changes, run: rplctl change-filter "
            f"--replicate-ignore-table {shlex.quote(strange[0])}; rplctl clone",
        )
    yield from _of_children(chosen)
    rest = [_shown(name) for name in chosen.tables if name not in chosen.taken and name not in chosen.stay]
    if rest and chosen.is_new:  # a channel that begins at the source's end would stop at their first event
        yield UsageError(
            f"the channel also replicates {some(rest)}, which the target lacks and this copy does not include",
            hint=_filter_to(choice),
        )


def _filter_to(choice: Choice) -> str:
    """Return the hint with the command that makes the channel replicate only the chosen tables."""
    if choice.databases and choice.tables:
        return "exclude the other tables with rplctl change-filter, or name all of them"
    what, rule = ("--databases", "--replicate-do-db") if choice.databases else ("--tables", "--replicate-do-table")
    names = shlex.quote(",".join(choice.databases or map(_shown, choice.tables)))
    again = " --replace" if choice.replace else ""
    return (
        f"To replicate only the copied tables, run: rplctl change-filter {rule} {names} && "
        f"rplctl clone {what} {names}{again}"
    )


def _of_children(chosen: _Chosen) -> Iterator[RplError]:
    """Yield an error for each table that is not in this copy, although it references a table in the copy.

    A table whose copy already runs also counts as not in this copy, because it has another snapshot.
    """
    for name in sorted(chosen.stay):
        for key in chosen.tables[name].ours.foreign_keys if name in chosen.tables and name not in chosen.taken else ():
            if (parent := (key.ref_database, key.ref_table)) in chosen.taken:
                both = shlex.quote(f"{_shown(parent)},{_shown(name)}")
                hint = f"to copy both, run: rplctl clone --tables {both} --replace"
                if name in chosen.begun:
                    hint = f"to see when the copy of {_shown(name)} that runs has ended, run: rplctl show-clone"
                yield UsageError(
                    f"{_shown(name)} references {_shown(parent)}, and would miss changes by its foreign key meanwhile",
                    hint=hint,
                )


def _of_missing(missing: Iterable[Missing], rules: ReplicationFilter) -> Iterator[TableToClone]:
    for each in missing:
        database = rules.rewritten(each.database) if each.database else "*"
        text = f"the account lacks {each.right}" + (
            "" if each.table or each.right != "SELECT" else ": tables are hidden"
        )
        yield TableToClone(
            Database_name=database,
            Table_name=each.table or "*",
            Row_count=None,
            Byte_count=None,
            Note=text,
            Missing_Grant=each.grant,
        )


def _listed(chosen: _Chosen, found: Iterable[_Found]) -> Iterator[TableToClone]:
    choice, taken = chosen.choice, chosen.taken
    together = {name: members for members in table_groups({n: e.ours for n, e in taken.items()}) for name in members}
    for each in found:
        if not choice.takes(each.name) or (
            each.name not in taken and not choice.is_made and not each.model.is_sequence
        ):
            continue
        notes = [*_notes(each, [name for name in together.get(each.name, ()) if name != each.name])]
        if each.name in chosen.begun:
            notes.append("is being copied")
        elif each.name in chosen.there:
            notes.append("is dropped and copied again" if choice.replace else "exists: --replace copies it again")
        rows, size = each.facts.rows, each.facts.bytes
        if each.model.is_sequence:
            rows = size = 0
        seconds = round(max(rows / _ROWS_A_SECOND, size / _BYTES_A_SECOND), 1)
        yield TableToClone(
            Database_name=each.name[0],
            Table_name=each.name[1],
            Row_count=rows,
            Byte_count=size,
            Note="; ".join(notes),
            Seconds=seconds,
        )


def _notes(each: _Found, relatives: list[TableName]) -> Iterator[str]:
    if each.model.is_sequence:
        yield "sequence: its next event sets its value"
        return
    if each.facts.engine.lower() != SNAPSHOT_ENGINE:
        yield f"{each.facts.engine}: has no snapshots, so writes to it wait while it is read"
    if not chunk_key(each.model):
        yield "no key: one chunk"
    if each.model.system_versioned:
        yield "without its history"
    if relatives:
        yield f"one snapshot with {some(sorted(map(_shown, relatives)))}"


def some(names: list[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _shown(name: TableName) -> str:
    return ".".join(name)
