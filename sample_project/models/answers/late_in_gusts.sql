-- Which airline do gusts delay most? Departures in gusts of more than 30 miles an hour, compared
-- with those of the same airline in calmer hours.
with departures as (
    select airline, dep_delay, coalesce(wind_gust, 0) > 30 as in_gusts
    from {{ ref('nyc') }}
    where dep_delay is not null
        -- There is always a reading of precipitation: null means that the hour was not observed.
        and precip is not null
)
select
    airline,
    count_if(in_gusts) as flights_in_gusts,
    round(avg(case when in_gusts then dep_delay end), 1) as delay_in_gusts,
    round(avg(case when not in_gusts then dep_delay end), 1) as delay_otherwise,
    round(
        avg(case when in_gusts then dep_delay end) - avg(case when not in_gusts then dep_delay end),
        1
    ) as minutes_lost
from departures
group by airline
having count_if(in_gusts) >= 100
