"""Runs dbt's commands in one process: an argument list as JSON a line in, its results as JSON a line out. What dbt says goes to stderr."""

import json
import os
import sys

answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

from dbt.cli.main import dbtRunner  # noqa: E402

for line in sys.stdin:
    ran = dbtRunner().invoke(json.loads(line))
    results = getattr(ran.result, "results", None) or []
    print(
        json.dumps(
            {
                "error": None if ran.exception is None else str(ran.exception),
                "results": [
                    {"name": one.node.name, "kind": str(one.node.resource_type), "status": str(one.status), "says": one.message}
                    for one in results
                    if hasattr(one, "node")
                ],
            }
        ),
        file=answers,
        flush=True,
    )
