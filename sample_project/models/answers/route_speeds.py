"""How fast planes fly from New York to each airport, and how long the great circle there is."""

import numpy as np

EARTH_RADIUS = 3958.8  # miles


def model(dbt, session):
    dbt.config(materialized="table")
    dbt.ref("nyc")  # the statement below reads it, and only the columns that it names
    routes = session.sql(f"""
        select origin, dest, count(*) as flights, avg(60 * distance / air_time) as miles_an_hour
        from {dbt.this.schema}.nyc
        where air_time is not null
        group by origin, dest
    """).toPandas()
    places = dbt.ref("stg_airports").toPandas().set_index("airport")
    places = np.radians(places[["latitude", "longitude"]])
    start, end = (places.reindex(routes[column]).to_numpy() for column in ("origin", "dest"))
    routes["great_circle"] = great_circle(start.T, end.T)  # null for four unknown airports
    return routes.round({"miles_an_hour": 1, "great_circle": 1})


def great_circle(start, end):
    """Miles between points, each an array of latitudes and one of longitudes, in radians."""
    (north_1, east_1), (north_2, east_2) = start, end
    half = (
        np.sin((north_2 - north_1) / 2) ** 2
        + np.cos(north_1) * np.cos(north_2) * np.sin((east_2 - east_1) / 2) ** 2
    )
    return 2 * EARTH_RADIUS * np.arcsin(np.sqrt(half))
