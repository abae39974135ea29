{{ config(materialized='table', post_hook="{{ insert_resources(this, 'nodes') }}") }}
{% if execute %} {{ check_model_is_table(model) }} {% endif %}
select
    cast(null as {{ dbt.type_string() }}) as unique_id, cast(null as {{ dbt.type_string() }}) as name,
    cast(null as {{ dbt.type_string() }}) as resource_type, cast(null as {{ dbt.type_string() }}) as file_path,
    cast(true as boolean) as is_enabled, cast(null as {{ dbt.type_string() }}) as materialized,
    cast(null as {{ dbt.type_string() }}) as package_name, cast(true as boolean) as is_described,
    cast(0 as {{ dbt.type_int() }}) as number_columns
from (select 1 as dummy) as dummy
where false
