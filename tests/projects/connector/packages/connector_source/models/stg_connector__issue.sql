with base as (
    select * from {{ ref('stg_connector__issue_tmp') }}
),
fields as (
    select
        {{ fill_staging_columns(
            source_columns=adapter.get_columns_in_relation(ref('stg_connector__issue_tmp')),
            staging_columns=get_issue_columns()
        ) }}
    from base
)
select
    id as issue_id, title, body, pull_request as is_pull_request, milestone_id, custom_renamed,
    cast(created_at as {{ dbt.type_timestamp() }}) as created_at,
    cast(closed_at as {{ dbt.type_timestamp() }}) as closed_at
from fields
