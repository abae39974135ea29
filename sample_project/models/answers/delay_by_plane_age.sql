-- Are old planes late? Planes in steps of five years; those without a known year are left out.
select
    cast(floor((year - plane_year) / 5) * 5 as int) as age_from,
    count(distinct tailnum) as planes,
    count(*) as flights,
    round(avg(dep_delay), 1) as delay,
    round(100 * avg(case when dep_delay > 15 then 1 else 0 end), 1) as late_percent
from {{ ref('nyc') }}
where plane_year is not null and dep_delay is not null
group by all
