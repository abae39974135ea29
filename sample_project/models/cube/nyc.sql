{{ config(materialized='cube') }}
{{ cube_of(ref('flights'), ref('weather'), ref('planes'), ref('airlines')) }}
