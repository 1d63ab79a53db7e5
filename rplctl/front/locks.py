"""The two locks of a backup as statements: LOCK INSTANCE FOR BACKUP, and FLUSH TABLES WITH READ LOCK.

Invariant: a connection holds its locks itself, so the end of the connection, or of this process, frees them.
"""

from __future__ import annotations

from contextlib import suppress

from rplctl.command.instance.backup_lock import BackupLock, hold_backup_lock
from rplctl.command.lock_instance import INSTANCE
from rplctl.command.lock_tables import TABLES
from rplctl.errors import RplError
from rplctl.front.front import ClientSession, Front
from rplctl.front.result import Done
from rplctl.front.statement import Statement
from rplctl.front.variables import LOCK_WAIT_S
from rplctl.history import note_event


def lock_instance(front: Front, session: ClientSession, words: Statement) -> Done:
    """LOCK INSTANCE FOR BACKUP. Raises LockBusy 1205."""
    words.expect_end()
    return _lock(front, session, INSTANCE)


def unlock_instance(front: Front, session: ClientSession, words: Statement) -> Done:
    words.expect_end()
    _unlock(front, session, INSTANCE)
    return Done()


def lock_tables(front: Front, session: ClientSession, words: Statement) -> Done:
    """FLUSH TABLES WITH READ LOCK: no applier writes until the lock is released. Raises LockBusy 1205."""
    words.expect_end()
    return _lock(front, session, TABLES)


def unlock_tables(front: Front, session: ClientSession, words: Statement) -> Done:
    words.expect_end()
    _unlock(front, session, TABLES)
    return Done()


def release_locks(front: Front, session: ClientSession) -> None:
    """Release the locks that a connection leaves behind, also if the history cannot be written."""
    for lock in (INSTANCE, TABLES):
        with suppress(RplError, OSError):
            _unlock(front, session, lock)


def _lock(front: Front, session: ClientSession, lock: BackupLock) -> Done:
    """Like a server, take a lock that the connection holds already once."""
    if lock.kind not in session.locks:
        config = front.looks.config_of("")
        session.locks[lock.kind] = hold_backup_lock(config, lock, LOCK_WAIT_S)
        note_event(config.datadir, None, "lock", f"{lock.statement}: connection {session.number}")
    return Done()


def _unlock(front: Front, session: ClientSession, lock: BackupLock) -> None:
    if held := session.locks.pop(lock.kind, None):
        held.close()
        text = f"UNLOCK {lock.kind.upper()}: connection {session.number}"
        note_event(front.looks.config_of("").datadir, None, "unlock", text)
