{{ config(enabled=var('connector_using_labels', True)) }}
select * from {{ var('label') }}
