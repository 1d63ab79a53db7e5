"""`switch-repo`: move MasterInfo and RelayLogInfo between FILE and TABLE (WL#2775 REQ-6)."""

from __future__ import annotations

from dataclasses import dataclass

from rplctl.command.channel.change_store import after_pending_change
from rplctl.command.channel.context import administer, engine_of, refuse_unknown, refuse_while_running
from rplctl.config import Config
from rplctl.errors import UsageError
from rplctl.history import note_event
from rplctl.repository import switch
from rplctl.repository.base import RepositoryKind

_CUT_OFF = "the interrupted switch is finished or undone first"
REPOSITORIES = ("master-info", "relay-log-info", "both")


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchStep:
    """The plan for one record: a cell of the matrix of REQ-6, with the resulting steps. The field names are the column
    names.
    """

    Repository: str
    Channel_name: str
    Table_has_data: bool
    File_has_data: bool
    Wanted: str
    Action: str
    Steps: str


def switch_repo(
    config: Config, channel_name: str, to: str, repository: str = "both", *, dry_run: bool = False
) -> list[SwitchStep]:
    """Move the records of the channel to the kind `to`, TABLE or FILE. `repository` is one of REPOSITORIES.

    Raises UsageError 3081 if a thread runs, RepositoryConflict if a record is in both repositories, and NotConfigured
    if the channel does not exist.
    """
    if to.upper() not in RepositoryKind.__members__:
        raise UsageError(f"--to {to}: the kind must be table or file")
    if repository not in REPOSITORIES:
        raise UsageError(f"--repository {repository}: the repository must be one of {', '.join(REPOSITORIES)}")
    kind = RepositoryKind(to.upper())
    names = ("master-info", "relay-log-info") if repository == "both" else (repository,)
    engine = engine_of(config)

    def has_applied() -> bool:
        from rplctl.commit.belonging import is_owned

        return is_owned(config, channel, engine)

    with administer(config, channel_name, dry_run=dry_run) as repositories:
        config, channel = repositories.config, repositories.channel
        if not dry_run:
            refuse_while_running(channel)  # a prepared transaction belongs to a running applier
        foreseen, finished = after_pending_change(repositories, dry_run=dry_run)
        if not dry_run:
            config = switch.resume_switch(config, channel, engine)
        if not finished:
            refuse_unknown(config, channel_name)
        if not dry_run:
            from rplctl.commit.resolve import finish_prepared

            finish_prepared(config, channel, engine)
            repositories.refuse_unfit_target()
        steps = []
        for name in names:
            cut_off = dry_run and switch.is_cut_off(channel, name)
            record = foreseen.master_info if name == "master-info" else foreseen.relay_log_info
            to_come = record.kind if finished and record.exists() else None
            plan = switch.plan_switch(config, channel, engine, name, kind, to_come)
            if plan.action is switch.SwitchAction.ERROR and not cut_off:
                raise switch.conflict(plan)
            if not dry_run:
                config = switch.carry_out(plan, config, channel, engine, has_applied=has_applied)
                note_event(config.datadir, channel_name, "switch-repo", f"switch-repo --to {to} --repository {name}")
            steps.append(
                SwitchStep(
                    Repository=name,
                    Channel_name=channel_name,
                    Table_has_data=plan.table_has_data,
                    File_has_data=plan.file_has_data,
                    Wanted=str(kind),
                    Action="resume" if cut_off else str(plan.action),
                    Steps="; ".join([*(note.text for note in finished), *([_CUT_OFF] if cut_off else plan.steps)]),
                )
            )
        return steps
