{#- The relation that the running test belongs to, without its `where`; with `--defer`, what dbt
    defers to. dbt does not say which of several sources that is: it is not the seed dataset that
    the test reads in addition. -#}
{% macro ktk_tested(seed) %}
  {%- set first = model.depends_on.nodes | first -%}
  {%- set node = graph.nodes.get(model.attached_node) or graph.nodes.get(first) -%}
  {%- if node -%}
    {{ return(ref(node.package_name, node.name, v=node.get('version'))) }}
  {%- endif -%}
  {%- set found = [] -%}
  {%- for name in model.depends_on.nodes if name in graph.sources -%}
    {%- set node = graph.sources[name] -%}
    {%- do found.append(source(node.source_name, node.name)) -%}
  {%- endfor -%}
  {%- set others = found | rejectattr('place', 'equalto', seed.place) | list if seed else found -%}
  {{ return(others | first if others else found | first) }}
{% endmacro %}


{#- The seed dataset that a test reads besides its own model. Only a `ref` makes dbt build it first:
    that is why parsing refuses a test without one. -#}
{% macro ktk_seed_of_test(test, seed) %}
  {%- if seed is none or seed is string -%}
    {{ exceptions.raise_compiler_error(
        test ~ ' needs the seed dataset as a ref, or it would run before that is built and judge an '
        'old one. Write for instance:\n      - ' ~ test ~ ": {arguments: {seed: ref('flights')}}") }}
  {%- endif -%}
  {{ return(seed) }}
{% endmacro %}


{#- SQL whose rows are the failures; what files and schemas say is known without Spark. -#}
{% macro ktk_test(kind, rows, arguments={}) %}
  {%- if execute -%}
    {%- set found = adapter.cube_test(kind, ktk_tested(arguments.seed), rows | string, arguments) -%}
    {%- if found.message -%}{%- do log(found.message, info=true) -%}{%- endif -%}
    {{ found.sql }}
  {%- endif -%}
{% endmacro %}


{#- Keeps the failures of a test, which Spark's own catalog would otherwise be asked to do. -#}
{% macro ktk__get_create_sql(relation, sql) %}
  {%- set header = config.get('sql_header') if flags.REQUIRE_SQL_HEADER_IN_TEST_CONFIGS else none -%}
  {%- do adapter.store_query(relation, sql, header or '') -%}
  select 1 as stored
{% endmacro %}
