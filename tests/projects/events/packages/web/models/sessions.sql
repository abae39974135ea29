{{ config(materialized='incremental', unique_key='session_id', upsert_date_key='start_tstamp', disable_upsert_lookback=false,
          partition_by=web.by_target(bigquery_val={'field': 'start_tstamp', 'data_type': 'timestamp'}, databricks_val='start_date'),
          cluster_by=web.by_target(snowflake_val=['to_date(start_tstamp)'], bigquery_val=['user_id']),
          on_schema_change='append_new_columns', sql_header="set spark.sql.ansi.enabled = true;",
          tblproperties={'delta.autoOptimize.optimizeWrite': 'true'}) }}
select session_id, max(user_id) as user_id, min(derived_tstamp) as start_tstamp, min(event_date) as start_date,
    count(distinct event_id) as events, collect_set(browser) as browsers
from {{ ref('new_events') }}
{% if is_incremental() %} where collector_tstamp >= (select coalesce(min(start_tstamp), cast('1970-01-01' as timestamp)) from {{ this }}) {% endif %}
group by session_id
