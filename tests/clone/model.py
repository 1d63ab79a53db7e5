"""A small discrete model of the initial copy: a source that commits, chunks that are read and loaded, an applier.

One seed is one life: writers, reads, loads, batches, DDL and crashes in the order that the seed's generator chooses.
A transaction is a list of row changes or one DDL statement; a position is the number of transactions before it, A the
applier's. `run` raises Wrong when the copy differs from the source where it must be equal, or a strict change does not
fit. The rules, of which each can be left out (`Rules`):

    R0 the chunks of a table partition all of its keys, those that are not there, too
    R1 a claim holds the applier where it is, until the source shows everything up to there
    R2 the applier commits nothing beyond the lowest L of a chunk that is claimed, read or not loaded; a load is one
       transaction, which refuses itself when A is beyond L, its table began again or its chunk is loaded
    R3 all that is logged before L is seen, nothing behind H: L = H (exact), L before, H behind the snapshot (window)
       or, each row share-locked, L before and H behind the read (locked)
    R4 a load inserts what is missing and takes only rows of the target table's own definition; where A has come to L
       and that is another, the chunk is read again
    R5 until then rows are left out, as by a filter; from the first claim on an update or insert puts the whole after
       image there, a delete deletes what is there; UNIQUE keys beside the chunks' own are made behind H
    R6 strict from the first batch that begins at the highest H or behind it
    R7 one snapshot for all of a table with partial images, or that refers to itself: loaded when A is L and not before,
       its changes up to L are left out; L = H, or nothing in (L, H] is about the table or what it refers to
    R8 children begin when their parents are strict, and begin again when those do
    R9 DDL at D: TRUNCATE and CREATE make the table strict, and end its chunks; another key makes it begin again, and so
       does a loaded chunk with H >= D (it may show what is behind D); a renamed table takes its state with it, and
       begins again under the new name if it is not strict

A life that is `whole` copies as rplctl does today, all tables by R7: no phase is relaxed. Then, beside R7,

    R10 a name is looked up when rows are read, so DDL that names the table behind L, before all of it is read, makes it
        begin again: the snapshot may show another table that took the name (a swap)
    R11 DDL about tables that wait is left out; one that names others, too, makes those wait. What the source has no
        longer at L is dropped
    R12 a reader that is killed leaves pieces of a snapshot at L. The next one opens a snapshot at L' and goes on: the
        pieces are loaded at L; then, at L', rows go whose keys K the log touches in (L, L'], with before- and with
        after-images, and come back as they are at L' as far as their keys lie in what was read; the rest is read at L'.
        What does so is there before the claim of L' is. DDL in between, a child (cascades are not in the log): again

Tables: `s` (a secondary UNIQUE key, every kind of DDL, swaps as gh-ost does them), `p` and its child `c` (ON DELETE
CASCADE, deletes of children are not in the log), `r` (refers to itself, cascades), `m` (logged with partial images).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random
from typing import Literal

from rplctl.own_tables.clones import NEXT_STATES, CopyState

Row = tuple[int | None, ...]
Rows = dict[int, Row]
Ladder = Literal["exact", "window", "locked"]
KEYS = 10
UNIQUE = 0  # the place of the unique value, or of the parent's key, in a row


class Wrong(Exception):
    """The copy is not what the source was, or a strict change did not fit."""


@dataclass(frozen=True)
class Rules:
    """Each is a rule of the design; one that is False (or another word) is a known way to lose rows."""

    waits_until_visible: bool = True  # R1
    low_is_visible: bool = True  # R3: else L is what the source has delivered
    holds_applier: bool = True  # R2
    inserts_missing_only: bool = True  # R4: to overwrite is as right, and costs more
    replaces_missing: bool = True  # R5: an update of a row that is not there inserts the after image
    unique_after: bool = True  # R5: secondary UNIQUE keys are made behind H
    waits_for_high: bool = True  # R6
    checks_epoch: bool = True  # R2: a load is refused when its table began again, or its chunk is loaded
    checks_low: bool = True  # R2: a load is refused when the applier is beyond L
    compares_definition: bool = True  # R4
    distrusts_early_chunks: bool = True  # R9: of chunks that may show what is behind D
    rename_begins_again: bool = True  # R9
    parents_first: bool = True  # R8
    children_follow: bool = True  # R8
    snapshot_waits: bool = True  # R7: loaded when the applier is at L, not before
    snapshot_sees_parents: bool = True  # R7: an event of a parent in (L, H] may have cascaded
    cycles_in_snapshot: bool = True  # R7
    partial_in_snapshot: bool = True  # R7
    looks_into_window: bool = True  # R7
    watches_names: bool = True  # R10
    watches_what_is_away: bool = True  # R10: of a name that nothing has when it is looked up
    draws_in: bool = True  # R11: else a swap moves what each table is, as R9 has it
    takes_before_keys: bool = True  # R12
    takes_after_keys: bool = True  # R12
    files_before_patch: bool = True  # R12
    patch_before_claim: bool = True  # R12
    patch_of_what_is_read: bool = True  # R12: the rest brings rows behind it, and would bring them again
    begins_again_after_ddl: bool = True  # R12
    begins_again_of_children: bool = True  # R12


@dataclass(frozen=True)
class Table:
    """The source's at one position."""

    definition: tuple[str, ...]  # the key's name, then the columns
    rows: Rows
    parent: str = ""
    ident: int = 0  # a name may become another table's


@dataclass(frozen=True)
class Change:
    """One row change as it is logged; `old` and `new` are keys. A partial image: only places that are set."""

    table: str
    old: int | None
    new: int | None
    row: Row = ()
    partial: bool = False


@dataclass(frozen=True)
class Ddl:
    kind: str
    table: str
    other: str = ""
    definition: tuple[str, ...] = ()


@dataclass
class Copy:
    """The target's table and what its ledger says."""

    definition: tuple[str, ...]
    rows: Rows
    phase: Literal["waiting", "relaxed", "strict"]
    epoch: int
    parent: str = ""
    todo: list[tuple[int, int]] = field(default_factory=list)  # bounds of the chunks that nobody has claimed
    loaded: list[tuple[int, int]] = field(default_factory=list)
    missing: int = 0  # chunks not loaded
    high: int = 0
    in_snapshot: bool = False
    begun_by: Chunk | None = None  # whole: whose pieces the rows are

    @property
    def state(self) -> CopyState:
        """The state of its record, in a life that is `whole`."""
        if self.phase == "strict":
            return CopyState.DONE
        return CopyState.COPYING if self.begun_by is not None else CopyState.WAITING


@dataclass
class Piece:
    """Of a whole table: what one transaction of the target does at `low`."""

    low: int
    rows: Rows
    gone: set[int] = field(default_factory=set)


@dataclass(eq=False)
class Chunk:
    table: str
    epoch: int
    bounds: tuple[int, int]
    low: int
    high: int = -1
    begun: int = -1  # of a locked read: what was delivered when it began
    rows: Rows | None = None
    definition: tuple[str, ...] = ()
    opened: int = -1  # whole: where its snapshot was opened
    is_gone: bool = False
    upto: int = -1  # whole: keys up to here are read
    pieces: list[Piece] = field(default_factory=list)  # whole: not loaded yet
    is_dead: bool = False  # whole: its reader was killed

    @property
    def place(self) -> int:
        """Where its next rows are loaded."""
        return self.pieces[0].low if self.pieces else self.low


class Life:
    def __init__(
        self, seed: int, rules: Rules, table_groups: str = "", ladder: Ladder | None = None, *, whole: bool = False
    ) -> None:
        self.chance = Random(seed)
        self.rules, self.whole = rules, whole
        ladders: tuple[Ladder, ...] = ("exact", "window", "locked")
        self.ladder: Ladder = self.chance.choice(ladders) if ladder is None else ladder
        self.log: list[list[Change] | Ddl] = []
        self.child_in_snapshot = self.chance.random() < 0.3
        table_groups = table_groups or self.chance.choice(["s", "s", "pc", "pc", "r", "m", "spcrm"])
        parents = {"c": "p", "r": "r"}
        columns = {"p": ("k", "u", "x"), "c": ("k", "p"), "r": ("k", "p"), "m": ("k", "x", "y")}
        tables = {
            t: Table(columns.get(t, ("k", "u", "x", "y")), {}, parents.get(t, ""), -2 - number)
            for number, t in enumerate(table_groups)
        }
        self.states: list[dict[str, Table]] = [tables]
        self.script: list[list[Change] | Ddl] = []  # what a schema change tool does next
        self.number = 0
        for _ in range(self.chance.randrange(40)):
            self.write(ddl=False)
        self.visible = self.applied = len(self.log)
        self.epochs = 0
        self.copies = {name: self.begin(name, table) for name, table in self.states[-1].items()}
        self.flying: list[Chunk] = []
        self.zombies: list[Chunk] = []

    # the source

    def value(self) -> int:
        self.number += 1
        return self.number

    def write(self, *, ddl: bool) -> None:
        tables = self.states[-1]
        if self.script or not tables:
            return self.commit(self.script.pop(0)) if self.script else None
        name = self.chance.choice(sorted(tables))
        if ddl and self.chance.random() < 0.08:
            return self.alter(name)
        changes: list[Change] = []
        rows = dict(tables[name].rows)
        if name == "s" and len(rows) > 2 and self.chance.random() < 0.25:
            self.swap_unique(rows, changes)
        else:
            for _ in range(self.chance.choice((1, 1, 2))):
                self.change(name, rows, changes)
        if changes:
            self.commit(changes)

    def swap_unique(self, rows: Rows, changes: list[Change]) -> None:
        one, two = self.chance.sample(sorted(rows), 2)
        (u1, *rest1), (u2, *rest2) = rows[one], rows[two]
        for key, row in ((one, (None, *rest1)), (two, (u1, *rest2)), (one, (u2, *rest1))):
            rows[key] = row
            changes.append(Change("s", key, key, row))

    def change(self, name: str, rows: Rows, changes: list[Change]) -> None:
        free = [key for key in range(KEYS) if key not in rows]
        choice = self.chance.random()
        if free and (choice < 0.4 or not rows):
            key, row = self.chance.choice(free), self.row(name, rows)
            if row is not None:
                rows[key] = row
                changes.append(Change(name, None, key, row))
        elif choice < 0.75:
            key = self.chance.choice(sorted(rows))
            is_referred = name in ("p", "r")
            new = self.chance.choice(free) if free and not is_referred and self.chance.random() < 0.3 else key
            row = rows[key] if name == "r" else self.row(name, {k: v for k, v in rows.items() if k != key})
            if row is None:
                return
            partial = name == "m"
            if partial:
                at = self.chance.randrange(len(row))
                row = (*rows[key][:at], row[at], *rows[key][at + 1 :])
            logged = tuple(v if v != old else None for v, old in zip(row, rows[key], strict=True)) if partial else row
            del rows[key]
            rows[new] = row
            changes.append(Change(name, key, new, logged, partial))
        else:
            key = self.chance.choice(sorted(rows))
            cascade(rows, key) if name == "r" else rows.pop(key)
            changes.append(Change(name, key, None))

    def row(self, name: str, others: Rows) -> Row | None:
        """A new row; None when there is no parent for it."""
        definition = self.states[-1][name].definition
        more = tuple(self.value() for _ in definition[2:])
        parent = self.states[-1][name].parent
        if parent == name:
            return (self.chance.choice([None, *sorted(others)]), *more)
        if parent:
            found = sorted(self.states[-1][parent].rows)
            return (self.chance.choice(found), *more) if found else None
        if "u" not in definition:
            return (self.value(), *more)
        taken = {row[UNIQUE] for row in others.values()}
        return (self.chance.choice([None, *(u for u in range(KEYS + 4) if u not in taken)]), *more)

    def alter(self, name: str) -> None:
        table = self.states[-1][name]
        if name == "s":
            kinds = ["add", "drop", "shift", "shift", "truncate", "key", "swap", "swap", "again"]
        else:
            kinds = ["add", "drop"] if table.parent or name == "m" else ["add", "drop", "shift"]
        kind = self.chance.choice(kinds)
        if kind == "swap":
            copied = [Change("g", None, key, row) for key, row in table.rows.items()]
            copying: list[list[Change] | Ddl] = [copied] if copied else []
            kept = self.chance.random() < 0.5
            self.script = [*copying, Ddl("swap", "s", "g"), *([] if kept else [Ddl("gone", "o")])]
            if "o" in self.states[-1]:
                self.script.insert(0, Ddl("gone", "o"))
            return self.commit(Ddl("create", "g", definition=table.definition))
        if kind == "again":
            self.script = [Ddl("create", "s", definition=table.definition)]
            return self.commit(Ddl("gone", "s"))
        if (kind == "drop") != (table.definition[-1] == "z") and kind in ("add", "drop"):
            return None
        self.commit(Ddl(kind, name))

    def commit(self, what: list[Change] | Ddl) -> None:
        state = dict(self.states[-1])
        if isinstance(what, Ddl):
            carry_out(what, state)
            if what.kind == "create":
                state[what.table] = replace(state[what.table], ident=self.value())
        else:
            for change in what:
                rows = dict(state[change.table].rows)
                old = rows.pop(change.old) if change.old is not None else ()
                if change.new is not None:
                    rows[change.new] = merged(old, change)
                elif state[change.table].parent == change.table and change.old is not None:
                    cascade(rows, change.old)
                state[change.table] = replace(state[change.table], rows=rows)
                for child, table in state.items():
                    if table.parent == change.table != child and change.new is None:
                        left = {k: row for k, row in table.rows.items() if row[UNIQUE] != change.old}
                        state[child] = replace(table, rows=left)
        self.log.append(what)
        self.states.append(state)

    # the cloner

    def begin(self, name: str, table: Table) -> Copy:
        """Every chunk is to be read; the target's table is empty."""
        rules = self.rules
        whole = (table.parent == name and rules.cycles_in_snapshot) or (name == "m" and rules.partial_in_snapshot)
        whole = whole or (name == "c" and self.child_in_snapshot) or self.whole
        cuts = [] if whole else sorted(self.chance.sample(range(1, KEYS), self.chance.randrange(4)))
        bounds = list(zip([-1, *cuts], [*cuts, KEYS], strict=True))
        self.chance.shuffle(bounds)
        self.epochs += 1
        copy = Copy(table.definition, {}, "waiting", self.epochs, table.parent, bounds, missing=len(bounds))
        copy.in_snapshot = whole
        return copy

    def claim(self) -> None:
        ready = [name for name, copy in self.copies.items() if copy.todo and self.may_begin(copy, name)]
        if not ready or len(self.flying) >= 4:
            return
        name = self.chance.choice(sorted(ready))
        copy = self.copies[name]
        if copy.phase == "waiting" and not copy.in_snapshot:
            copy.phase = "relaxed"
        self.flying.append(Chunk(name, copy.epoch, copy.todo.pop(), self.applied))

    def may_begin(self, copy: Copy, name: str) -> bool:
        parent = self.copies.get(copy.parent)
        return not self.rules.parents_first or parent is None or copy.parent == name or parent.phase == "strict"

    def read(self, chunk: Chunk) -> None:
        if chunk.begun >= 0:
            return self.end_locked_read(chunk)
        if self.ladder == "locked":
            chunk.begun = len(self.log)
            return None
        if self.rules.waits_until_visible and self.visible < self.applied:
            return None  # claimed: the applier stands still, or goes on to another chunk's bound
        low = self.visible if self.rules.low_is_visible else len(self.log)
        if self.ladder == "window" and self.chance.random() < 0.5:
            self.visible = min(len(self.log), self.visible + self.chance.randrange(3))
        high = self.visible if self.ladder == "exact" and self.rules.low_is_visible else len(self.log)
        if self.whole:
            return self.open(chunk, low, high)
        self.see(chunk, low, high, [self.visible] * KEYS)
        return None

    def open(self, chunk: Chunk, low: int, high: int) -> None:
        """A snapshot of a whole table: of one place, or it is opened again."""
        if chunk.opened >= 0 and not chunk.is_dead:
            return self.read_on(chunk)
        if self.rules.looks_into_window and self.touches(chunk.table, low, high):
            return
        if chunk.is_dead and not self.go_on(chunk, high):
            return self.give_up(chunk)
        chunk.opened, chunk.low, chunk.high, chunk.is_dead = self.visible, high, high, False

    def go_on(self, chunk: Chunk, high: int) -> bool:
        """With what a reader has left that was killed."""
        between, now = self.log[chunk.low : high], self.states[self.visible].get(chunk.table)
        has_ddl = any(isinstance(what, Ddl) for what in between)
        if now is None or chunk.upto < 0 or (has_ddl and self.rules.begins_again_after_ddl):
            return False
        if now.parent and self.rules.begins_again_of_children:
            return False
        changes = [c for what in between if not isinstance(what, Ddl) for c in what if c.table == chunk.table]
        before = {c.old for c in changes if c.old is not None and self.rules.takes_before_keys}
        after = {c.new for c in changes if c.new is not None and self.rules.takes_after_keys}
        gone = before | after
        upto = chunk.upto if self.rules.patch_of_what_is_read else KEYS
        patch = Piece(high, {key: row for key, row in now.rows.items() if key in gone and key <= upto}, gone)
        if not self.rules.patch_before_claim and self.chance.random() < 0.3:
            return True  # killed between the two
        if self.rules.files_before_patch:
            chunk.pieces.append(patch)
        else:
            chunk.pieces = [patch, *(replace(piece, low=high) for piece in chunk.pieces)]
        return True

    def read_on(self, chunk: Chunk) -> None:
        """Some rows, some time after: the snapshot stays, what the name stands for may not."""
        name, shown = chunk.table, self.states[chunk.opened]
        behind, is_away = self.log[chunk.high :], name not in self.states[-1]
        watches = self.rules.watches_what_is_away if is_away else self.rules.watches_names
        if any(isinstance(what, Ddl) and name in named(what) for what in behind) and watches:
            return self.give_up(chunk)
        if is_away:
            chunk.is_gone, chunk.rows = True, {}
            return
        ident = self.states[-1][name].ident
        found = next((table for table in shown.values() if table.ident == ident), None)
        if name not in shown or found is None or found.definition != shown[name].definition:
            return self.give_up(chunk)
        upto = self.chance.randrange(chunk.upto + 1, KEYS) if chunk.upto < KEYS - 1 else chunk.upto
        rows = {key: row for key, row in found.rows.items() if chunk.upto < key <= upto}
        chunk.pieces.append(Piece(chunk.low, rows))
        chunk.upto, chunk.definition = upto, found.definition
        if upto == KEYS - 1:
            chunk.rows = {}

    def end_locked_read(self, chunk: Chunk) -> None:
        """Each row as it was at some time of the read, in key order; a metadata lock keeps DDL out."""
        high = len(self.log)
        if any(isinstance(what, Ddl) and chunk.table in named(what) for what in self.log[chunk.begun :]):
            chunk.begun = -1
            return
        low = chunk.begun if self.rules.low_is_visible else high  # what is delivered and not visible has locks
        self.see(chunk, low, high, sorted(self.chance.randint(chunk.begun, high) for _ in range(KEYS)))

    def see(self, chunk: Chunk, low: int, high: int, seen: list[int]) -> None:
        copy = self.copies.get(chunk.table)
        table = self.states[seen[0]].get(chunk.table)
        if self.whole and table is None:
            chunk.is_gone, chunk.rows, chunk.low, chunk.high = True, {}, high, high
            return None
        if table is None or copy is None or copy.epoch != chunk.epoch:
            return self.give_up(chunk)
        if copy.in_snapshot:
            if self.touches(chunk.table, low, high):
                chunk.begun = -1
                return None
            low = high
        lower, upper = chunk.bounds
        keys = [key for key in range(KEYS) if lower < key <= upper]
        tables = {key: self.states[seen[key]][chunk.table].rows for key in keys}
        chunk.rows = {key: rows[key] for key, rows in tables.items() if key in rows}
        chunk.low, chunk.high, chunk.definition = low, high, table.definition
        if self.whole:
            chunk.pieces, chunk.rows = [Piece(low, chunk.rows)], {}

    def touches(self, name: str, low: int, high: int) -> bool:
        """Whether the log of (low, high] may have changed the table: by cascades, too."""
        names = {name}
        parent = self.states[high][name].parent if name in self.states[high] else ""
        if self.rules.snapshot_sees_parents:
            names |= {parent}
        return any(
            named(what) & names if isinstance(what, Ddl) else names & {change.table for change in what}
            for what in self.log[low:high]
        )

    def give_up(self, chunk: Chunk) -> None:
        self.flying.remove(chunk)
        copy = self.copies.get(chunk.table)
        if copy is not None and copy.epoch == chunk.epoch:
            copy.todo.append(chunk.bounds)

    def load(self, chunk: Chunk) -> None:
        """One transaction of the target."""
        copy = self.copies.get(chunk.table)
        if copy is None or (self.rules.checks_epoch and copy.epoch != chunk.epoch):
            return self.drop(chunk)
        if self.rules.checks_epoch and chunk.bounds in copy.loaded:
            return self.drop(chunk)
        if self.whole and self.rules.checks_epoch and chunk in self.zombies and copy.begun_by is not chunk:
            return self.drop(chunk)
        if self.rules.checks_low and self.applied > chunk.place:
            return self.give_up(chunk) if chunk in self.flying else self.drop(chunk)
        if copy.in_snapshot and self.rules.snapshot_waits and self.applied < chunk.place:
            return None
        if self.whole:
            return self.load_whole(chunk, copy)
        if self.rules.compares_definition and copy.definition != chunk.definition:
            return self.give_up(chunk) if self.applied >= chunk.low and chunk in self.flying else None
        assert chunk.rows is not None
        for key, row in chunk.rows.items():
            if key not in copy.rows or not self.rules.inserts_missing_only:
                copy.rows[key] = row
                if len(row) != len(copy.definition) - 1:
                    raise Wrong("rows of another definition")
        if not self.rules.unique_after:
            check_unique(copy)
        copy.loaded.append(chunk.bounds)
        copy.missing -= 1
        copy.high = max(copy.high, chunk.high)
        self.drop(chunk)

    def load_whole(self, chunk: Chunk, copy: Copy) -> None:
        """One move of the loader: BEGIN with the snapshot's definition, LOAD a piece, or END."""
        if chunk.is_gone:
            self.copies.pop(chunk.table)
            return self.drop(chunk)
        if copy.begun_by is not chunk:
            copy.definition, copy.rows, copy.begun_by = chunk.definition, {}, chunk
        elif chunk.pieces:
            piece = chunk.pieces.pop(0)
            for key in piece.gone:
                copy.rows.pop(key, None)
            if any(key in copy.rows for key in piece.rows):
                raise Wrong("a row of the copy is there already")
            copy.rows.update(piece.rows)
        elif chunk.rows is not None:
            copy.missing, copy.high = 0, chunk.high
            copy.loaded.append(chunk.bounds)
            self.drop(chunk)
        return None

    def drop(self, chunk: Chunk) -> None:
        (self.zombies if chunk in self.zombies else self.flying).remove(chunk)

    def crash(self) -> None:
        """Claims are forgotten but for files that are whole; a loader may outlive the process that sent it."""
        for chunk in list(self.flying):
            if chunk.rows is None and chunk.opened >= 0:
                chunk.is_dead = True
            elif chunk.rows is None or self.chance.random() < 0.5:
                self.give_up(chunk)
                if chunk.rows is not None:
                    self.zombies.append(chunk)

    # the applier

    def batch(self) -> None:
        bounds = [chunk.place for chunk in self.flying] if self.rules.holds_applier else []
        end = min([len(self.log), self.applied + self.chance.randrange(1, 8), *bounds])
        while self.applied < end:
            what = self.log[self.applied]
            self.applied += 1
            if isinstance(what, Ddl):
                self.follow(what)
                break  # the next batch begins behind it
            for change in what:
                if (copy := self.copies.get(change.table)) is not None:
                    self.apply(copy, change)
            for copy in self.copies.values():
                if copy.phase == "strict" or not self.rules.unique_after:
                    check_unique(copy)
        self.become_strict()

    def apply(self, copy: Copy, change: Change) -> None:
        rows, strict = copy.rows, copy.phase == "strict"
        if copy.phase == "waiting":
            return
        if strict and change.old is not None and change.old not in rows:
            raise Wrong(f"{change} of a row that is missing")
        if strict and change.new is not None and change.new != change.old and change.new in rows:
            raise Wrong(f"{change} onto a row that is there")
        old = rows.pop(change.old, None) if change.old is not None else ()
        if change.new is None:
            assert change.old is not None
            if old is not None and copy.parent == change.table:
                cascade(rows, change.old)
            if old is not None:
                for child in self.copies.values():
                    if child.parent == change.table and child is not copy:
                        child.rows = {k: row for k, row in child.rows.items() if row[UNIQUE] != change.old}
        elif old is not None or (self.rules.replaces_missing and not change.partial):
            rows[change.new] = merged(old or (), change)

    def follow(self, ddl: Ddl) -> None:
        """The statement in the target, and what becomes of the tables' copies."""
        waiting = {name for name in named(ddl) if name in self.copies and self.copies[name].phase == "waiting"}
        if self.whole and waiting and self.rules.draws_in:
            for name in sorted(named(ddl)):
                if name not in waiting:
                    self.copies[name] = self.begin(name, Table((), {}))
        elif ddl.kind == "create":
            self.epochs += 1
            self.copies[ddl.table] = Copy(ddl.definition, {}, "strict", self.epochs)
        elif ddl.kind == "swap":
            self.copies["o"], self.copies["s"] = self.copies["s"], self.copies.pop("g")
            if self.copies["o"].phase != "strict" and self.rules.rename_begins_again:
                self.begin_again("o")
            else:
                self.epochs += 1
                self.copies["o"].epoch = self.epochs
        elif ddl.kind == "gone":
            self.copies.pop(ddl.table, None)
        else:
            self.follow_alter(ddl)

    def follow_alter(self, ddl: Ddl) -> None:
        copy = self.copies[ddl.table]
        altered = {ddl.table: Table(copy.definition, copy.rows, copy.parent)}
        carry_out(ddl, altered)
        copy.definition, copy.rows = altered[ddl.table].definition, altered[ddl.table].rows
        if copy.phase == "strict":
            return
        if ddl.kind == "truncate":  # empty on both sides: exact from here on
            self.epochs += 1
            self.copies[ddl.table] = Copy(copy.definition, {}, "strict", self.epochs, copy.parent)
        elif ddl.kind == "key" or (self.rules.distrusts_early_chunks and copy.high >= self.applied):
            self.begin_again(ddl.table)

    def begin_again(self, name: str) -> None:
        """It is emptied, and so are those whose rows its cascades would have removed."""
        copy = self.copies[name]
        self.copies[name] = self.begin(name, Table(copy.definition, {}, copy.parent))
        for child, other in list(self.copies.items()):
            if other.parent == name != child and self.rules.children_follow:
                self.begin_again(child)

    def become_strict(self) -> None:
        for name, copy in self.copies.items():
            if copy.phase == "strict" or copy.missing > 0:
                continue
            if self.applied >= copy.high or not self.rules.waits_for_high:
                expected = self.states[self.applied].get(name)
                if expected is None or expected.rows != copy.rows or expected.definition != copy.definition:
                    raise Wrong(f"{name} differs where it becomes strict")
                copy.phase = "strict"

    def check_states(self, before: dict[str, CopyState]) -> dict[str, CopyState]:
        """Raise Wrong for a step that rplctl's records do not know. Anything may be copied again from the beginning."""
        now = {name: copy.state for name, copy in self.copies.items()}
        for name in before.keys() & now.keys():
            allowed = NEXT_STATES[before[name]] | {before[name], CopyState.WAITING}
            if now[name] not in allowed:
                raise Wrong(f"{name}: {before[name]} → {now[name]}")
        return now

    def live(self) -> None:
        states: dict[str, CopyState] = {}
        for step in range(4000):
            if self.whole:
                states = self.check_states(states)
            late = step > 220
            choice = self.chance.random()
            if choice < 0.4 and not (late and not self.script):
                self.write(ddl=True)
            elif choice < 0.52:
                self.visible = min(len(self.log), self.visible + self.chance.randrange(1, 4))
            elif choice < 0.62:
                self.claim()
            elif choice < 0.74 and (unread := [chunk for chunk in self.flying if chunk.rows is None]):
                self.read(self.chance.choice(unread))
            elif choice < 0.84 and (read := [c for c in self.flying + self.zombies if c.rows is not None or c.pieces]):
                self.load(self.chance.choice(read))
                self.become_strict()
            elif choice < (0.87 if self.whole else 0.85) and not late:
                self.crash()
            elif choice < (0.88 if self.whole else 0.86) and not late and self.copies:
                self.begin_again(self.chance.choice(sorted(self.copies)))  # the operator's wish
            else:
                self.batch()
            if late and self.applied == len(self.log) and all(c.phase == "strict" for c in self.copies.values()):
                break
        else:
            raise Wrong("it never comes to its end")
        for name, table in self.states[-1].items():
            if self.copies[name].rows != table.rows:
                raise Wrong(f"{name} differs at the end")


def merged(old: Row, change: Change) -> Row:
    if not change.partial or not old:
        return change.row
    return tuple(was if now is None else now for was, now in zip(old, change.row, strict=True))


def named(ddl: Ddl) -> set[str]:
    return {"s", "g", "o"} if ddl.kind == "swap" else {ddl.table}


def cascade(rows: Rows, key: int) -> None:
    """The row and all that refer to it."""
    rows.pop(key, None)
    for child in [k for k, row in rows.items() if row[UNIQUE] == key]:
        if child in rows:
            cascade(rows, child)


def carry_out(ddl: Ddl, tables: dict[str, Table]) -> None:
    """What the statement does to definitions and rows, on either side."""
    if ddl.kind == "create":
        tables[ddl.table] = Table(ddl.definition, {})
        return
    if ddl.kind == "swap":
        tables["o"], tables["s"] = tables["s"], tables.pop("g")
        return
    if ddl.kind == "gone":
        tables.pop(ddl.table, None)
        return
    table = tables[ddl.table]
    definition, rows = table.definition, table.rows
    if ddl.kind == "truncate":
        rows = {}
    elif ddl.kind == "add":
        definition, rows = (*definition, "z"), {key: (*row, 7) for key, row in rows.items()}
    elif ddl.kind == "drop":
        definition, rows = definition[:-1], {key: row[:-1] for key, row in rows.items()}
    elif ddl.kind == "shift":  # DROP x, RENAME y TO x, ADD y: the definition is what it was, the values are not
        rows = {key: (row[0], *row[2:], 0) if len(row) > 1 else row for key, row in rows.items()}
    elif ddl.kind == "key":  # another PRIMARY KEY: other values tell the rows apart
        definition = ("l" if definition[0] == "k" else "k", *definition[1:])
        rows = {KEYS - 1 - key: row for key, row in rows.items()}
    tables[ddl.table] = replace(table, definition=definition, rows=rows)


def check_unique(copy: Copy) -> None:
    if "u" not in copy.definition:
        return
    values = [row[UNIQUE] for row in copy.rows.values() if row[UNIQUE] is not None]
    if len(values) != len(set(values)):
        raise Wrong("two rows of one UNIQUE value")


ALL_RULES = Rules()


def run(
    seed: int, rules: Rules = ALL_RULES, table_groups: str = "", ladder: Ladder | None = None, *, whole: bool = False
) -> None:
    """`families`: the tables; by default the seed's choice. Raises Wrong."""
    Life(seed, rules, table_groups, ladder, whole=whole).live()
