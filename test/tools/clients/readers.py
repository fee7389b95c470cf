"""One library of Python that reads Postgres: `readers.py LIBRARY`, with the connection, views and queries as JSON on stdin.

Prints the number of rows of each view, read whole, and the cells of the queries as text.
"""

import asyncio
import datetime
import json
import sys
from decimal import Decimal

given = json.load(sys.stdin)
url, views, queries = given["url"], given["views"], given["queries"]


def text(value):
    if isinstance(value, bool):
        return "t" if value else "f"
    if isinstance(value, datetime.datetime):
        zoned = value if value.tzinfo else value.replace(tzinfo=datetime.timezone.utc)
        return zoned.astimezone(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    if isinstance(value, float):
        raise TypeError(f"{value} is a float")
    return format(value, "f") if isinstance(value, Decimal) else str(value)


def by_cursor(cursor):
    """A library with the interface of DB-API."""

    def read(query):
        cursor.execute(query)
        return [tuple(row) for row in cursor.fetchall()]

    return read


def psycopg():
    import psycopg

    return by_cursor(psycopg.connect(url).cursor())


def sqlalchemy():
    import sqlalchemy

    connection = sqlalchemy.create_engine(url.replace("postgresql:", "postgresql+psycopg:")).connect()
    return lambda query: [tuple(row) for row in connection.exec_driver_sql(query)]


def asyncpg():
    import asyncpg

    loop = asyncio.new_event_loop()
    connection = loop.run_until_complete(asyncpg.connect(url))
    return lambda query: [tuple(row) for row in loop.run_until_complete(connection.fetch(query))]


def adbc():
    from adbc_driver_postgresql import dbapi

    cursor = dbapi.connect(url).cursor()

    def read(query):
        cursor.execute(query)
        # Without pyarrow's own conversion: numeric is a text of another type.
        table = cursor.fetch_arrow_table()
        return list(zip(*[[one.as_py() for one in column] for column in table.columns])) if table.num_columns else []

    return read


def pyodbc():
    import pyodbc

    return by_cursor(pyodbc.connect(given["odbc"]).cursor())


def polars():
    import polars
    import sqlalchemy as sa

    connection = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:")).connect()
    return lambda query: polars.read_database(query, connection, infer_schema_length=None).rows()


libraries = (psycopg, sqlalchemy, asyncpg, adbc, pyodbc, polars)
read = {f.__name__: f for f in libraries}[sys.argv[1].split("-")[0]]()
counts = [(view.split(".")[1], len(read(f"SELECT * FROM {view}"))) for view in views]
print(json.dumps({"counts": counts, "responses": [[text(cell) for cell in read(query)[0]] for query in queries]}))
