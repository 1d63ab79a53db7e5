"""Translates DDL for a target of the other vendor, or of an earlier version (design D33).

The text of the statement is edited token by token. Parts that the target reads like the source remain unchanged, byte
for byte. If no row depends on a part that the target does not support, the part is omitted with a note. Examples are an
index over an expression, a parser, visibility, and a CHECK that is not enforced. Invariant: no edit changes the values
of rows. A statement that would need such an edit is sent unchanged, and the target refuses it.

tests/stories/test_dialects.py tests each form on servers of both vendors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from rplctl.errors import BinlogFormatError, RplError
from rplctl.event.query import Query, QueryContext
from rplctl.schema.context import DdlContext
from rplctl.schema.lexer import opened, tokenize
from rplctl.schema.model import TableModel
from rplctl.sql_text import backticked
from rplctl.target.mysql.edited_elements import GENERATED_CHECK, OF_DATABASES, EditedElements
from rplctl.target.mysql.edited_statement import Gone
from rplctl.target.mysql.session import ServerKind


@dataclass(frozen=True, slots=True)
class Translation:
    """The result of a translation: the statements to send, in order, and notes about omitted parts. There are no
    statements if all parts are omitted.
    """

    queries: tuple[Query, ...]
    notes: tuple[str, ...] = ()


def translated(
    query: Query,
    context: DdlContext,
    target: ServerKind,
    table_model: Callable[[str, str], TableModel | None],
    collations: Callable[[], Mapping[int, str]],
) -> Translation:
    """Translate a DDL statement for the target. A statement that needs no translation, or cannot be parsed, is
    unchanged.

    `query`: a statement without executable comments. `context`: the statement's session on the source. `table_model`:
    returns a table of the target. `collations`: returns the target's collations, id → name.
    """
    is_earlier = target.version // 100 < context.version_number // 100
    if context.is_mariadb == target.is_mariadb and not is_earlier:
        return Translation((query,))
    try:
        text = opened(query.sql_bytes.decode("latin-1"), context, charset=query.charset)
        tokens = tokenize(text, context, query.charset)
    except RplError:
        return Translation((query,))
    statement = _Statement(
        query=query,
        context=context,
        target=target,
        text=text,
        tokens=tokens,
        table_model=table_model,
        collations=collations,
    )
    try:
        before = statement.rewrite()
    except BinlogFormatError:  # a name that cannot be decoded
        return Translation((query,))
    if before is None:
        return Translation((), tuple(statement.notes))
    if not statement.edits:
        return Translation((query,))
    texts = [*before, statement.edited(0, len(text))]
    return Translation(tuple(replace(query, sql_bytes=sql.encode("latin-1")) for sql in texts), tuple(statement.notes))


def in_words_of(definition: str, target: ServerKind) -> tuple[str, tuple[str, ...]]:
    """Translate a definition that SHOW CREATE TABLE printed on a server of the other vendor. Return the new text, and
    notes about omitted parts.
    """
    query = Query(
        timestamp=0, thread_id=0, execution_time=0, error_code=0, database="", sql_bytes=definition.encode(),
        context=QueryContext(flags2=0, sql_mode=0), uses_temporary_tables=False, suppress_use=False,
    )  # fmt: skip
    context = DdlContext(server_version="9.0.0" if target.is_mariadb else "11.4.0-MariaDB")
    found = translated(query, context, target, lambda *_: None, dict)
    return (found.queries[0].sql_bytes.decode() if len(found.queries) == 1 else definition), found.notes


@dataclass(slots=True)
class _Statement(EditedElements):
    """Edits a whole DDL statement: finds its verb and object, and edits each clause. `at` is the index of a token."""

    def rewrite(self) -> list[str] | None:
        """Edit the statement. Return statements that must be sent before it, or None if no part of it remains."""
        at = 0
        if not self.to_mariadb and self.reads(0, "SET STATEMENT"):
            while not self.is_word(at, "FOR") and at < self.end():
                at += 1
            at += 1
            self.cut(0, at)
        try:
            return self._of_verb(at)
        except Gone:
            return None

    def _of_verb(self, at: int) -> list[str]:
        if self.reads(at, "ANALYZE TABLE") and any(self.is_word(n, "HISTOGRAM") for n in range(at, self.end())):
            raise Gone
        verb, kind = self.tokens[at].value, at + 1
        if not self.is_word(at, "CREATE", "ALTER", "DROP"):
            return []
        replaces = verb == "CREATE" and self.reads(kind, "OR REPLACE")
        kind += 2 * replaces
        while self.is_word(kind, "ONLINE", "OFFLINE"):
            if not self.to_mariadb:
                self.cut(kind, kind + 1)
            kind += 1
        if verb != "DROP" and self.is_word(kind, "DATABASE", "SCHEMA"):
            self._database(kind + 1)
        elif verb == "CREATE" and self.is_word(kind, "TABLE"):
            return self._create(at, kind, replaces=replaces)
        elif verb == "ALTER" and self.is_word(kind, "TABLE"):
            self._alter(kind + 1)
        elif self.is_word(kind, "INDEX") or (verb == "CREATE" and self.is_word(kind + 1, "INDEX")):
            return self._index(kind, is_drop=verb == "DROP", replaces=replaces)
        return []

    def _read_name(self, at: int) -> int:
        """Read the table's name and look up its definition. Return the index of the token after the name."""
        first, database = at, self.query.database
        if self.is_symbol(at + 1, "."):
            database, at = self.decoded(at), at + 2
        self.name = self.text[self.tokens[first].start : self.tokens[at].end]
        table, self.table_token = self.decoded(at), at
        self.model = None if self.is_new else self.table_model(database, table)
        numbers = (GENERATED_CHECK.search(check.name) for check in self.model.checks) if self.model else ()
        self.checks = max((int(number[1]) for number in numbers if number), default=0)
        self._quote(first, at + 1)
        return at + 1

    def _database(self, at: int) -> None:
        first = at
        self._cut_options(at, self.end(), OF_DATABASES[self.to_mariadb], also_before="DEFAULT")
        if self.to_mariadb and any(self.reads(n, "READ ONLY") for n in range(at, self.end())):
            raise Gone  # MariaDB has no READ ONLY for databases
        self._words(first, self.end())

    def _create(self, first: int, at: int, *, replaces: bool) -> list[str]:
        self.is_new = True
        after = at + 1 + 3 * self.reads(at + 1, "IF NOT EXISTS")
        after = self._read_name(after)
        if self.is_symbol(after, "("):
            close = self.behind(after) - 1
            self._list(self.parts(after + 1, close), self._element, "")
            after = close + 1
        self._words(after, self.end())
        self._options(after, self.end())
        if replaces and not self.to_mariadb:
            self.cut(first + 1, first + 3)
            return [f"DROP TABLE IF EXISTS {self.name}"]
        return []

    def _alter(self, at: int) -> None:
        has_condition = self.reads(at, "IF EXISTS")
        if has_condition and not self.to_mariadb:
            self.cut(at, at + 2)
        at = self._read_name(at + 2 * has_condition)
        if has_condition and self.model is None:
            raise Gone
        if self.is_word(at, "WAIT", "NOWAIT") and not self.to_mariadb:
            self.cut(at, at + 1 + self.is_word(at, "WAIT"))
            at += 1 + self.is_word(at, "WAIT")
        end = next((n for n in self.outline(at, self.end()) if self._begins_partitions(n)), self.end())
        if end > at and not self._list(self.parts(at, end), self._clause, "ADD ") and end == self.end():
            raise Gone

    def _begins_partitions(self, at: int) -> bool:
        return self.reads(at, "PARTITION BY") or (
            self.is_word(at + 1, "PARTITION") and self.is_word(at, "REORGANIZE", "ADD", "DROP", "EXCHANGE", "CONVERT")
        )

    def _list(self, parts: list[tuple[int, int]], edit: Callable[[int, int], None], verb: str) -> bool:
        """Call `edit` for each part of a list (first token, end token), and join the remaining parts. `verb`: the text
        before CHECKs that `edit` has moved to the end. Return False if no part remains.
        """
        kept, is_changed = [], False
        for first, end in parts:
            if first >= end:
                return True
            edits, self.edits = self.edits, []
            try:
                self._words(first, end)
                edit(first, end)
                part = self.edited(self.tokens[first].start, self.tokens[end - 1].end)
            except Gone:
                part = ""
            is_changed |= bool(self.edits) or not part.strip()
            self.edits = edits
            if part.strip():
                kept.append(part)
        kept += [f"{verb}{check}" for check in self.added]
        if is_changed or self.added:
            self.put(parts[0][0], parts[-1][1], ", ".join(kept))
        self.added = []
        return bool(kept)

    def _index(self, at: int, *, is_drop: bool, replaces: bool) -> list[str]:
        first = at
        at += not self.is_word(at, "INDEX")
        has_condition = self.is_word(at + 1, "IF")
        name = at + 1 + has_condition * (2 if is_drop else 3)
        on = next((n for n in range(name, self.end()) if self.is_word(n, "ON")), self.end() - 1)
        after = self._read_name(on + 1)
        if has_condition:
            self._condition(at + 1, name)
        if is_drop:
            self._refuse_absent(name)
        self._words(first, self.end())
        self._key(after, self.end())
        self._cut_options(after, self.end(), {"ALGORITHM": 1, "LOCK": 1})
        if not replaces or self.to_mariadb:
            return []
        self.cut(first - 2, first)
        known = {key.name.casefold() for key in self.model.keys} if self.model else ()
        text = self.text[self.tokens[name].start : self.tokens[name].end]
        return [f"DROP INDEX {text} ON {self.name}"] if self.decoded(name).casefold() in known else []

    # clauses of ALTER TABLE

    def _clause(self, first: int, end: int) -> None:
        verb, at = self.tokens[first].value, first + 1
        if self.is_word(first, "ALGORITHM", "LOCK", "SECONDARY_LOAD", "SECONDARY_UNLOAD"):
            raise Gone
        if self.is_word(first, "ADD"):
            at += self.is_word(at, "COLUMN")
            if self.is_symbol(at, "("):
                self._list(self.parts(at + 1, end - 1), self._element, "")
            else:
                self._element(at, end)
        elif self.is_word(first, "MODIFY", "CHANGE"):
            at += self.is_word(at, "COLUMN")
            at = self._condition(at, at + 2) if self.reads(at, "IF EXISTS") else at
            self._column(at + (verb == "CHANGE"), end)
        elif self.is_word(first, "DROP"):
            self._drop(at)
        elif self.reads(first, "RENAME INDEX") or self.reads(first, "RENAME KEY"):
            self._refuse_absent(at + 1)
        elif self.reads(first, "RENAME COLUMN") and self.reads(at + 1, "IF EXISTS"):
            self._condition(at + 1, at + 3)
        elif self.is_word(first, "ALTER"):
            self._alter_item(at, end)
        else:
            self._options(first, end)

    def _drop(self, at: int) -> None:
        """Edit a DROP clause of ALTER TABLE. `at`: the index of the token after DROP."""
        kind = self.tokens[at].value if self.is_word(at, "CHECK", "CONSTRAINT", "INDEX", "KEY") else ""
        name = at + (2 if self.reads(at, "FOREIGN KEY") else bool(kind) or self.is_word(at, "COLUMN"))
        if self.reads(name, "IF EXISTS"):
            name = self._condition(name, name + 2)
        if kind in ("CHECK", "CONSTRAINT"):
            self._drop_check(at, name)
        elif kind:
            self._refuse_absent(name)

    def _drop_check(self, at: int, name: int) -> None:
        if self.to_mariadb and self.is_word(at, "CHECK"):
            self.put(at, at + 1, "CONSTRAINT")
        if self.model is None:
            return
        wanted = self.decoded(name)
        checks = {check.name.casefold() for check in self.model.checks}
        if wanted.casefold() in (checks if self.is_word(at, "CHECK") else self.known_names(columns=False)):
            return
        number = GENERATED_CHECK.search(wanted)
        alike = [check.name for check in self.model.checks if number and check.name.endswith(f"_{number[1]}")]
        alike = [check for check in alike if GENERATED_CHECK.search(check) and check.isascii()]
        if len(alike) != 1:
            self.note(f"the constraint {wanted}, which the source drops")
            raise Gone
        self.put(name, name + 1, backticked(alike[0]))

    def _refuse_absent(self, name: int) -> None:
        """Raise Gone if the target's table lacks the index, so that the clause about this index is omitted. Also add a
        note. `name`: the index of the token with the name.
        """
        known = {key.name.casefold() for key in self.model.keys} if self.model is not None else ()
        if self.model is not None and self.decoded(name).casefold() not in known:
            self.note(f"the index {self.decoded(name)}, which the source changes or drops")
            raise Gone

    def _alter_item(self, at: int, end: int) -> None:
        words = [self.tokens[n].value for n in range(at, end)]
        if self.is_word(at, "CHECK", "CONSTRAINT"):
            self.note(f"ALTER {self.shown(at, end)}")
            raise Gone
        if self.is_word(at, "INDEX", "KEY"):
            self._refuse_absent(at + 1)
            self._visibility(at + 2, end)
        elif self.to_mariadb and words[-2:-1] == ["SET"] and words[-1] in ("VISIBLE", "INVISIBLE"):
            self.note(f"ALTER {self.shown(at, end)}")
            raise Gone
        else:
            at += self.is_word(at, "COLUMN")
            if self.reads(at, "IF EXISTS"):
                self._condition(at, at + 2)
            self._expressions(at, end)
