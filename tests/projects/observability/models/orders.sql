{{ config(materialized='table') }}
select cast(updated_at as date) as day, sum(metric) as metric from {{ ref('training') }} group by 1
