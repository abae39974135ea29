{#- The relation that the running test belongs to, without its `where`. -#}
{% macro ktk_tested() %}
  {%- set first = model.depends_on.nodes | first -%}
  {%- set node = graph.nodes.get(model.attached_node) or graph.nodes.get(first) -%}
  {%- if node -%}
    {{ return(api.Relation.create(schema=node.schema, identifier=node.alias)) }}
  {%- endif -%}
  {%- set node = graph.sources[first] -%}
  {{ return(source(node.source_name, node.name)) }}
{% endmacro %}


{#- SQL whose rows are the failures; what files and schemas say is known without Spark. -#}
{% macro ktk_test(kind, rows, arguments={}) %}
  {%- if execute -%}
    {%- set found = adapter.cube_test(kind, ktk_tested(), rows | string, arguments) -%}
    {%- if found.message -%}{%- do log(found.message, info=true) -%}{%- endif -%}
    {{ found.sql }}
  {%- endif -%}
{% endmacro %}


{#- Keeps the failures of a test, which Spark's own catalog would otherwise be asked to do. -#}
{% macro ktk__get_create_sql(relation, sql) %}
  {%- do adapter.store_query(relation, sql) -%}
  select 1 as stored
{% endmacro %}
