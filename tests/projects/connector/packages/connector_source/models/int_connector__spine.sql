{{ config(materialized='ephemeral') }}
-- depends_on: {{ ref('stg_connector__issue') }}
{% set first = run_query("select min(cast(created_at as date)) from " ~ ref('stg_connector__issue')).columns[0][0] if execute else '2024-01-01' %}
with spine as (
    {{ dbt.date_spine('day', "cast('" ~ first ~ "' as date)", "cast('2024-01-08' as date)") }}
)
select cast(date_day as date) as date_day from spine
