"""Insertion of an Arrow table: the rows of COPY, with columns by their names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from belvedere.errors import InvalidInput
from belvedere.session.context.result import Result
from belvedere.session.copy.copy import insert_column_batches
from belvedere.session.statement import bind
from belvedere.sql import statements as s
from belvedere.values.quoting import quote_identifier

if TYPE_CHECKING:
    import pyarrow as pa

    from belvedere.session.session import Session

BATCH_ROWS = 20_000


def insert_arrow_table(session: Session, name: str, table: pa.Table) -> Result:
    """Insert the rows of `table` into the table `name`, all or none. Columns that it lacks get
    their defaults; one that the SQL table lacks is an error."""
    names = table.column_names
    if not names:
        raise InvalidInput("an arrow table without columns", sqlstate="42601")
    columns = ", ".join(map(quote_identifier, names))
    (parsed,) = bind.parse_statements(
        f"COPY {quote_identifier(*name.rsplit('.', 1))} ({columns}) FROM STDIN"
    )
    session.transactions.require_not_failed()
    try:
        session.begin_statement()
        statement, _ = bind.bind_inferring_parameter_types(session, parsed, ())
        assert isinstance(statement, s.Copy)
        return session.run_with_timeout(
            lambda: session.run_in_transaction(
                True,
                lambda t: insert_column_batches(
                    session, t, statement, _split_into_column_batches(table)
                ),
            )
        )
    except BaseException:
        session.transactions.fail()
        raise


def _split_into_column_batches(table: pa.Table) -> Iterator[list[pa.Array]]:
    for batch in table.combine_chunks().to_batches(BATCH_ROWS):
        yield batch.columns
