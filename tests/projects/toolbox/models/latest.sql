with sales as ( select {{ tools.star(ref('sales'), except=['_dbt_source_relation', 'note']) }}, {{ tools.surrogate_key(['id', 'region']) }} as sale_key from {{ ref('sales') }} ),
found as ( {{ tools.deduplicate('sales', 'id', 'at') }} )
select * from found
