"""Which tables a copy takes: those that the channel's filters let through, chosen by the target's names.

Invariant: a table that the target has is taken only with `replace`, and then with all that reference it: their rows
follow its rows by foreign keys, which act while its events are left out. What the account may not see is refused with
the GRANT that shows it, not left out.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

from rplctl import mysql_errors as er
from rplctl.applier.decode.filter_rules import ReplicationFilter, moved
from rplctl.clone.bounds import chunk_key
from rplctl.clone.source_tables import Missing, SourceTables, TableFacts, Wanted, read_source_tables
from rplctl.clone.table_groups import table_groups
from rplctl.command.channel.context import Repositories
from rplctl.command.show_clone import cloned
from rplctl.config import Config, split_list
from rplctl.errors import RplError, SourceError, UsageError
from rplctl.info import MasterInfo
from rplctl.own_tables.initial_models import stands
from rplctl.schema.model import TableModel
from rplctl.schema.statement import TableName
from rplctl.sql_run import run
from rplctl.sql_text import written
from rplctl.target import dialect_of, open_target, statement_target

SNAPSHOT_ENGINE = "innodb"
_LOCKED_ENGINES = ("myisam", "aria", "memory")  # a statement locks the table, and is seen when it is logged
DUMP = "INITIAL COPY in rplctl(1) shows the way with a dump"
_MOST_NAMED = 10
_ROWS_A_SECOND, _BYTES_A_SECOND = 120_000, 20 << 20  # into MariaDB, on two cores that both servers share


@dataclass(frozen=True, slots=True)
class Choice:
    """Names are the target's; without any the tables that it lacks are meant. `replace`: also those that it has."""

    databases: tuple[str, ...] = ()
    tables: tuple[TableName, ...] = ()
    replace: bool = False

    @classmethod
    def of(cls, databases: str, tables: str, *, replace: bool) -> Choice:
        """The choice that lists like the filters' make. Raises UsageError."""
        names = []
        for name in split_list(tables):
            database, _, table = name.partition(".")
            if not (database and table):
                raise UsageError(f"--tables {name}: write db.table,…")
            names.append((database, table))
        return cls(tuple(split_list(databases)), tuple(names), replace)

    @property
    def is_made(self) -> bool:
        return bool(self.databases or self.tables)

    def takes(self, name: TableName) -> bool:
        return not self.is_made or name in self.tables or name[0] in self.databases


@dataclass(frozen=True, slots=True)
class TableToClone:
    """Field names are columns. `Row_count` and `Byte_count` are what the source believes, `Seconds` what follows from
    them on a machine of two cores; of what the account may not see they are not known.
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
    """`models`: the tables that are copied, by the source's names; `refusal`: why they are not."""

    source: SourceTables
    models: dict[TableName, TableModel]
    listed: tuple[TableToClone, ...]
    refusal: RplError | None


@dataclass(frozen=True, slots=True)
class _Found:
    """A table of the source that the filters let through. `ours`: the model under the target's name."""

    model: TableModel
    ours: TableModel
    facts: TableFacts

    @property
    def name(self) -> TableName:
        return self.ours.database, self.ours.name


@dataclass(frozen=True, slots=True)
class _Chosen:
    """The source's tables, and the ones to copy. Names are the target's."""

    choice: Choice
    tables: Mapping[TableName, _Found]
    taken: Mapping[TableName, _Found]
    there: Collection[TableName]  # in the target
    begun: Collection[TableName]  # those that are being copied already
    names: Collection[TableName]  # of all, sequences too
    is_new: bool  # a channel that has not begun
    clash: Sequence[TableName]  # those that the target takes for one

    @property
    def stay(self) -> set[TableName]:
        """Those that have rows without this copy."""
        return {*self.there, *self.begun}


def make_plan(repositories: Repositories, master: MasterInfo, choice: Choice, *, is_new: bool) -> ClonePlan:
    """Raises SourceError, TargetError; UsageError for a table that cannot be meant."""
    config = repositories.config
    rules = ReplicationFilter.from_config(config)
    source = read_source_tables(config, master, wanted(rules, choice), is_new=is_new)
    found = [_Found(model, moved(model, rules), source.facts.get(name, TableFacts("InnoDB", 0, 0)))
             for name, model in source.catalog.tables.items()]  # fmt: skip
    tables = {each.name: each for each in found if not each.model.is_sequence}
    begun = {row.name for row in cloned(repositories) if row.is_open}
    there, alike = _in_target(config, tables, begun)
    taken = {
        name: each
        for name, each in tables.items()
        if choice.takes(name) and name not in begun and (name not in there or choice.replace)
    }
    clash = next((names for names in alike if not taken.keys().isdisjoint(names)), [])
    chosen = _Chosen(choice, tables, taken, there, begun, {each.name for each in found}, is_new, clash)
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
    """Its names at the source."""
    return [old for old in (*(o for o, new in rules.rewrite_db if new == database), database)
            if rules.rewritten(old) == database]  # fmt: skip


def _in_target(
    config: Config, tables: Mapping[TableName, _Found], begun: Collection[TableName]
) -> tuple[set[TableName], list[list[TableName]]]:
    """Tables that it has, and those of which it can have one only: where it compares names without case."""
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
    """None when none is missing."""
    if not missing:
        return None
    lacking = dict.fromkeys(m.right if not m.database else f"SELECT on {m.database}.{m.table or '*'}" for m in missing)
    grants = [m.grant for m in missing]
    more = f" … rplctl clone --dry-run lists all {len(grants)}" if len(grants) > _MOST_NAMED else ""
    other = ""
    if any(not m.database and m.right == "SELECT" for m in missing):
        other = " A server hides tables from who may not read them; or name what is meant: rplctl change-filter"
    return SourceError(
        f"the account lacks rights on the source: {some(list(lacking))}",
        errno=er.TABLEACCESS_DENIED_ERROR,
        hint=" ".join(grants[:_MOST_NAMED]) + more + other,
    )


def _refusals(chosen: _Chosen, rules: ReplicationFilter, missing: Collection[Missing]) -> Iterator[RplError]:
    """Yield the reasons against the copy, the most important one first."""
    choice, there = chosen.choice, sorted(_shown(name) for name in chosen.there if chosen.choice.takes(name))
    if left_out := [_shown(name) for name in choice.tables if not rules.accepts_rows(*name)]:
        text = f"the channel's filters leave out {some(left_out)}"
        yield UsageError(text, hint="rplctl stop, then rplctl change-filter takes tables in")
    if refusal := refusal_of_rights(missing):
        yield refusal
    if gone := [name for name in choice.tables if name not in chosen.names]:
        yield SourceError(
            f"the source has no table {_shown(gone[0])}",
            errno=er.NO_SUCH_TABLE,
            hint="to list the tables, run on the source: SHOW TABLES",
        )
    databases = {database for database, _ in chosen.names}
    if empty := [name for name in choice.databases if name not in databases]:
        text = f"the source has no table in {empty[0]} that the channel's filters let through"
        yield SourceError(text, errno=er.BAD_DB_ERROR, hint="rplctl show-status shows the filters")
    if there and choice.is_made and not choice.replace:
        hint = "add --replace: it is dropped and copied again, and what the target alone has in it is lost"
        yield UsageError(f"the target has {some(there)} already", hint=hint)
    if there and chosen.is_new and not choice.replace:
        yield UsageError(
            f"the target has tables of the source already: {some(there)}",
            hint="drop them, or leave them out with rplctl change-filter; if their rows are of a known position, "
            "name it to rplctl change-master, and clone copies what is missing",
        )
    if chosen.clash:
        yield UsageError(
            f"the target takes {some([_shown(name) for name in chosen.clash])} for one table",
            hint=f"rplctl change-filter --replicate-ignore-table {_shown(chosen.clash[-1])} leaves one out; or another"
            " target, that tells them apart",
        )
    known = (SNAPSHOT_ENGINE, *_LOCKED_ENGINES)
    if strange := [_shown(name) for name, each in chosen.taken.items() if each.facts.engine.lower() not in known]:
        yield SourceError(
            f"tables of an engine that is not known to be copied exactly: {some(strange)}",
            hint="ALTER TABLE … ENGINE=InnoDB on the source, or leave them out with rplctl change-filter",
        )
    yield from _of_children(chosen)
    rest = [_shown(name) for name in chosen.tables if name not in chosen.taken and name not in chosen.stay]
    if rest and chosen.is_new:  # a channel that begins here would stop at their first event
        yield UsageError(
            f"the channel replicates {some(rest)}, too, which would be neither copied nor there",
            hint=_filter_to(choice),
        )


def _filter_to(choice: Choice) -> str:
    """Return the command that makes the channel replicate what is chosen, and nothing else."""
    if choice.databases and choice.tables:
        return "rplctl change-filter leaves tables out; or name all of them"
    what, rule = ("--databases", "--replicate-do-db") if choice.databases else ("--tables", "--replicate-do-table")
    names = shlex.quote(",".join(choice.databases or map(_shown, choice.tables)))
    again = " --replace" if choice.replace else ""
    return (
        f"to replicate only what is copied, run: rplctl change-filter {rule} {names} && "
        f"rplctl clone {what} {names}{again}"
    )


def _of_children(chosen: _Chosen) -> Iterator[RplError]:
    """Also those that are being copied: in another snapshot."""
    for name in sorted(chosen.stay):
        for key in chosen.tables[name].ours.foreign_keys if name in chosen.tables and name not in chosen.taken else ():
            if (parent := (key.ref_database, key.ref_table)) in chosen.taken:
                yield UsageError(
                    f"{_shown(name)} references {_shown(parent)}, and would miss what its foreign key does meanwhile",
                    hint=f"name both: --tables {_shown(parent)},{_shown(name)}",
                )


def _of_missing(missing: Iterable[Missing], rules: ReplicationFilter) -> Iterator[TableToClone]:
    for each in missing:
        database = rules.rewritten(each.database) if each.database else "*"
        text = f"the account lacks {each.right}" + (
            "" if each.table or each.right != "SELECT" else ": tables are hidden"
        )
        yield TableToClone(database, each.table or "*", None, None, text, Missing_Grant=each.grant)


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
            notes.append("is dropped and copied again" if choice.replace else "is there: --replace copies it again")
        rows, size = each.facts.rows, each.facts.bytes
        if each.model.is_sequence:
            rows = size = 0
        seconds = round(max(rows / _ROWS_A_SECOND, size / _BYTES_A_SECOND), 1)
        yield TableToClone(*each.name, rows, size, "; ".join(notes), seconds)


def _notes(each: _Found, relatives: list[TableName]) -> Iterator[str]:
    if each.model.is_sequence:
        yield "sequence: its value comes with the next that is taken"
        return
    if each.facts.engine.lower() != SNAPSHOT_ENGINE:
        yield f"{each.facts.engine}: shows no snapshot, nothing may write to it while it is read"
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
