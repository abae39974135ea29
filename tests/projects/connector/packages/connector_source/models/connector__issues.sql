select
    *,
    {{ connector_source.seconds_between('created_at', 'closed_at') }} / 86400.0 as days_open
from {{ ref('stg_connector__issue') }}
