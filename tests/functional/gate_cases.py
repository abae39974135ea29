"""Projects that break one rule of the gate each, and the fix that the message suggests."""

from __future__ import annotations

from dataclasses import dataclass, field

SEED = """
{{ config(materialized='cube_seed', cube='c', dimension_columns=['L'], partition_by=['P']) }}
select id % 2 as P, id as L, id * 2 as v, cast(id as decimal(10, 2)) as price,
  date'2019-05-21' as day, cast('x' as binary) as raw, id > 3 as big,
  timestamp_ntz'2019-05-21 12:30:00' as at, timestamp'2019-05-21 12:30:00' as seen,
  cast(id as decimal(20, 0)) as u, named_struct('zip', id, 'city', 'x') as address
from range(8)
"""
EXTRA = """
{{ config(materialized='cube_enrichment', cube='c', dimension_columns=['L'], partition_by=['P']) }}
select id % 2 as P, id as L, id * 1.5D as w from range(8)
"""
YAML = """
models:
  - name: cells
    columns:
      - {name: u, data_type: uint32}
  - name: extra
"""


@dataclass(frozen=True)
class Case:
    """One rule.

    Attributes:
        name: of the case and of its golden text.
        model: the model that fails.
        broken: (old, new) replacements in the project's texts that break the rule.
        fixed: replacements, on top of the broken ones, that the message suggests.
        flags: arguments of the failing run.
        fixed_flags: arguments of the run with the fix.
    """

    name: str
    model: str
    broken: tuple[tuple[str, str], ...]
    fixed: tuple[tuple[str, str], ...]
    flags: tuple[str, ...] = ()
    fixed_flags: tuple[str, ...] = field(default=())


def _cast(name: str, model: str, broken: tuple[str, str], fixed: tuple[str, str]) -> Case:
    return Case(name, model, (broken,), (fixed,))


CASES = [
    _cast(
        "float_for_integer",
        "cells",
        ("id * 2 as v", "id * 2.0D as v"),
        ("id * 2.0D as v", "cast(id * 2.0D as bigint) as v"),
    ),
    _cast(
        "integer_for_float",
        "extra",
        ("id * 1.5D as w", "id as w"),
        ("id as w", "cast(id as double) as w"),
    ),
    _cast(
        "string_for_integer",
        "cells",
        ("id * 2 as v", "'7' as v"),
        ("'7' as v", "cast('7' as bigint) as v"),
    ),
    _cast(
        "bool_for_integer",
        "cells",
        ("id * 2 as v", "id > 1 as v"),
        ("id > 1 as v", "cast(id > 1 as bigint) as v"),
    ),
    _cast(
        "integer_for_bool",
        "cells",
        ("id > 3 as big", "id as big"),
        ("id as big", "cast(id as boolean) as big"),
    ),
    _cast(
        "string_for_binary",
        "cells",
        ("cast('x' as binary) as raw", "'x' as raw"),
        ("'x' as raw", "cast('x' as binary) as raw"),
    ),
    _cast(
        "timestamp_for_date",
        "cells",
        ("date'2019-05-21' as day", "timestamp_ntz'2019-05-21 12:30:00' as day"),
        (
            "timestamp_ntz'2019-05-21 12:30:00' as day",
            "cast(timestamp_ntz'2019-05-21 12:30:00' as date) as day",
        ),
    ),
    _cast(
        "zone_for_none",
        "cells",
        ("timestamp_ntz'2019-05-21 12:30:00' as at", "timestamp'2019-05-21 12:30:00' as at"),
        (
            "timestamp'2019-05-21 12:30:00' as at",
            "cast(timestamp'2019-05-21 12:30:00' as timestamp_ntz) as at",
        ),
    ),
    _cast(
        "another_scale",
        "cells",
        ("as decimal(10, 2)) as price", "as decimal(10, 3)) as price"),
        (
            "cast(id as decimal(10, 3)) as price",
            "cast(cast(id as decimal(10, 3)) as decimal(38, 2)) as price",
        ),
    ),
    _cast(
        "a_nested_class",
        "cells",
        ("named_struct('zip', id,", "named_struct('zip', string(id),"),
        (
            "named_struct('zip', string(id), 'city', 'x') as address",
            "cast(named_struct('zip', string(id), 'city', 'x') as "
            "struct<zip: bigint, city: string>) as address",
        ),
    ),
    Case(
        "a_missing_and_an_unknown_column",
        "cells",
        (("id * 2 as v", "id * 2 as vv"),),
        (("id * 2 as vv", "id * 2 as v"),),
    ),
    Case(
        "an_unknown_column",
        "extra",
        (("as w from", "as w, 1 as colour from"),),
        (("cube='c',", "cube='c', on_schema_change='append_new_columns',"),),
    ),
    Case(
        "no_class",
        "extra",
        (("id * 1.5D as w", "interval '1' day as w"),),
        (("interval '1' day as w", "86400.0D as w"),),
        ("--full-refresh",),
    ),
    Case(
        "a_shared_column_of_another_class",
        "extra",
        (("id as L, id * 1.5D", "string(id) as L, id * 1.5D"),),
        (("string(id) as L", "cast(string(id) as bigint) as L"),),
        ("--full-refresh",),
    ),
    Case(
        "payload_of_another_dataset",
        "extra",
        (("as w from", "as w, 1 as v from"),),
        (("1 as v from", "1 as other from"),),
        ("--full-refresh",),
        ("--full-refresh",),
    ),
    Case(
        "a_decimal_dimension",
        "cells",
        (("['L']", "['L', 'price']"),),
        (("cast(id as decimal(10, 2)) as price", "string(cast(id as decimal(10, 2))) as price"),),
        ("--full-refresh",),
        ("--full-refresh",),
    ),
    Case(
        "declared_as_another_class",
        "extra",
        (("  - name: extra", "  - name: extra\n    columns: [{name: w, data_type: int16}]"),),
        (("id * 1.5D as w", "cast(id * 1.5D as bigint) as w"),),
        ("--full-refresh",),
        ("--full-refresh",),
    ),
    Case(
        "declared_but_missing",
        "extra",
        (("  - name: extra", "  - name: extra\n    columns: [{name: w2, data_type: double}]"),),
        (("as w from", "as w2 from"),),
        ("--full-refresh",),
        ("--full-refresh",),
    ),
    Case(
        "a_negative_number_for_unsigned",
        "cells",
        (("cast(id as decimal(20, 0)) as u", "id - 2 as u"),),
        (("id - 2 as u", "greatest(id - 2, 0) as u"),),
    ),
    Case(
        "overflow_of_a_declared_width",
        "cells",
        (
            ("data_type: uint32", "data_type: uint8"),
            ("as decimal(20, 0)", "+ 252 as decimal(20, 0)"),
        ),
        (("data_type: uint8", "data_type: uint16"),),
    ),
    Case(
        "lost_precision",
        "extra",
        (
            ("id * 1.5D as w", "id / 10.0D as w"),
            ("  - name: extra", "  - name: extra\n    columns: [{name: w, data_type: float32}]"),
        ),
        (("id / 10.0D as w", "cast(id / 10.0D as float) as w"),),
    ),
    Case(
        "a_contract",
        "extra",
        (
            (
                "  - name: extra",
                "  - name: extra\n    config: {contract: {enforced: true}}\n    columns: "
                "[{name: P, data_type: bigint}, {name: L, data_type: bigint}, "
                "{name: x, data_type: string}]",
            ),
        ),
        (("{name: x, data_type: string}", "{name: w, data_type: double}"),),
    ),
    Case(
        "a_null_in_a_dimension",
        "extra",
        (("id as L, id * 1.5D", "nullif(id, 7) as L, id * 1.5D"),),
        (("nullif(id, 7) as L", "coalesce(nullif(id, 7), -1) as L"),),
    ),
    Case(
        "duplicate_cells",
        "extra",
        (("id as L, id * 1.5D", "id div 4 as L, id * 1.5D"),),
        (("id * 1.5D as w from range(8)", "max(id * 1.5D) as w from range(8) group by 1, 2"),),
    ),
    Case(
        "a_seed_that_breaks_an_enrichment",
        "cells",
        (("id as L, id * 2", "string(id) as L, id * 2"),),
        (
            (
                "cube='c', dimension_columns=['L'], partition_by=['P']) }}\n"
                "select id % 2 as P, string",
                "cube='c', cascade=true, dimension_columns=['L'], partition_by=['P']) }}\n"
                "select id % 2 as P, string",
            ),
        ),
        ("--full-refresh",),
        ("--full-refresh",),
    ),
]
