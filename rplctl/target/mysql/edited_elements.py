"""Translates the columns, keys and checks of a DDL statement for a target of the other vendor (design D33)."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from rplctl.schema.column_definition import has_references
from rplctl.target.mysql.collations import COLLATION_NUMBERS, UTF8MB4_GENERAL, near_collation
from rplctl.target.mysql.edited_statement import EditedStatement, Gone

# words that are reserved on the target, but are valid as unquoted names on servers of the other vendor
_RESERVED: Final = {
    True: frozenset(
        "CURRENT_ROLE DELETE_DOMAIN_ID DO_DOMAIN_IDS IGNORE_DOMAIN_IDS OFFSET PAGE_CHECKSUM PARSE_VCOL_EXPR PORTION"
        " REF_SYSTEM_ID RETURNING".split()
    ),
    False: frozenset(
        "CUBE CUME_DIST DENSE_RANK EMPTY EXTERNAL FIRST_VALUE GET GROUPING GROUPS JSON_TABLE LAG LAST_VALUE LATERAL"
        " LEAD LIBRARY NTH_VALUE NTILE OF OPTIMIZER_COSTS PERCENT_RANK QUALIFY RANK TABLESAMPLE WINDOW".split()
    ),
}
# attribute that the target lacks → the number of values after the attribute and an optional '='
_ATTRIBUTES: Final = {
    True: {"COLUMN_FORMAT": 1, "STORAGE": 1, "ENGINE_ATTRIBUTE": 1, "SECONDARY_ENGINE_ATTRIBUTE": 1, "VISIBLE": 0},
    False: {"COMPRESSED": 0, "REF_SYSTEM_ID": 1},
}
_OPTIONS: Final = {
    True: {"ENCRYPTION": 1, "COMPRESSION": 1, "AUTOEXTEND_SIZE": 1, "ENGINE_ATTRIBUTE": 1, "SECONDARY_ENGINE": 1,
           "SECONDARY_ENGINE_ATTRIBUTE": 1, "TABLESPACE": 1, "STORAGE": 1},
    False: {"PAGE_CHECKSUM": 1, "TRANSACTIONAL": 1, "PAGE_COMPRESSED": 1, "PAGE_COMPRESSION_LEVEL": 1, "ENCRYPTED": 1,
            "ENCRYPTION_KEY_ID": 1, "IETF_QUOTES": 1},
}  # fmt: skip
OF_DATABASES: Final = {True: {"ENCRYPTION": 1}, False: {"COMMENT": 1}}
_ENGINES: Final = {True: frozenset({"NDB", "NDBCLUSTER"}), False: frozenset({"ARIA", "MARIA", "ROCKSDB", "TOKUDB"})}
# Functions that only MySQL has. A generated column with such a function becomes a plain column on MariaDB.
_ONLY_MYSQL: Final = frozenset(
    "UUID_TO_BIN BIN_TO_UUID IS_UUID REGEXP_LIKE JSON_STORAGE_SIZE JSON_STORAGE_FREE JSON_SCHEMA_VALIDATION_REPORT"
    " STATEMENT_DIGEST ST_LATITUDE ST_LONGITUDE ST_TRANSFORM ST_GEOHASH ANY_VALUE GROUPING".split()
)
_ARROWS: Final = {"->": "JSON_EXTRACT({})", "->>": "JSON_UNQUOTE(JSON_EXTRACT({}))"}
_KEYS: Final = frozenset({"PRIMARY", "UNIQUE", "INDEX", "KEY", "FULLTEXT", "SPATIAL"})
_TEXTS: Final = frozenset("TINYTEXT TEXT MEDIUMTEXT LONGTEXT TINYBLOB BLOB MEDIUMBLOB LONGBLOB JSON GEOMETRY".split())
GENERATED_CHECK: Final = re.compile(r"(?:_chk_|\ACONSTRAINT_)(\d+)\Z")
_CHECKS_SINCE, _EXPRESSION_KEYS_SINCE, _INVISIBLE_SINCE, _IGNORED_SINCE = 80016, 80013, 80000, 100600


@dataclass(slots=True)
class EditedElements(EditedStatement):
    """Edits the columns, keys and checks in a CREATE TABLE or ALTER TABLE statement. In each method, `first`, `at` and
    `end` are indexes of tokens; `end` is exclusive.
    """

    def _element(self, first: int, end: int) -> None:
        """Edit the definition of one column, key or constraint, in CREATE TABLE or after ADD."""
        at = first
        if self.is_word(first, "CONSTRAINT", "CHECK"):
            at += self.is_word(first, "CONSTRAINT")
            if self.reads(at, "IF NOT EXISTS"):
                at = self._condition(at, at + 3)
            at += not self.is_word(at, "CHECK", "FOREIGN", *_KEYS)
            if self.is_word(at, "CHECK"):
                self.put(first, end, self._check(first, at, end))
                return
        is_vector = self.is_word(at, "VECTOR") and self.is_word(at + 1, "INDEX", "KEY")
        if is_vector or self.is_word(at, "FOREIGN", *_KEYS):
            condition = next((n for n in self.outline(at, end) if self.reads(n, "IF NOT EXISTS")), None)
            if condition is not None:
                self._condition(condition, condition + 3)
            self._key(at, end)
            return
        if self.reads(at, "IF NOT EXISTS"):
            at = self._condition(at, at + 3)
        self._column(at, end)

    def _check(self, first: int, at: int, end: int) -> str:
        """Return the translated text of a CHECK, with the name that the CHECK has on the source. If the target does not
        support the CHECK, raise Gone, so that the caller omits the CHECK.
        """
        body = self.behind(at + 1)
        name = self.text[self.tokens[at - 1].start : self.tokens[at - 1].end] if at - first >= 2 else ""
        if not name and not self.context.is_mariadb:
            self.checks += 1
            name = self.named_after_table(f"_chk_{self.checks}")
        if name.startswith(("CONSTRAINT_", "`CONSTRAINT_")) and not self.to_mariadb:
            name = ""  # MySQL's names of checks must be unique in the database
        keeps = not self.to_mariadb and self.target.version >= _CHECKS_SINCE
        if (self.is_word(body, "NOT") and not keeps) or (self.to_mariadb and self._is_only_mysql(at, body)):
            self.note(self.shown(first, end))
            raise Gone
        edits, self.edits = self.edits, []
        self._words(at, body)
        self._expressions(at, body)
        last = body + 1 if self.is_word(body, "NOT") else body - 1
        text = self.edited(self.tokens[at].start, self.tokens[last].end)
        self.edits = edits
        return f"CONSTRAINT {name} {text}" if name else text

    def _key(self, first: int, end: int) -> None:
        """Edit the definition of a key: its columns and its options. If the target does not support the key, raise
        Gone, so that the caller omits the key.
        """
        outline = self.outline(first, end)
        group = next((n for n in outline if self.is_symbol(n, "(")), end)
        takes = not self.to_mariadb and self.target.version >= _EXPRESSION_KEYS_SINCE
        is_foreign = self.is_word(first, "FOREIGN")
        if group < end and not is_foreign and not takes:
            for begin, _ in self.parts(group + 1, self.behind(group) - 1):
                if self.is_symbol(begin, "("):
                    self.note(self.shown(first, end))
                    raise Gone
        if self.is_word(first, "VECTOR") and not self.to_mariadb:
            self.note(self.shown(first, end))
            raise Gone
        for at in outline:
            if self.reads(at, "WITH PARSER"):
                self.note(self.shown(at, at + 3))
                self.cut(at, at + 3)
        self._visibility(group, end)
        attributes = {name: count for name, count in _ATTRIBUTES[self.to_mariadb].items() if name != "VISIBLE"}
        self._cut_options(group, end, attributes)

    def _visibility(self, first: int, end: int) -> None:
        """Replace the attribute INVISIBLE of an index with MariaDB's IGNORED, or IGNORED with INVISIBLE for MySQL."""
        for at in self.outline(first, end):
            if not self.is_word(at, "VISIBLE", "INVISIBLE", "IGNORED"):
                continue
            begin = at - self.is_word(at - 1, "NOT")
            is_hidden = self.is_word(at, "INVISIBLE") or (self.is_word(at, "IGNORED") and begin == at)
            since = _IGNORED_SINCE if self.to_mariadb else _INVISIBLE_SINCE
            words = ("IGNORED", "NOT IGNORED") if self.to_mariadb else ("INVISIBLE", "VISIBLE")
            if self.target.version < since:
                self.note(self.shown(begin, at + 1))
                self.cut(begin, at + 1)
            else:
                self.put(begin, at + 1, words[not is_hidden])

    def _column(self, first: int, end: int) -> None:
        """Edit the definition of a column. `first`: the index of the token with the column's name."""
        outline = [at for at in self.outline(first, end) if not self.is_word(at - 1, "AFTER")]
        words = {self.tokens[n].value for n in outline[1:] if self.tokens[n].kind == "word"}
        is_generated = "AS" in words
        for at in outline[2:]:
            if self.is_word(at, "CHECK"):
                self._move_check(first, at)
            elif self.is_word(at, "REFERENCES") and not has_references(self.context):
                self.cut(at, self._end_of_reference(at))
            elif self.is_word(at, "SRID") and self.to_mariadb:
                self.put(at, at + 1, "REF_SYSTEM_ID=")
            elif self.is_word(at, "INVISIBLE") and self.to_mariadb:
                if words & {"NOT", "PRIMARY"} and not words & {"DEFAULT", "AUTO_INCREMENT"}:
                    self.note(f"INVISIBLE of {self.shown(first, first + 1)}")
                    self.cut(at, at + 1)
            elif self.is_word(at, "NULL") and is_generated and self.to_mariadb and not self.is_word(at - 1, "DEFAULT"):
                begin = at - self.is_word(at - 1, "NOT")
                self.cut(begin, at + 1)
            elif self.is_word(at, "PERSISTENT") and not self.to_mariadb:
                self.put(at, at + 1, "STORED")
            elif self.is_word(at, "DEFAULT"):
                self._default(first, at, end)
            elif self.is_word(at, "AS") and self.to_mariadb and self.is_new:
                self._plain(first, at)
        if self.is_word(first + 1, "GEOMCOLLECTION") and self.to_mariadb:
            self.put(first + 1, first + 2, "GEOMETRYCOLLECTION")
        self._cut_options(first + 2, end, _ATTRIBUTES[self.to_mariadb])
        self._expressions(first + 1, end)

    def _end_of_reference(self, at: int) -> int:
        """Return the index after the clause REFERENCES that begins at `at`."""
        end = at + (4 if self.is_symbol(at + 2, ".") else 2)
        if self.is_symbol(end, "("):
            end = self.behind(end)
        while self.is_word(end, "MATCH", "ON"):
            end += 2
            if self.is_word(end - 2, "ON"):
                end += 2 if self.is_word(end, "SET", "NO") else 1
        return end

    def _plain(self, first: int, at: int) -> None:
        """Turn a generated column into a plain column if MariaDB cannot compute its expression. The logged rows contain
        the values of the column.
        """
        begin, end = at - 2 * self.is_word(at - 1, "ALWAYS"), self.behind(at + 1)
        if not self._is_only_mysql(at, end):
            return
        end += self.is_word(end, "VIRTUAL", "STORED")
        self.note(f"column {self.shown(first, first + 1)} {self.shown(begin, end)}")
        self.cut(begin, end)

    def _move_check(self, first: int, at: int) -> None:
        """Move the CHECK of a column to the table, because MariaDB gives no name to the CHECK of a column."""
        end = self.behind(at + 1)
        end += (self.is_word(end, "NOT") and self.is_word(end + 1, "ENFORCED")) * 2 or self.is_word(end, "ENFORCED")
        begin = at - (2 if self.is_word(at - 2, "CONSTRAINT") else self.is_word(at - 1, "CONSTRAINT"))
        if self.context.is_mariadb:
            return
        self.cut(begin, end)
        with suppress(Gone):
            self.added.append(self._check(begin, at, end))

    def _default(self, first: int, at: int, end: int) -> None:
        """Edit the DEFAULT of a column. If MariaDB cannot compute the DEFAULT, omit it from a new table. But rows of an
        existing table may need the DEFAULT, so it then remains, and MariaDB refuses the statement.
        """
        value, after = at + 1, self.behind(at + 1)
        if self.to_mariadb:
            if self.is_new and self._is_only_mysql(value, after):
                self.note(f"DEFAULT {self.shown(value, after)}")
                self.cut(at, after)
            return
        is_call = self.tokens[value].kind == "word" and self.is_symbol(after, "(")
        is_literal = self.tokens[value].kind in ("string", "number", "bits")
        if is_call and not self.is_word(value, "CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP"):
            after = self.behind(after)
        elif not (is_literal and self.tokens[first + 1].value in _TEXTS):
            return
        self.edits.append((self.tokens[value].start, self.tokens[value].start, "("))
        self.edits.append((self.tokens[after - 1].end, self.tokens[after - 1].end, ")"))

    def _is_only_mysql(self, first: int, end: int) -> bool:
        return any(
            (self.is_word(at, *_ONLY_MYSQL) and self.is_symbol(at + 1, "(")) or self.reads(at, "MEMBER OF")
            for at in range(first, end)
        )

    def _expressions(self, first: int, end: int) -> None:
        """Replace expressions such as `j->'$.a'` with JSON_EXTRACT if the target is MariaDB."""
        if not self.to_mariadb:
            return
        for at in range(first + 1, end - 1):
            form = _ARROWS.get(self.tokens[at].value) if self.tokens[at].kind == "symbol" else None
            if form is None or self.tokens[at + 1].kind != "string":
                continue
            begin = at - 1
            while self.is_symbol(begin - 1, "."):
                begin -= 2
            start, last = self.tokens[begin].start, self.tokens[at + 1].end
            if not any(start <= edit[0] < last for edit in self.edits):
                path = self.text[self.tokens[at + 1].start : last]
                self.put(begin, at + 2, form.format(f"{self.text[start : self.tokens[at - 1].end]}, {path}"))

    # words that can be in any clause

    def _options(self, first: int, end: int) -> None:
        """Edit the options of a table, such as ENGINE. The clause PARTITION BY and all later tokens stay unchanged."""
        end = next((n for n in range(first, end) if self.reads(n, "PARTITION BY")), end)
        self._cut_options(first, end, _OPTIONS[self.to_mariadb])
        for at in range(first, end):
            value = at + 1 + self.is_symbol(at + 1, "=")
            if self.is_word(at, "ENGINE") and self.tokens[value].value.upper() in _ENGINES[self.to_mariadb]:
                self.note(f"ENGINE={self.tokens[value].value}")
                self.put(value, value + 1, "InnoDB")

    def _cut_options(self, first: int, end: int, names: dict[str, int], also_before: str = "") -> None:
        for at in self.outline(first, end):
            token = self.tokens[at]
            if token.kind == "word" and token.value in names and not self.is_word(at - 1, "AFTER", "REFERENCES"):
                after = at + 1
                if names[token.value] or self.is_symbol(after, "="):
                    after += 1 + self.is_symbol(after, "=")
                begin = at - (bool(also_before) and self.is_word(at - 1, also_before))
                self.cut(begin, min(after, end))

    def _words(self, first: int, end: int) -> None:
        """Replace collations that the target lacks, and quote names that are reserved words on the target."""
        has_collation = any(self.is_word(at, "COLLATE") for at in range(first, end))
        for at in range(first, end):
            value = at + 1 + self.is_symbol(at + 1, "=")
            if self.is_word(at, "COLLATE") and value < end:
                name = self.tokens[value].value.lower()
                near = near_collation(name, self.collations().values())
                if near != name:
                    self.put(value, value + 1, near)
        for at in () if has_collation else self.outline(first, end):  # not in expressions
            value = at + 1 + self.is_symbol(at + 1, "=")
            if self.is_word(at, "CHARSET") or self.reads(at - 1, "CHARACTER SET"):
                if value < end and self.tokens[value].value.lower() == "utf8mb4":
                    self._default_collation(value)
        self._quote(first, end)

    def _default_collation(self, at: int) -> None:
        """Write the source's default collation after the character set utf8mb4. The default differs between the
        vendors, and the collation decides which keys are equal.
        """
        if self.context.is_mariadb:
            return
        number = self.query.context.default_collation_for_utf8mb4 or UTF8MB4_GENERAL  # MySQL logs it since 8.0
        near = near_collation(COLLATION_NUMBERS.get(number, ""), self.collations().values())
        if near in self.collations().values():
            token = self.tokens[at]
            self.edits.append((token.end, token.end, f" COLLATE {near}"))

    def _quote(self, first: int, end: int) -> None:
        for at in range(first, end):
            if self.is_word(at, *_RESERVED[self.to_mariadb]):
                token = self.tokens[at]
                if not any(start <= token.start < last for start, last, _ in self.edits):
                    self.put(at, at + 1, f"`{self.text[token.start : token.end]}`")
