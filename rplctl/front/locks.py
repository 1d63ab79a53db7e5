"""The two locks of a backup as statements: LOCK INSTANCE FOR BACKUP, and FLUSH TABLES WITH READ LOCK.

Invariant: a connection holds its locks itself, so the end of the connection, or of this process, frees them.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial

from rplctl.command.instance.backup_lock import BackupLock, hold_backup_lock
from rplctl.command.lock_instance import INSTANCE
from rplctl.command.lock_tables import TABLES
from rplctl.errors import RplError
from rplctl.front.front import ClientSession, Front
from rplctl.front.result import Done
from rplctl.front.statement import ClientStatement
from rplctl.front.variables import LOCK_WAIT_S
from rplctl.history import note_event


def lock(front: Front, session: ClientSession, words: ClientStatement, *, kind: BackupLock) -> Done:
    """Take a lock of a backup for the connection. If the connection already holds it, do nothing, as a server does.
    Raises LockBusy 1205 if the lock is not free in time.
    """
    words.expect_end()
    if kind.kind not in session.locks:
        config = front.looks.config_of("")
        session.locks[kind.kind] = hold_backup_lock(config, kind, LOCK_WAIT_S)
        note_event(config.datadir, None, "lock", f"{kind.statement}: connection {session.number}")
    return Done()


def unlock(front: Front, session: ClientSession, words: ClientStatement, *, kind: BackupLock) -> Done:
    """Release the connection's lock of this kind, if it holds one."""
    words.expect_end()
    _release(front, session, kind)
    return Done()


lock_instance, unlock_instance = partial(lock, kind=INSTANCE), partial(unlock, kind=INSTANCE)
lock_tables, unlock_tables = partial(lock, kind=TABLES), partial(unlock, kind=TABLES)


def release_locks(front: Front, session: ClientSession) -> None:
    """Release the locks of a connection that ends, also if the history cannot be written."""
    for kind in (INSTANCE, TABLES):
        with suppress(RplError, OSError):
            _release(front, session, kind)


def _release(front: Front, session: ClientSession, kind: BackupLock) -> None:
    if held := session.locks.pop(kind.kind, None):
        held.close()
        text = f"UNLOCK {kind.kind.upper()}: connection {session.number}"
        note_event(front.looks.config_of("").datadir, None, "unlock", text)
