"""Random pairs of rows and the DDL that is carried out over them: every type, literal, clause and session variable.

A pair is one table: its CREATE, rows at the edges of its types, one to three DDL statements and changes of rows after
each. Statements that the source refuses are no part of the pair.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

WHOLE = ["0", "1", "-1", "7", "127", "-128", "255", "32767", "65535", "8388607", "2147483647", "-2147483648",
         "4294967295", "9007199254740993", "9223372036854775807", "-9223372036854775808", "18446744073709551615",
         "20240102", "2024", "69", "70"]  # fmt: skip
TEXT_TYPES = ["CHAR(1)", "CHAR(5)", "CHAR(30)", "VARCHAR(1)", "VARCHAR(5)", "VARCHAR(30)", "VARCHAR(30)",
              "VARCHAR(255)", "VARCHAR(300)", "TINYTEXT", "TEXT", "TEXT(100)", "MEDIUMTEXT", "LONGTEXT"]  # fmt: skip
BITS = ["0", "1", "b'101'", "255", "X'FFFFFFFF'"]
BROKEN = ["0.5", "-0.5", "1.5", "2.5", "0.05", "-0.05", "9.995", "123456.789", "1234567890123456.7891", "0.1", "99.99"]
FLOATS = [*BROKEN, "1e10", "-1e10", "1e30", "3e-5", "16777217", "1e15", "123456789.123", "1e16", "0", "7", "-12"]
TEXTS = ["''", "'a'", "'A'", "'a '", "' b'", "'12'", "'1.5'", "'-7'", "'1e3'", "'abc'", "'2024-01-02'", "'10:11:12'",
         "'2024-01-02 03:04:05.678'", "'Ä'", "'ß€'", "'日本'", "'x,y'", "'0'", "'00012'", "'it''s'", "'a\"b'", "'%_'",
         "'[1, 2]'", "'{\"k\": null}'"]  # fmt: skip
BYTES = ["X''", "X'00'", "X'FF'", "X'61'", "X'616263'", "X'61620000'", "X'20'", "X'C3A4'", "X'3132'"]
DATES = ["'2024-01-02'", "'1000-01-01'", "'9999-12-31'", "'1969-12-31'", "'2024-02-29'", "'0000-00-00'"]
TIMES = ["'10:11:12'", "'00:00:00'", "'-10:11:12.5'", "'838:59:59'", "'-838:59:59'", "'23:59:59.999999'",
         "'00:00:00.4'", "'100:00:00.25'"]  # fmt: skip
MOMENTS = ["'2024-01-02 03:04:05'", "'1971-01-01 00:00:01'", "'2037-12-31 23:59:59.999999'", "'2024-02-29 12:00:00.5'",
           "'2024-12-31 23:59:59.49'", "'2000-01-01 00:00:00.000001'"]  # fmt: skip
WIDE_MOMENTS = [*MOMENTS, "'1000-01-01 00:00:00'", "'9999-12-31 23:59:59'", "'1969-12-31 23:59:59.75'"]
LABELS = [["a", "b", "c"], ["c", "b", "a"], ["a", "b", "c", "d"], ["A", "b"], ["1", "2", "12"], ["", "x", "ä"]]
CHARSETS = ["", "", "", "utf8mb4", "utf8mb4", "latin1", "latin1", "utf8mb3", "ascii", "binary", "cp1251", "ucs2", "gbk"]
COLLATIONS = ["utf8mb4_bin", "utf8mb4_general_ci", "latin1_bin", "utf8mb4_unicode_ci", "latin1_general_cs"]
DOCUMENTS = ["'[]'", "'{\"a\": 1}'", "'null'", "'\"x\"'", "'1.50'"]
POINTS = ["ST_GeomFromText('POINT(1 2)')", "ST_GeomFromText('POINT(-1.5 0)')"]
MODES = ["", "", "STRICT_TRANS_TABLES", "STRICT_ALL_TABLES", "STRICT_TRANS_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE",
         "PAD_CHAR_TO_FULL_LENGTH", "ANSI_QUOTES", "NO_BACKSLASH_ESCAPES", "REAL_AS_FLOAT", "NO_AUTO_VALUE_ON_ZERO",
         "PIPES_AS_CONCAT", "STRICT_TRANS_TABLES,IGNORE_SPACE", "NO_UNSIGNED_SUBTRACTION", "ALLOW_INVALID_DATES",
         "STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION,ERROR_FOR_DIVISION_BY_ZERO"]  # fmt: skip
ZONES = ["+00:00", "+02:00", "-05:30", "SYSTEM"]
LITERALS = ["NULL", "0", "1", "-1", "7", "007", "1.5", "-2.50", "1e2", ".5", "''", "'a'", "'12'", "'1.5'", "'1e1'",
            "X'31'", "0x4142", "b'101'", "TRUE", "FALSE", "'2024-1-5'", "20240105", "DATE'2024-01-05'", "'10:11'",
            "TIME'10:11:12'", "'2024-01-05 10:11:12.345'", "TIMESTAMP'2024-01-05 10:11:12'", "_latin1'ab'", "N'x'",
            "_utf8mb4'ä'", "'b'", "'B'", "'a,b'", "'[]'", "(1+1)", "(CONCAT('a','b'))", "CURRENT_TIMESTAMP", "'Ä'",
            "99999999999", "'[1]'", "(UUID())", "('x')"]  # fmt: skip
OF_NUMBERS = [("INT", "{} + 1"), ("BIGINT", "{} * 2 - {}"), ("INT", "COALESCE({}, 0)"), ("INT", "{} IS NULL"),
              ("VARCHAR(99)", "CONCAT({}, '-', {})"), ("VARCHAR(99)", "CONCAT_WS(',', {}, {})")]  # fmt: skip
OF_DATES = [("INT", "YEAR({})"), ("DATE", "DATE({})"), ("VARCHAR(99)", "CONCAT_WS(' ', {}, {})")]
OF_TEXTS = [
    ("VARCHAR(99)", "CONCAT({}, '-', {})"), ("VARCHAR(99)", "CONCAT_WS(',', {}, {})"), ("INT", "LENGTH({})"),
    ("INT", "CHAR_LENGTH({})"), ("VARCHAR(99)", "UPPER({})"), ("VARCHAR(99)", "LOWER({})"), ("TEXT", "LEFT({}, 2)"),
    ("INT", "{} IS NULL"), ("VARCHAR(99)", "IFNULL({}, 'none')"), ("VARCHAR(99)", "TRIM({})"), ("CHAR(32)", "MD5({})"),
    ("VARCHAR(99)", "SUBSTRING({}, 2, 3)"),
]  # fmt: skip
PARTITIONS = [
    "PARTITION BY HASH (id) PARTITIONS 3", "PARTITION BY KEY (id) PARTITIONS 2",
    "PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (2), PARTITION p1 VALUES LESS THAN (4), "
    "PARTITION p2 VALUES LESS THAN MAXVALUE)",
    "PARTITION BY LIST (id) (PARTITION p0 VALUES IN (1, 2), PARTITION p1 VALUES IN (3, 4, 5), "
    "PARTITION p2 VALUES IN (6, 7, 8, 9, 10, 11, 12))",
]  # fmt: skip
MOST_REFUSED = 6


@dataclass
class Type:
    """One SQL type as it is declared, values at its edges and the literals that may be its default."""

    text: str
    values: Sequence[str]
    kind: str  # of types that convert alike

    @property
    def is_key(self) -> bool:
        return self.kind in ("whole", "decimal", "text", "bytes", "date", "moment", "label", "year")


@dataclass
class Table:
    """What the generator remembers of a table: enough to name columns that probably exist."""

    name: str
    columns: dict[str, Type] = field(default_factory=dict)
    is_partitioned: bool = False


class Pairs:
    """The generator; one seed gives the same pairs again."""

    def __init__(self, seed: int, vendor: str) -> None:
        self.chance, self.is_mariadb = random.Random(seed), vendor == "mariadb"

    def pick(self, *choices: str) -> str:
        return self.chance.choice(choices)

    def often(self, share: float) -> bool:
        return self.chance.random() < share

    # types

    def type(self) -> Type:
        makers: list[Callable[[], Type]] = [
            self.whole, self.whole, self.whole, self.decimal, self.floating, self.text, self.text, self.text,
            self.bytes, self.date, self.time, self.moment, self.moment, self.label, self.other,
        ]  # fmt: skip
        return self.chance.choice(makers)()

    def whole(self) -> Type:
        name = self.pick("TINYINT", "SMALLINT", "MEDIUMINT", "INT", "INT", "BIGINT", "BIGINT", "BOOL", "BIT", "YEAR")
        if name == "YEAR":
            return Type("YEAR", ["2024", "1901", "2155", "0", "'70'", "69"], "year")
        if name == "BIT":
            return Type(
                f"BIT({self.pick('1', '8', '9', '33', '64')})", ["0", "1", "b'101'", "255", "X'FFFFFFFF'"], "bit"
            )
        sign = self.pick("", "", "", " UNSIGNED", " ZEROFILL") if name != "BOOL" else ""
        return Type(f"{name}{'(6)' if sign == ' ZEROFILL' else ''}{sign}", WHOLE, "whole")

    def decimal(self) -> Type:
        size = self.pick("(5,0)", "(5,2)", "(10,2)", "(20,4)", "(20,0)", "(38,10)", "(65,30)", "(6,3)", "")
        return Type(f"DECIMAL{size}{self.pick('', '', '', ' UNSIGNED', ' ZEROFILL')}", [*WHOLE, *BROKEN], "decimal")

    def floating(self) -> Type:
        name = self.pick("FLOAT", "DOUBLE", "DOUBLE", "REAL", "FLOAT(7,2)", "DOUBLE(9,3)", "DOUBLE(7,1)", "FLOAT(30)")
        return Type(name + self.pick("", "", "", "", " UNSIGNED"), FLOATS, "float")

    def text(self) -> Type:
        name = self.chance.choice(TEXT_TYPES)
        return Type(name + self.charset(), TEXTS, "text")

    def charset(self) -> str:
        if self.often(0.15):
            return f" COLLATE {self.chance.choice(COLLATIONS)}"
        name = self.chance.choice(CHARSETS)
        return f" CHARACTER SET {name}" if name else ""

    def bytes(self) -> Type:
        name = self.pick("BINARY(1)", "BINARY(4)", "VARBINARY(3)", "VARBINARY(30)", "TINYBLOB", "BLOB", "LONGBLOB")
        return Type(name, [*BYTES, *TEXTS[:9]], "bytes")

    def date(self) -> Type:
        return Type("DATE", DATES, "date")

    def digits(self) -> str:
        return self.pick("", "", "(1)", "(2)", "(3)", "(6)", "(6)")

    def time(self) -> Type:
        return Type(f"TIME{self.digits()}", TIMES, "time")

    def moment(self) -> Type:
        if self.often(0.4):
            return Type(f"TIMESTAMP{self.digits()}{self.pick(' NULL', ' NULL', '')}", MOMENTS, "moment")
        return Type(f"DATETIME{self.digits()}", WIDE_MOMENTS, "moment")

    def label(self) -> Type:
        labels = self.chance.choice(LABELS)
        listed = ", ".join(f"'{label}'" for label in labels)
        kind = self.pick("ENUM", "ENUM", "SET")
        return Type(f"{kind}({listed}){self.charset()}", [*(f"'{label}'" for label in labels), "1", "2"], "label")

    def other(self) -> Type:
        kinds = [Type("JSON", DOCUMENTS, "json"), Type("POINT", POINTS, "point"), Type("GEOMETRY", POINTS, "point")]
        if self.is_mariadb:
            kinds += [
                Type("UUID", ["'123e4567-e89b-12d3-a456-426614174000'", "UUID()"], "uuid"),
                Type("INET6", ["'::1'", "'2001:db8::1'", "'10.0.0.1'"], "inet"),
                Type("INET4", ["'10.0.0.1'", "'255.255.255.255'"], "inet"),
            ]
        else:
            kinds.append(Type("VECTOR(2)", ["TO_VECTOR('[1,2]')", "TO_VECTOR('[0.5,-3]')"], "vector"))
        return self.chance.choice(kinds)

    def near(self, old: Type) -> Type:
        """A type to which such a column is changed: more often one of the same kind, as migrations do."""
        if self.often(0.9):
            for _ in range(30):
                if (new := self.type()).kind == old.kind:
                    return new
        return self.type()

    # columns

    def default(self, of: Type) -> str:
        if of.kind == "moment" and self.often(0.25):
            digits = of.text.partition("(")[2].partition(")")[0]
            now = f"CURRENT_TIMESTAMP({digits})" if digits else "CURRENT_TIMESTAMP"
            return f" DEFAULT {now}{self.pick('', f' ON UPDATE {now}')}"
        if self.often(0.6):
            value = self.chance.choice(of.values)
            return f" DEFAULT {f'({value})' if '(' in value and not value.startswith(chr(39)) else value}"
        return f" DEFAULT {self.chance.choice(LITERALS)}"

    def attributes(self, of: Type) -> str:
        text = "" if of.text.endswith(" NULL") else self.pick("", "", "", " NULL", " NOT NULL", " NOT NULL")
        if self.often(0.4):
            text += self.default(of)
        if self.often(0.06):
            text += f" COMMENT {self.pick(chr(39) + 'x' + chr(39), chr(39) + 'it' + 2 * chr(39) + 's' + chr(39))}"
        if self.often(0.04):
            text += " UNIQUE"
        if self.often(0.02):
            text += self.pick(" INVISIBLE", " CHECK (1)")
        return text

    def generated(self, table: Table) -> str:
        name = self.chance.choice(list(table.columns))
        kind = table.columns[name].kind
        alike = [other for other, of in table.columns.items() if of.kind == kind]
        forms = OF_NUMBERS if kind in ("whole", "decimal", "float") else OF_TEXTS
        if kind in ("date", "moment") and self.often(0.5):
            forms = OF_DATES
        result, expression = self.chance.choice(forms if self.often(0.9) else [*OF_NUMBERS, *OF_TEXTS, *OF_DATES])
        text = expression.format(name, self.chance.choice(alike))
        return f"{result} GENERATED ALWAYS AS ({text}) {self.pick('STORED', 'VIRTUAL')}"

    # statements

    def create(self, table: Table) -> str:
        for name in "abcd"[: self.chance.randint(1, 4)]:
            table.columns[name] = self.type()
        columns = [f"{name} {kind.text}{self.attributes(kind)}" for name, kind in table.columns.items()]
        match self.chance.randint(0, 9):
            case 0:
                pass  # without a key
            case 1 | 2:
                name = self.chance.choice(list(table.columns))
                columns.append(f"PRIMARY KEY ({self.key_part(table, name)})")
            case 3:
                columns.insert(0, f"id {self.pick('INT', 'BIGINT UNSIGNED')} NOT NULL PRIMARY KEY")
            case _:
                kind = self.pick("INT", "INT", "BIGINT", "BIGINT UNSIGNED")
                columns.insert(0, f"id {kind} AUTO_INCREMENT PRIMARY KEY")
        if self.often(0.2):
            columns.append(f"KEY i1 ({self.key_part(table, self.chance.choice(list(table.columns)))})")
        options = self.options() if self.often(0.25) else ""
        if self.often(0.06):
            options += f" {self.partitions()}"
            table.is_partitioned = True
        return f"CREATE TABLE {table.name} ({', '.join(columns)}){options}"

    def partitions(self) -> str:
        return self.chance.choice(PARTITIONS)

    def options(self) -> str:
        engine = self.pick("InnoDB", "MyISAM", "MEMORY", *(["Aria"] if self.is_mariadb else []))
        return self.pick(f" ENGINE={engine}", " DEFAULT CHARSET=latin1", " DEFAULT CHARSET=utf8mb4", " COMMENT='x'",
                         " AUTO_INCREMENT=100", " ROW_FORMAT=DYNAMIC", " COLLATE=utf8mb4_bin", " CHECKSUM=1",
                         " CHARSET=utf8mb3", " CHARSET=binary")  # fmt: skip

    def key_part(self, table: Table, name: str) -> str:
        kind = table.columns.get(name)
        long = kind is not None and ("TEXT" in kind.text or "BLOB" in kind.text)
        return f"{name}({self.pick('5', '20')})" if long else name

    def rows(self, table: Table) -> list[str]:
        """Single rows, so that the source refuses one value and not all of them."""
        found = []
        for _ in range(self.chance.randint(0, 4) if self.often(0.9) else 0):
            names = list(table.columns)
            values = ["NULL" if self.often(0.12) else self.chance.choice(table.columns[name].values) for name in names]
            found.append(f"INSERT IGNORE INTO {table.name} ({', '.join(names)}) VALUES ({', '.join(values)})")
        return found

    def place(self, table: Table) -> str:
        return self.pick("", "", "", " FIRST", f" AFTER {self.chance.choice(list(table.columns))}")

    def clause(self, table: Table) -> str:
        old = self.chance.choice(list(table.columns))
        new = self.pick("n1", "n2", "n3")
        match self.chance.choices(range(12), [30, 22, 8, 6, 3, 5, 8, 5, 3, 6, 3, 3])[0]:
            case 0:
                kind = self.type()
                table.columns[new] = kind
                return f"ADD {self.pick('', 'COLUMN ')}{new} {kind.text}{self.attributes(kind)}{self.place(table)}"
            case 1:
                kind = table.columns[old] = self.near(table.columns[old])
                return f"MODIFY {old} {kind.text}{self.attributes(kind)}{self.place(table)}"
            case 2:
                kind = self.near(table.columns[old])
                name = self.pick(old, new)
                del table.columns[old]
                table.columns[name] = kind
                return f"CHANGE {old} {name} {kind.text}{self.attributes(kind)}{self.place(table)}"
            case 3 if len(table.columns) > 1:
                del table.columns[old]
                return f"DROP {self.pick('', 'COLUMN ')}{old}"
            case 4:
                table.columns[new] = table.columns.pop(old)
                return f"RENAME COLUMN {old} TO {new}"
            case 5:
                literal = self.chance.choice([*LITERALS, *table.columns[old].values])
                return f"ALTER {old} {self.pick(f'SET DEFAULT {literal}', 'DROP DEFAULT')}"
            case 6:
                part = self.key_part(table, old)
                keys = [f"ADD KEY k1 ({part})", f"ADD UNIQUE u1 ({part})", f"ADD INDEX ({part})", "DROP KEY i1"]
                return self.pick(*keys, f"ADD FULLTEXT f1 ({old})")
            case 7:
                numbered = f"ADD {self.pick('pk', 'n9')} INT AUTO_INCREMENT PRIMARY KEY{self.pick('', ' FIRST')}"
                return self.pick(
                    numbered, f"DROP PRIMARY KEY, {numbered}", f"ADD PRIMARY KEY ({self.key_part(table, old)})",
                    "ADD n8 BIGINT NOT NULL AUTO_INCREMENT UNIQUE", f"MODIFY {old} BIGINT AUTO_INCREMENT UNIQUE",
                    "DROP PRIMARY KEY, MODIFY id INT, ADD pk INT AUTO_INCREMENT PRIMARY KEY",
                    "MODIFY id BIGINT AUTO_INCREMENT", "DROP COLUMN id",
                )  # fmt: skip
            case 8:
                charset = self.pick("utf8mb4", "latin1", "utf8mb3", "binary")
                return self.pick(f"CONVERT TO CHARACTER SET {charset}", f"DEFAULT CHARACTER SET {charset}")
            case 9:
                name = self.pick("g1", "g1", "g2")
                text = f"{'MODIFY' if name in table.columns else 'ADD'} {name} {self.generated(table)}"
                table.columns.setdefault(name, Type("INT", ["DEFAULT"], "generated"))
                return text
            case 10:
                return self.options().strip() if self.often(0.8) else "FORCE"
            case _:
                return self.pick("ADD CONSTRAINT c1 CHECK (1)", "DROP CONSTRAINT c1", f"ORDER BY {old}", "DISABLE KEYS")

    def statement(self, table: Table) -> str:
        name = table.name
        if self.often(0.08):
            column = self.chance.choice(list(table.columns))
            return self.pick(
                f"TRUNCATE TABLE {name}", f"CREATE INDEX j1 ON {name} ({column})", f"DROP INDEX i1 ON {name}",
                f"RENAME TABLE {name} TO {name}_x, {name}_x TO {name}", f"OPTIMIZE TABLE {name}",
                f"ANALYZE TABLE {name}",
            )  # fmt: skip
        if self.often(0.5 if table.is_partitioned else 0.03):
            table.is_partitioned = True
            return f"ALTER TABLE {name} " + self.pick(
                self.partitions(), "REMOVE PARTITIONING", "DROP PARTITION p0", "TRUNCATE PARTITION p1",
                "COALESCE PARTITION 1", "ADD PARTITION PARTITIONS 1", "REORGANIZE PARTITION p0 INTO (PARTITION p0 "
                "VALUES LESS THAN (1), PARTITION p00 VALUES LESS THAN (2))", "TRUNCATE PARTITION ALL")  # fmt: skip
        count = self.chance.choices([1, 2, 3, 4, 5], [60, 20, 10, 6, 4])[0]
        clauses = [self.clause(table) for _ in range(count)]
        ignore = "IGNORE " if self.is_mariadb and self.often(0.02) else ""
        return f"ALTER {ignore}TABLE {name} {', '.join(clauses)}"

    def session(self) -> str:
        names = self.pick("utf8mb4", "utf8mb4", "utf8mb4", "utf8mb4", "utf8mb4", "latin1", "binary")
        modes = self.chance.choice(MODES)
        if self.often(0.1):
            modes += f",{'TIME_ROUND_FRACTIONAL' if self.is_mariadb else 'TIME_TRUNCATE_FRACTIONAL'}"
        more = f", time_zone='{self.chance.choice(ZONES)}'"
        if self.is_mariadb and self.often(0.1):
            more += ", explicit_defaults_for_timestamp=OFF"
        if self.often(0.05):
            more += ", auto_increment_increment=3, auto_increment_offset=2"
        return f"SET NAMES {names}, sql_mode='{modes.strip(',')}', timestamp=1700000000.25{more}"

    def changes(self, table: Table) -> list[str]:
        name, column = table.name, self.chance.choice(list(table.columns))
        more = [f"UPDATE IGNORE {name} SET {column}={self.chance.choice(table.columns[column].values)} LIMIT 1"]
        if self.often(0.3):
            more.append(f"DELETE FROM {name} LIMIT 1")
        return [*self.rows(table)[:1], *more]

    def run(self, name: str, execute: Callable[[str], bool]) -> list[str]:
        """Make one pair on a source; `execute` returns False if the source refuses. Return what was carried out."""
        done: list[str] = []

        def attempt(sql: str) -> bool:
            if is_done := execute(sql):
                done.append(sql)
            return is_done

        attempt(self.session())
        for _ in range(MOST_REFUSED):
            table = Table(name)
            if attempt(self.create(table)):
                break
        else:
            return []
        for row in self.rows(table):
            attempt(row)
        for _ in range(self.chance.choice([1, 1, 2, 3])):
            attempt(self.session())
            for _ in range(MOST_REFUSED):
                changed = Table(name, dict(table.columns), table.is_partitioned)
                if attempt(self.statement(changed)):
                    table = changed
                    break
            for change in self.changes(table):
                attempt(change)
        return done
