"""
Answers requests with the engine that its argument names: a JSON line {"sql"} a request, a JSON line {"columns", "rows"} a response.
Data frames read files: their "sql" is JSON with "paths" and "sorted_by".
"""

import json
import sys
from decimal import Decimal


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


def arrow_engine():
    from pyarrow import dataset
    from pyarrow import parquet

    def run(sql):
        wanted = json.loads(sql)
        for path in wanted["paths"]:
            refuse_unsorted(parquet.ParquetFile(path), wanted["sorted_by"])
        table = dataset.dataset(wanted["paths"]).to_table()
        return {"columns": table.column_names, "rows": [list(row.values()) for row in table.to_pylist()]}

    return run


def refuse_unsorted(file, sorted_by):
    """The file says by which columns it is sorted, and that must be so: texts by their bytes, nulls last."""
    names = file.schema_arrow.names
    for group in range(file.metadata.num_row_groups):
        said = [names[one.column_index] for one in file.metadata.row_group(group).sorting_columns]
        if said != sorted_by:
            raise ValueError(f"it says that it is sorted by {said}, not by {sorted_by}")
    of_bytes = lambda value: value.encode() if isinstance(value, str) else value
    keys = [
        [(value is None, of_bytes(value) if value is not None else 0) for value in row.values()]
        for row in file.read(columns=sorted_by).to_pylist()
    ]
    if keys != sorted(keys):
        raise ValueError(f"its rows are not sorted by {sorted_by}")
    if not file.metadata.created_by.startswith("usage-etl version "):
        raise ValueError(f"it was created by {file.metadata.created_by}")


def polars_engine():
    import polars

    def run(sql):
        table = polars.scan_parquet(json.loads(sql)["paths"]).collect()
        return {"columns": table.columns, "rows": table.rows()}

    return run


def text_of(value):
    return format(value, "f") if isinstance(value, Decimal) else str(value)


run = globals()[f"{sys.argv[1]}_engine"]()
for line in sys.stdin:
    try:
        response = run(json.loads(line)["sql"])
    except Exception as error:
        response = {"error": str(error)}
    print(json.dumps(response, default=text_of), flush=True)
