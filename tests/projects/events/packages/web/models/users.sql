{{ config(materialized='incremental', incremental_strategy='insert_overwrite', file_format='parquet', location_root=none, unique_key='user_id') }}
select user_id, count(*) as sessions, sum(events) as events from {{ ref('sessions') }} group by user_id
