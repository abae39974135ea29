/* Bigquery won't let us `where` without `from` so we use this workaround */
with dummy_cte as (select 1 as foo)
select
    cast(null as {{ type_string() }}) as command_invocation_id,
    cast(null as {{ type_timestamp() }}) as run_started_at,
    cast(null as {{ type_string() }}) as dbt_command,
    cast(null as {{ type_boolean() }}) as full_refresh_flag,
    cast(null as {{ uploads.type_json() }}) as invocation_args
from dummy_cte
where 1 = 0
