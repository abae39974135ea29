{{ config(materialized='table', partition_by=web.by_target(bigquery_val={'field': 'start_tstamp', 'data_type': 'timestamp'}, databricks_val='event_date'),
          buckets=1, post_hook="analyze table {{ this }} compute statistics" if false else []) }}
-- depends_on: {{ ref('manifest') }}
{%- set limits = web.new_limits(ref('manifest')) %}
with numbered as (
    select *, row_number() over (partition by event_id order by collector_tstamp, derived_tstamp) as place
    from {{ var('web__events') }}
    where collector_tstamp >= {{ limits.lower }} and collector_tstamp < {{ limits.upper }}
)
select event_id, session_id, user_id, event_name, collector_tstamp, derived_tstamp, cast(derived_tstamp as date) as event_date,
    {% if target.type in ('spark', 'databricks') -%}
    element_at(from_json(context, 'array<struct<browser:string,ms:int>>'), 1).browser as browser,
    {{ web.get_split_to_array('tags') }}[0] as first_tag
    {%- else -%} context[0].browser, null as first_tag {%- endif %}
from numbered where place = 1
