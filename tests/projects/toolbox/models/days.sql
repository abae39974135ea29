with days as ( {{ dbt.date_spine('day', "cast('2023-12-30' as date)", "cast('2024-01-03' as date)") }} ),
numbers as ( {{ tools.generate_series(4) }} )
select cast(date_day as date) as date_day, {{ tools.week_start('date_day') }} as week_start, {{ tools.day_of_week('date_day') }} as day_of_week,
    {{ tools.month_name('date_day') }} as month_name, {{ tools.convert_timezone("cast('2024-01-01 08:00:00' as timestamp)") }} as local_time,
    {{ dbt.last_day('date_day', 'month') }} as last_day, {{ tools.yesterday() }} < current_date as before, n.generated_number
from days inner join numbers n on n.generated_number = datediff(date_day, cast('2023-12-29' as date))
