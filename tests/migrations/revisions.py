"""The columns that a revision of migrations/ brought, as it makes them itself."""

from __future__ import annotations

from alembic.config import Config as AlembicConfig
from alembic.runtime.environment import EnvironmentContext
from alembic.script import ScriptDirectory

from rplctl.repository.install import migrations_folder
from rplctl.repository.layout import Columns


def columns_of(revision: str, dialect: str, rep_engine: str = "") -> dict[str, Columns]:
    """Table → its columns."""
    config = AlembicConfig()
    config.set_main_option("script_location", str(migrations_folder()))
    script = ScriptDirectory.from_config(config)
    with EnvironmentContext(config, script):
        made: dict[str, Columns] = script.get_revision(revision).module.columns(dialect, rep_engine)
    return made
