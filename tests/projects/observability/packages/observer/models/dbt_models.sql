{{ config(unique_key='unique_id', incremental_strategy='merge', post_hook='{{ observer.upload_models(this) }}') }}
{{ observer.empty_table([('unique_id', 'string'), ('alias', 'string'), ('depends_on', 'string'), ('description', 'long_string'),
                         ('meta', 'long_string'), ('columns', 'int'), ('generated_at', 'timestamp')]) }}
