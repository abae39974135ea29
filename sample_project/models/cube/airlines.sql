{{ config(materialized='cube_enrichment', cube='nyc', dimension_columns=['carrier']) }}
select * from {{ ref('stg_airlines') }}
