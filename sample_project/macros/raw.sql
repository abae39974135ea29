{#- A file that get_data.py wrote. The staging models are ephemeral, so that this path is part of
    a running statement only and never of a stored view: the project may be moved. -#}
{% macro raw(table) -%}
parquet.`{{ var('data', invocation_args_dict.project_dir ~ '/data') }}/{{ table }}.parquet`
{%- endmacro %}
