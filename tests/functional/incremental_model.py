"""A model with one row for each number, more in its second run."""

from __future__ import annotations

MODEL = """
{{{{ config({config}) }}}}
select id % 3 as P, id as L, id + {{{{ var('add', 0) }}}} as v from range({{{{ var('end', 6) }}}})
{{% if is_incremental() %}} where id >= {{{{ var('start', 3) }}}} {{% endif %}}
"""


def model(**config) -> str:
    return MODEL.format(config=", ".join(f"{key}={value!r}" for key, value in config.items()))
