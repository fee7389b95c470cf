"""Answers SQL with the engine that its argument names: a JSON line {"sql"} a request, a JSON line a response."""

import json
import sys


def duckdb_engine():
    import duckdb

    connection = duckdb.connect()

    def run(sql):
        found = connection.execute(sql)
        return {"columns": [name for name, *_ in found.description], "rows": found.fetchall()}

    return run


def clickhouse_engine():
    from chdb import session

    opened = session.Session()

    def run(sql):
        found = str(opened.query(sql, "JSONCompact"))
        if found == "":
            return {"columns": [], "rows": []}
        parsed = json.loads(found)
        return {"columns": [column["name"] for column in parsed["meta"]], "rows": parsed["data"]}

    return run


run = {"duckdb": duckdb_engine, "clickhouse": clickhouse_engine}[sys.argv[1]]()
for line in sys.stdin:
    try:
        response = run(json.loads(line)["sql"])
    except Exception as error:
        response = {"error": str(error)}
    print(json.dumps(response, default=str), flush=True)
