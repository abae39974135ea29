{{ config(
    materialized='incremental',
    partition_by={'field': 'date_day', 'data_type': 'date'} if target.type not in ('spark', 'databricks') else ['date_day'],
    unique_key='date_day',
    incremental_strategy='insert_overwrite' if target.type in ('bigquery', 'spark', 'databricks') else 'delete+insert',
    file_format='delta' if target.type == 'databricks' else 'parquet'
) }}
select
    spine.date_day,
    count(distinct case when cast(issues.created_at as date) = spine.date_day then issue_id end) as opened,
    count(distinct case when cast(issues.closed_at as date) = spine.date_day then issue_id end) as closed
from {{ ref('int_connector__spine') }} as spine
cross join {{ ref('connector__issues') }} as issues
{% if is_incremental() %}
where spine.date_day >= (select max(date_day) from {{ this }})
{% endif %}
group by spine.date_day
