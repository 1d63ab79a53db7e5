"""Python imports this when it starts with this folder on its PYTHONPATH (`Replica(…, spark=False)`): an applier's tasks
are then done in its own process.

For tests whose promise is not Spark. What Spark does is pure (design D1), everything else is the applier as it is; a
JVM and its workers cost more than the rest of such a test.
"""

from __future__ import annotations

import sys
from typing import Any

if "rplctl.applier" in sys.orig_argv:
    from rplctl.applier import job
    from rplctl.applier.spark import session
    from rplctl.applier.spark.in_process import InProcessPipeline

    class NoSpark:
        def __init__(self, *_: object) -> None: ...

        def open(self) -> Any: ...

        def begin(self) -> None: ...

        def before_job(self) -> None: ...

        def pool(self) -> None: ...

        def end(self) -> None: ...

        def death(self) -> str:
            return ""

        def serves_others(self) -> bool:
            return False

    vars(session).update(OwnSpark=NoSpark)
    vars(job).update(OwnSpark=NoSpark, Pipeline=InProcessPipeline)
