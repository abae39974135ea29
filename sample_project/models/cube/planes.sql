{{ config(materialized='cube_enrichment', cube='nyc', dimension_columns=['tailnum']) }}
select * from {{ ref('stg_planes') }}
