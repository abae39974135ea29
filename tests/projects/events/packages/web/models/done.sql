{{ config(materialized='incremental', unique_key='done_id', post_hook=[
     "merge into {{ ref('manifest') }} m using (select 'sessions' as model, min(collector_tstamp) as low, max(collector_tstamp) as high from {{ ref('new_events') }} having count(*) > 0) s
      on m.model = s.model when matched then update set last_success = greatest(m.last_success, s.high)
      when not matched then insert (model, first_success, last_success) values (s.model, s.low, s.high)"]) }}
-- depends_on: {{ ref('users') }}
select '{{ invocation_id }}' as done_id, count(*) as events from {{ ref('new_events') }}
