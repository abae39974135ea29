{{ config(unique_key='result_id', incremental_strategy='append') }}
{{ observer.empty_table([('result_id', 'string'), ('unique_id', 'string'), ('status', 'string'), ('message', 'long_string'),
                         ('execution_time', 'float'), ('is_full_refresh', 'boolean'), ('invocation_id', 'string')]) }}
