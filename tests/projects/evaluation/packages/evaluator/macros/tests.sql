{% test is_empty(model) %}
{{ config(severity=env_var('DBT_PROJECT_EVALUATOR_SEVERITY', 'warn'), limit=500) }}
select * from {{ model }}
{% endtest %}
