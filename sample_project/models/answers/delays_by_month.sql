-- Delays of each airline, month by month. A later run computes the newest month again, and replaces
-- the partitions that it gives: it opens the files of that month only.
{{ config(
    materialized='incremental',
    incremental_strategy='insert_overwrite',
    partition_by=['month'],
) }}
select
    month,
    carrier,
    count(*) as flights,
    count_if(dep_time is null) as cancelled,
    round(avg(dep_delay), 1) as delay
from {{ ref('nyc') }}
{% if is_incremental() -%}
where month >= {{ run_query('select max(month) from ' ~ this).columns[0].values()[0] }}
{% endif -%}
group by month, carrier
