{% macro convert_timezone(column, target_tz=none, source_tz='UTC') %} {{ return(adapter.dispatch('convert_timezone', 'tools')(column, target_tz or var('tools:time_zone'), source_tz)) }} {% endmacro %}
{% macro default__convert_timezone(column, target_tz, source_tz) -%} convert_timezone('{{ source_tz }}', '{{ target_tz }}', {{ column }}) {%- endmacro %}
{% macro spark__convert_timezone(column, target_tz, source_tz) -%} from_utc_timestamp(to_utc_timestamp({{ column }}, '{{ source_tz }}'), '{{ target_tz }}') {%- endmacro %}
{% macro week_start(date) -%} {{ return(adapter.dispatch('week_start', 'tools')(date)) }} {%- endmacro %}
{% macro default__week_start(date) -%} cast({{ dbt.date_trunc('week', date) }} as date) {%- endmacro %}
{% macro day_of_week(date) -%} {{ return(adapter.dispatch('day_of_week', 'tools')(date)) }} {%- endmacro %}
{% macro spark__day_of_week(date) -%} case when extract(dayofweek_iso from {{ date }}) = 7 then 7 else extract(dayofweek_iso from {{ date }}) end {%- endmacro %}
{% macro default__day_of_week(date) -%} date_part('dow', {{ date }}) {%- endmacro %}
{% macro month_name(date, short=true) -%} {{ return(adapter.dispatch('month_name', 'tools')(date, short)) }} {%- endmacro %}
{% macro default__month_name(date, short) -%} to_char({{ date }}, 'Mon') {%- endmacro %}
{% macro spark__month_name(date, short) -%} date_format({{ date }}, {{ "'LLL'" if short else "'LLLL'" }}) {%- endmacro %}
{% macro yesterday() -%} {{ dbt.dateadd('day', -1, 'current_date') }} {%- endmacro %}
