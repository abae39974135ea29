-- The twenty routes with most flights, and how often one was cancelled.
with routes as (
    select
        origin,
        dest,
        count(*) as flights,
        count(distinct carrier) as airlines,
        round(100 * avg(case when dep_time is null then 1 else 0 end), 1) as cancelled_percent
    from {{ ref('nyc') }}
    group by origin, dest
)
select origin, dest, airport_name, flights, airlines, cancelled_percent
from routes
left join {{ ref('stg_airports') }} on airport = dest
order by flights desc, origin, dest
limit 20
