{% macro wrap(value) -%} {{ return(adapter.dispatch('wrap', 'evaluator')(value)) }} {%- endmacro %}
{% macro default__wrap(value) -%}
  {{ return("'" ~ (value | string | replace("'", "_")) ~ "'") if value is not none and value is not undefined else return("cast(null as " ~ dbt.type_string() ~ ")") }}
{%- endmacro %}

{% macro get_nodes(columns) %}
  {% set values = [] %}
  {% for node in graph.nodes.values() | list + graph.exposures.values() | list %}
    {% do values.append([
      wrap(node.unique_id), wrap(node.name), wrap(node.resource_type), wrap(node.original_file_path | replace("\\", "/")),
      "cast(" ~ (node.config.enabled | trim) ~ " as boolean)", wrap(node.config.materialized), wrap(node.package_name),
      "cast(" ~ (1 if node.description else 0) ~ " as boolean)", "cast(" ~ (node.columns | default({}) | length) ~ " as " ~ dbt.type_int() ~ ")"
    ]) %}
  {% endfor %}
  {{ return(values) }}
{% endmacro %}

{% macro get_relationships() %}
  {% set values = [] %}
  {% for node in graph.nodes.values() | list + graph.exposures.values() | list %}
    {% for parent in node.get('depends_on', {}).get('nodes', []) %}
      {% do values.append([wrap(node.unique_id), wrap(parent), loop.index]) %}
    {% endfor %}
  {% endfor %}
  {{ return(values) }}
{% endmacro %}

{% macro insert_resources(relation, kind, batch_size=var('insert_batch_size') | int) %}
  {%- set values = (get_nodes() if kind == 'nodes' else get_relationships()) if execute else [] -%}
  {%- for number in range(((values | length) / batch_size) | round(0, 'ceil') | int) -%}
    {%- set batch = values[number * batch_size : (number + 1) * batch_size] %}
    {%- set rows = [] -%}
    {%- for row in batch -%} {%- do rows.append(row | join(", \n")) -%} {%- endfor -%}
    {% call statement('insert') -%}
      {{ "insert into " ~ relation ~ " values \n(" ~ rows | join("), \n\n(") ~ ");" }}
    {%- endcall %}
  {% endfor %}
{% endmacro %}

{# A warehouse without recursion has a query for each level. #}
{% macro all_relationships() -%} {{ return(adapter.dispatch('all_relationships', 'evaluator')()) }} {%- endmacro %}
{% macro default__all_relationships() -%} with recursive forbidden as (select 1 as never) {%- endmacro %}
{% macro spark__all_relationships() -%}
with direct as (
    select * from {{ ref('stg_relationships') }}
),
cte_0 as (
    select distinct resource_id as parent_id, resource_id as child_id, resource_name as parent, resource_name as child,
        0 as distance, array(resource_name) as path
    from direct
)
{% for level in range(1, var('max_depth_dag') + 1) %}
, cte_{{ level }} as (
    select cte.parent_id, direct.resource_id as child_id, cte.parent, direct.resource_name as child,
        cte.distance + 1 as distance, {{ dbt.array_append('cte.path', 'direct.resource_name') }} as path
    from direct
    inner join cte_{{ level - 1 }} as cte on cte.child_id = direct.direct_parent_id
)
{% endfor %}
, all_levels as (
{% for level in range(var('max_depth_dag') + 1) %}
    select * from cte_{{ level }} {% if not loop.last %} union all {% endif %}
{% endfor %}
)
{%- endmacro %}
