-- On 2013-11-03 summer time ends: the clocks of all three airports show 01:00 twice, so that year,
-- month, day and hour name two observations. The instant in UTC tells them apart and no row has to
-- go: 05:00 is the hour in summer time, 06:00 the one after it. This is why time_hour is the
-- dimension, and why the wall clock's columns (the flights have them too) are left out here.
select
    cast(time_hour as timestamp_ntz) as time_hour,
    origin,
    -- The month on the wall clock, as it is for the flights: both are partitioned by it.
    month,
    temp,
    dewp,
    humid,
    wind_dir,
    -- One observation (EWR, 2013-02-12 08:00) claims 1,048 miles an hour.
    case when wind_speed < 250 then wind_speed end as wind_speed,
    -- Null where there were no gusts.
    wind_gust,
    precip,
    pressure,
    visib
from {{ source('nycflights13', 'weather') }}
