with dummy_cte as (select 1 as foo)
select
    cast(null as {{ type_string() }}) as command_invocation_id,
    cast(null as {{ type_string() }}) as node_id,
    cast(null as {{ type_array() if false else type_string() }}) as column_name,
    cast(null as {{ type_string() }}) as description
from dummy_cte
where 1 = 0
