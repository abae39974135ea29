select
    tailnum,
    -- `year` and `type` say too little in a cube of flights, and flights have a `year` of their own.
    year as plane_year,
    type as plane_type,
    manufacturer,
    model,
    engines,
    seats,
    engine
from {{ source('nycflights13', 'planes') }}
