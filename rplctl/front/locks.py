"""Answers the statements that take and release the two locks of a backup.

These are LOCK INSTANCE FOR BACKUP and FLUSH TABLES WITH READ LOCK, and their UNLOCK statements. Invariant: a lock
belongs to its connection. It is released when the connection or this process ends.
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
    """Take the lock of this kind for the connection. Do nothing if the connection already holds it, as a server does.

    Raises LockBusy 1205 if the lock is not free within LOCK_WAIT_S seconds.
    """
    words.expect_end()
    if kind.kind not in session.locks:
        config = front.looks.config_of("")
        session.locks[kind.kind] = hold_backup_lock(config, kind, LOCK_WAIT_S)
        note_event(config.datadir, None, "lock", f"{kind.statement}: connection {session.number}")
    return Done()


def unlock(front: Front, session: ClientSession, words: ClientStatement, *, kind: BackupLock) -> Done:
    """Release the lock of this kind. Do nothing if the connection does not hold it."""
    words.expect_end()
    _release(front, session, kind)
    return Done()


lock_instance, unlock_instance = partial(lock, kind=INSTANCE), partial(unlock, kind=INSTANCE)
lock_tables, unlock_tables = partial(lock, kind=TABLES), partial(unlock, kind=TABLES)


def release_locks(front: Front, session: ClientSession) -> None:
    """Release all locks of a connection, because the connection ends or is reset.

    An error while the history is written does not prevent the release.
    """
    for kind in (INSTANCE, TABLES):
        with suppress(RplError, OSError):
            _release(front, session, kind)


def _release(front: Front, session: ClientSession, kind: BackupLock) -> None:
    if held := session.locks.pop(kind.kind, None):
        held.close()
        text = f"UNLOCK {kind.kind.upper()}: connection {session.number}"
        note_event(front.looks.config_of("").datadir, None, "unlock", text)
