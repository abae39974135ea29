-- The seed dataset: one row (cell) for each flight that was planned. An airline uses a flight number
-- once an hour and origin, so these columns tell all 336,776 flights apart; the tail number is a
-- dimension so that planes can be joined to it.
{{ config(
    materialized='cube_seed',
    cube='nyc',
    dimension_columns=['carrier', 'flight', 'tailnum', 'time_hour'],
    partition_by=['origin', 'month'],
    indexes=['dest'],
) }}
select * from {{ ref('stg_flights') }}
