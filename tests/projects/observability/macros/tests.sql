{# dbt takes a materialization of its own from a package only where the project says so. #}
{% materialization test, default %}
  {% set result = observer.materialization_test_default() %}
  {% do return(result) %}
{% endmaterialization %}
