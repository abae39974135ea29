select a.parent, a.child, count(*) as ways
from {{ ref('int_all_relationships') }} as a
where a.distance between 1 and 4
group by 1, 2
having count(*) > 1
