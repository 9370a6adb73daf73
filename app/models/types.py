"""Column types, and functions of JSON columns, that behave alike on SQLite and PostgreSQL."""

import struct
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import ARRAY, JSON, ColumnElement, DateTime, Dialect, SQLColumnExpression, String, literal
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import GenericFunction
from sqlalchemy.types import Boolean, Integer, TypeDecorator, TypeEngine


class JsonColumn(TypeDecorator[Any]):
    """JSON; JSONB in PostgreSQL, whose dialect is imported only for its databases: importing takes a tenth of a
    command.

    An absent value is SQL NULL, never the JSON text "null".
    """

    impl = JSON
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name != "postgresql":
            return dialect.type_descriptor(JSON(none_as_null=True))
        from sqlalchemy.dialects.postgresql import JSONB

        return dialect.type_descriptor(JSONB(none_as_null=True))

    def coerce_compared_value(self, op: Any, value: Any) -> Any:
        """Treat an index as a number or a key, not as JSON."""
        return self.impl_instance.coerce_compared_value(op, value)


Json = JsonColumn(none_as_null=True)


def float32_bytes(values: Sequence[float]) -> bytes:
    """Numbers as little-endian float32, four bytes each."""
    return struct.pack(f"<{len(values)}f", *values)


def rounded_log_probs(stored: bytes) -> list[float]:
    """The numbers that `float32_bytes` wrote, to a millionth: about the precision of a log-probability in float32."""
    return [round(value, 6) for value in struct.unpack(f"<{len(stored) // 4}f", stored)]


class UtcDateTime(TypeDecorator[datetime]):
    """A moment, always aware and in UTC; SQLite would forget the zone."""

    impl = DateTime
    cache_ok = True

    def process_bind_param(self, value: datetime | None, _dialect: Dialect) -> Any:
        return None if value is None else value.astimezone(UTC).replace(tzinfo=None)

    def process_result_value(self, value: Any, _dialect: Dialect) -> datetime | None:
        return None if value is None else value.replace(tzinfo=UTC)


class Amount(TypeDecorator[Decimal]):
    """An exact amount, stored as text; SQLite would store a binary fraction."""

    impl = String(24)
    cache_ok = True

    def process_bind_param(self, value: Decimal | None, _dialect: Dialect) -> Any:
        return None if value is None else str(value)

    def process_result_value(self, value: Any, _dialect: Dialect) -> Decimal | None:
        return None if value is None else Decimal(value)


class _Numbers(TypeDecorator[Sequence[int]]):
    """Whole numbers as one value of a statement: an array in PostgreSQL, and JSON in SQLite."""

    impl = JSON
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(ARRAY(Integer) if dialect.name == "postgresql" else JSON())


class _is_among(GenericFunction[bool]):  # noqa: N801 - functions of SQL are named so
    type = Boolean()
    inherit_cache = True


def is_among(column: SQLColumnExpression[int | None], numbers: Collection[int]) -> ColumnElement[bool]:
    """Whether a column has one of many numbers, bound as one value: bound one by one, thousands of numbers take longer
    to send than the rows take to find.
    """
    return _is_among(column, literal([*numbers], _Numbers()))


class list_length(GenericFunction[int]):  # noqa: N801
    """How many items the list in a JSON column has, counted by the database."""

    type = Integer()
    inherit_cache = True


class list_holds(GenericFunction[bool]):  # noqa: N801
    """Whether the list in a JSON column holds a number: `list_holds(column, number)`."""

    type = Boolean()
    inherit_cache = True


@compiles(_is_among)
def _compiled_among(element: _is_among, compiler: Any, **options: Any) -> str:
    column, numbers = (compiler.process(each, **options) for each in element.clauses)
    if compiler.dialect.name == "postgresql":
        return f"{column} = ANY({numbers})"
    return f"{column} IN (SELECT value FROM json_each({numbers}))"  # noqa: S608 - made of bound parts


@compiles(list_length)
def _list_length(element: list_length, compiler: Any, **options: Any) -> str:
    prefix = "jsonb" if compiler.dialect.name == "postgresql" else "json"
    return f"{prefix}_array_length({compiler.process(element.clauses, **options)})"


@compiles(list_holds)
def _list_holds(element: list_holds, compiler: Any, **options: Any) -> str:
    column, number = (compiler.process(each, **options) for each in element.clauses)
    if compiler.dialect.name == "postgresql":
        return f"({column}) @> to_jsonb(CAST({number} AS integer))"
    return f"EXISTS (SELECT 1 FROM json_each({column}) AS held WHERE held.value = {number})"  # noqa: S608 - made of bound parts
