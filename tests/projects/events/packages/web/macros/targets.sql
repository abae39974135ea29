{% macro by_target(bigquery_val=none, snowflake_val=none, databricks_val=none, spark_val=none) %}
  {% set values = {'bigquery': bigquery_val, 'snowflake': snowflake_val, 'databricks': databricks_val, 'spark': spark_val or databricks_val} %}
  {% if target.type not in values %}
    {{ exceptions.raise_compiler_error("Snowplow: Unexpected target type " ~ target.type) }}
  {% endif %}
  {{ return(values[target.type]) }}
{% endmacro %}

{% macro check_target() %}
  {% if target.type == 'databricks' and not target.get('catalog') %} {% do exceptions.warn("no catalog") %} {% endif %}
  {% if target.type == 'spark' and var('web__events') is none %} {{ exceptions.raise_compiler_error("no events") }} {% endif %}
{% endmacro %}

{% macro timestamp_add(part, interval, at) %} {{ return(adapter.dispatch('timestamp_add', 'web')(part, interval, at)) }} {% endmacro %}
{% macro default__timestamp_add(part, interval, at) %} {{ return(dbt.dateadd(part, interval, at)) }} {% endmacro %}
{% macro spark__timestamp_add(part, interval, at) %} timestampadd({{ part }}, {{ interval }}, {{ at }}) {% endmacro %}

{% macro get_split_to_array(column, delimiter=',') %} {{ return(adapter.dispatch('get_split_to_array', 'web')(column, delimiter)) }} {% endmacro %}
{% macro default__get_split_to_array(column, delimiter) %} string_to_array({{ column }}, '{{ delimiter }}') {% endmacro %}
{% macro spark__get_split_to_array(column, delimiter) %} split({{ column }}, '{{ delimiter }}') {% endmacro %}

{# The span of this run: from the manifest, at most so many days. #}
{% macro new_limits(manifest) %}
  {% set none_yet = {'lower': "cast('" ~ var('web__start_date') ~ "' as timestamp)", 'upper': web.timestamp_add('day', var('web__backfill_limit_days'), "cast('" ~ var('web__start_date') ~ "' as timestamp)")} %}
  {% if not execute %} {{ return(none_yet) }} {% endif %}
  {% set there = load_relation(manifest) %}
  {% if there is none %} {{ return(none_yet) }} {% endif %}
  {% set found = run_query("select max(last_success) as at, count(*) as n from " ~ manifest).rows[0] %}
  {% if found['n'] == 0 %} {{ return(none_yet) }} {% endif %}
  {% set lower = "cast('" ~ found['at'].strftime('%Y-%m-%d %H:%M:%S') ~ "' as timestamp)" %}
  {{ return({'lower': lower, 'upper': web.timestamp_add('day', var('web__backfill_limit_days'), lower)}) }}
{% endmacro %}

{% macro web_delete_from_manifest(models) %}
  {% if models %}
    {% set manifest = ref('manifest') %}
    {% if load_relation(manifest) %}
      delete from {{ manifest }} where model in ({% for name in models %} '{{ name }}'{{ ',' if not loop.last }} {% endfor %})
    {% endif %}
  {% endif %}
{% endmacro %}
