"""The differences between MasterInfo and RelayLogInfo for a repository: table, fields, error number and options.

For each of the two, one object of the class `Record` has all differences. So the code of the repositories need not
distinguish MasterInfo and RelayLogInfo. In WL#2775, only `Rpl_info_factory` distinguishes them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Generic

from rplctl import mysql_errors as er
from rplctl.channel import MAX_CHANNELS, Channel
from rplctl.config import Config
from rplctl.errors import NotConfigured, RplError
from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.repository.base import Info, RepositoryKind
from rplctl.repository.fields import (
    MARIADB_KEYS,
    MASTER_INFO_KEYS,
    MASTER_INFO_LINES,
    RELAY_LOG_INFO_KEYS,
    RELAY_LOG_INFO_LINES,
    Field,
)
from rplctl.repository.lines import format_master_info, format_relay_log_info, parse_master_info, parse_relay_log_info


class OlderLayout(RplError):
    """The error for a repository table with the layout of an older version. `rplctl start` upgrades such a table."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Record(Generic[Info]):
    """The description of one of the two records, MasterInfo or RelayLogInfo, for the repositories."""

    name: str  # as `switch-repo --repository` spells it
    table: str
    option: str  # the option whose value is FILE or TABLE
    sync_option: str
    errno: int
    message: str
    fields: tuple[Field, ...]  # all columns except Number_of_lines
    number_of_lines: int
    empty: Callable[[str], Info]  # returns a record without data for a channel name
    path: Callable[[Channel], Path]
    parse: Callable[[bytes], Info]  # cached, because a command parses the same bytes several times
    format: Callable[[Info], bytes]
    has_data: Callable[[Info], bool]

    def kind(self, config: Config) -> RepositoryKind:
        return RepositoryKind(str(getattr(config, self.option)).upper())

    def sync_period(self, config: Config) -> int:
        return int(getattr(config, self.sync_option))

    def missing(self, channel: str, why: str) -> NotConfigured:
        text = f"channel '{channel}' is not configured: {why}"
        return NotConfigured(text, errno=er.BAD_SLAVE, channel=channel, hint=_CONFIGURE)

    def damaged(self, channel: str, why: str, hint: str = "", kind: type[RplError] = RplError) -> RplError:
        """Return the error 1201 (MasterInfo) or 1872 (RelayLogInfo) for a record that exists but cannot be used."""
        text = f"{self.message} for channel '{channel}': {why}"
        return kind(text, errno=self.errno, channel=channel, hint=hint)


_CONFIGURE = "to set the source, run: rplctl change-master --master-host HOST --master-user USER --ask-password"
MASTER_INFO: Record[MasterInfo] = Record(
    name="master-info",
    table="slave_master_info",
    option="master_info_repository",
    sync_option="sync_master_info",
    errno=er.MASTER_INFO,
    message="Could not initialize master info structure",
    fields=(*MASTER_INFO_LINES, *MARIADB_KEYS, *MASTER_INFO_KEYS),
    number_of_lines=len(MASTER_INFO_LINES) + 1,
    empty=lambda channel: MasterInfo(channel_name=channel),
    path=lambda channel: channel.master_info_path,
    parse=lru_cache(MAX_CHANNELS)(parse_master_info),
    format=format_master_info,
    has_data=lambda info: info.is_configured or bool(info.master_log_name),
)

# RESET empties both log names and keeps the settings. A record without names therefore has no data, as in the server's
# check_if_info_was_cleared.
RELAY_LOG_INFO: Record[RelayLogInfo] = Record(
    name="relay-log-info",
    table="slave_relay_log_info",
    option="relay_log_info_repository",
    sync_option="sync_relay_log_info",
    errno=er.SLAVE_RLI_INIT_REPOSITORY,
    message="Replica failed to initialize relay log info structure from the repository",
    fields=(*RELAY_LOG_INFO_LINES, *RELAY_LOG_INFO_KEYS),
    number_of_lines=len(RELAY_LOG_INFO_LINES),
    empty=lambda channel: RelayLogInfo(channel_name=channel),
    path=lambda channel: channel.relay_log_info_path,
    parse=lru_cache(MAX_CHANNELS)(parse_relay_log_info),
    format=format_relay_log_info,
    has_data=lambda info: bool(info.relay_log_name or info.master_log_name),
)
