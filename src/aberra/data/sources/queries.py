"""The result of an SQL query as a table."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from aberra.data.sources.formats import written
from aberra.errors import DataError
from aberra.extras import need
from aberra.files import reading, starts_with

ADDRESS = re.compile(r"^[A-Za-z][\w+.-]*://")
SECRET = re.compile(r"://[^/@]*@")
SQLITE = b"SQLite format 3\x00"
DUCKDB = (".duckdb", ".ddb")
ADVICE = "Try the query in the database's own shell."


def masked(place: str) -> str:
    """Return the address of a database without user and password."""
    return SECRET.sub("://***@", place)


def query_to(place: str, sql: str, target: Path) -> None:
    """Write the result of a query to a Parquet file.

    Parameters
    ----------
    place : str
        An SQLite or DuckDB file, an address for SQLAlchemy, or a file of rows, which DuckDB reads
        and the query calls `data`.
    sql : str
    target : Path
    """
    with reading(masked(place), ADVICE):
        if ADDRESS.match(place):
            _sqlalchemy(place, sql, target)
        elif not Path(place).is_file():
            raise DataError(f"There is no file {place} to query.")
        elif starts_with(Path(place), SQLITE):
            _sqlite(Path(place), sql, target)
        else:
            _duckdb(Path(place), sql, target)


def _sqlite(path: Path, sql: str, target: Path) -> None:
    # Read only: a query must not change what it asks about.
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
        _kept(pd.read_sql_query(sql, connection), target)


def _sqlalchemy(address: str, sql: str, target: Path) -> None:
    sqlalchemy = need("sqlalchemy", "files", "A query of a database")
    engine = sqlalchemy.create_engine(address)
    try:
        with engine.connect() as connection:
            _kept(pd.read_sql_query(sqlalchemy.text(sql), connection), target)
    finally:
        engine.dispose()


def _duckdb(path: Path, sql: str, target: Path) -> None:
    duckdb = need("duckdb", "files", "A query of a DuckDB database or of a file of rows")
    is_database = path.name.lower().endswith(DUCKDB)
    with duckdb.connect(str(path), read_only=True) if is_database else duckdb.connect() as known:
        if not is_database:
            quoted = str(path).replace("'", "''")
            known.execute(f"CREATE VIEW data AS SELECT * FROM '{quoted}'")
        _streamed(known.sql(sql), target)


def _streamed(result: Any, target: Path) -> None:
    reader = pa.RecordBatchReader.from_stream(result)
    with pq.ParquetWriter(target, reader.schema) as file:
        for batch in reader:
            file.write_batch(batch)


def _kept(frame: pd.DataFrame, target: Path) -> None:
    if not len(frame.columns):
        raise DataError("The query gives no table.")
    written(frame, target)
