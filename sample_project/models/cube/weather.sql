{{ config(
    materialized='cube_enrichment',
    cube='nyc',
    dimension_columns=['time_hour'],
    partition_by=['origin', 'month'],
) }}
select * from {{ ref('stg_weather') }}
