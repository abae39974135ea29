{% set kinds = tools.get_column_values(ref('sales'), 'kind', order_by='kind') %}
select region, {{ tools.pivot('kind', kinds, then_value='amount') }} from {{ ref('sales') }} {{ dbt_group_by(1) }}
