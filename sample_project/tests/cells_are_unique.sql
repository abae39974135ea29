select carrier, flight, tailnum, time_hour, origin, month, count(*) as times
from {{ ref('nyc') }}
group by all
having count(*) > 1
