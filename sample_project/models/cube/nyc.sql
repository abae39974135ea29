{{ config(materialized='cube', event_time='time_hour') }}
{{ cube_of(ref('flights'), ref('weather'), ref('planes'), ref('airlines')) }}
