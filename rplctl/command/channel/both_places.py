"""Refuse a record that is in two repositories, before a command writes the record.

rplctl must not choose between the two copies of the record (REQ-6). After an interrupted `switch-repo`, a record may be
in both; a command that removes or renames records finishes the switch first.
"""

from __future__ import annotations

from rplctl.command.channel.context import Repositories, is_held_by_applier, open_repositories
from rplctl.config import load_config
from rplctl.errors import TargetError
from rplctl.repository.base import RepositoryKind
from rplctl.repository.switch import (
    RECORDS,
    SwitchAction,
    conflict,
    is_cut_off,
    may_have_table,
    plan_switch,
    resume_switch,
)


def after_interrupted_switch(repositories: Repositories, *, dry_run: bool = False) -> Repositories:
    """Finish an interrupted `switch-repo`, and return the repositories after it. A dry run finishes nothing.

    Otherwise, the next start would finish it, and restore the records of that time. Raises RepositoryConflict if
    somebody has edited one of the copies, and TargetError if the target does not answer.
    """
    config, channel = repositories.config, repositories.channel
    if dry_run or not any(is_cut_off(channel, name) for name in RECORDS):
        return repositories
    resume_switch(config, channel, repositories.engine)
    return open_repositories(load_config(config.datadir, channel.name, config_file=config.config_file), channel.name)


def refuse_both_places(repositories: Repositories) -> None:
    """Raise RepositoryConflict if a record, for example RelayLogInfo, is in its file and also in its table.

    After an interrupted `switch-repo`, the record may be in both. This is permitted, because the next start finishes
    the command. If the target does not answer, its tables are not checked.
    """
    config, channel = repositories.config, repositories.channel
    if is_held_by_applier(config, channel):
        return
    for record in RECORDS.values():
        wanted = record.kind(config)
        if is_cut_off(channel, record.name) or (wanted is RepositoryKind.FILE and not may_have_table(config)):
            continue
        try:
            plan = plan_switch(config, channel, repositories.engine, record.name, wanted)
        except TargetError as error:
            if not error.transient:
                raise
            continue
        if plan.action is SwitchAction.ERROR:
            raise conflict(plan)
