{{ config(materialized='view', bind=false) }}
select unique_id, status, row_number() over (partition by unique_id order by result_id desc) as place
from {{ ref('dbt_run_results') }}
