{{ config(unique_key='metric_id', incremental_strategy='merge') }}
{{ observer.empty_table([('metric_id', 'string'), ('value', 'float'), ('updated_at', 'timestamp')]) }}
