"""Small projects in the shape of those that people have, with their packages: built as they are."""

from __future__ import annotations


def test_connector(project_of):
    """A package of a loader's: variables that name relations, and columns that may not be there."""
    project = project_of("connector")
    assert project.statuses("seed") == {}
    for _ in range(2):
        assert project.statuses("build", "--exclude", "resource_type:seed") == {}
    days = project.rows("an_dev", "connector__daily_metrics")
    assert [
        (day["date_day"].day, day["opened"], day["closed"]) for day in days if day["opened"]
    ] == [
        (1, 1, 0),
        (2, 2, 0),
    ]
    (issue,) = [row for row in project.rows("an_dev", "connector__issues") if row["issue_id"] == 1]
    assert (issue["title"], issue["custom_renamed"], issue["milestone_id"]) == (
        'Says "no"',
        "x",
        None,
    )
    assert issue["days_open"] == 2.0
    assert project.statuses("source", "freshness") == {}


def test_observability(project_of):
    """Hooks that upload what dbt knows, and tests that write tables."""
    project = project_of("observability")
    for _ in range(2):
        assert project.statuses("build").keys() == {"accepted_values_orders_metric__False__21__10"}
    models = {row["unique_id"]: row for row in project.rows("an_observer", "dbt_models")}
    orders = models["model.observability.orders"]
    assert orders["description"] == "Lines\n  of 'text'; with a \\ and \"quotes\""
    assert orders["meta"] == '{"owner": "it\'s \\\\ \\"us\\""}'
    assert "seed.observability.training" in orders["depends_on"]
    results = project.rows("an_observer", "dbt_run_results")
    assert len({row["invocation_id"] for row in results}) == 2
    assert {row["status"] for row in results} == {"success", "pass", "warn"}
    metrics = project.rows("an_observer", "test_metrics")
    assert sorted((row["metric_id"], row["value"]) for row in metrics) == [
        ("2024-01-01.metric", 21.0),
        ("2024-01-02.metric", 10.0),
        ("2024-01-03.metric", 50.0),
    ]
    assert len(project.rows("an", "invocations")) == 2
    assert len(project.rows("an", "columns")) == 2 * 2
    assert project.tables("an_observer_tests") == []


def test_evaluation(project_of):
    """The graph as tables, and paths through it, level by level."""
    project = project_of("evaluation")
    assert set(project.statuses("build")) == {
        "evaluator_is_empty_fct_rejoined_",
        "evaluator_is_empty_fct_undocumented_",
        "weekly",
    }
    paths = project.rows("an_evaluator", "int_all_relationships")
    assert sorted(
        (row["distance"], row["path_text"]) for row in paths if row["parent"] == "raw_orders"
    ) == [
        (0, "raw_orders"),
        (1, "raw_orders|stg_orders"),
        (2, "raw_orders|stg_orders|fct_orders"),
        (2, "raw_orders|stg_orders|int_amounts"),
        (3, "raw_orders|stg_orders|fct_orders|weekly"),
        (3, "raw_orders|stg_orders|int_amounts|fct_orders"),
        (4, "raw_orders|stg_orders|int_amounts|fct_orders|weekly"),
    ]


def test_events(project_of):
    """Branches on the target, and runs that go on where a manifest says."""
    project = project_of("events")
    for _ in range(2):
        assert project.statuses("build") == {}
    sessions = project.rows("an_web", "sessions")
    assert {row["session_id"]: (row["events"], sorted(row["browsers"])) for row in sessions} == {
        "s1": (2, ["a"]),
        "s2": (1, ["b"]),
        "s3": (1, ["b"]),
    }
    assert {row["user_id"]: row["sessions"] for row in project.rows("an_web", "users")} == {
        "u1": 2,
        "u2": 1,
    }
    (line,) = project.rows("an_web", "manifest")
    assert (line["first_success"].day, line["last_success"].day) == (1, 3)
    assert project.statuses("run", "--vars", "models_to_remove: [sessions]", "-s", "users") == {}
    assert project.rows("an_web", "manifest") == []


def test_toolbox(project_of):
    """Macros that write SQL from columns, and tests of rows, columns and types."""
    project = project_of("toolbox")
    assert project.statuses("build") == {}
    assert len(project.rows("an", "sales")) == 5
    (north,) = [row for row in project.rows("an", "by_kind") if row["region"] == "north"]
    assert north == {"region": "north", "a": 21, "b": 0}
    latest = {row["id"]: row["amount"] for row in project.rows("an", "latest")}
    assert latest == {1: 10, 2: 20, 3: 6, 4: None}
    days = {row["date_day"].isoformat(): row for row in project.rows("an", "days")}
    first = days["2023-12-30"]
    assert (first["week_start"].isoformat(), first["day_of_week"]) == ("2023-12-25", 6)
    assert (first["month_name"], first["local_time"].hour) == ("Dec", 0)
    assert first["last_day"].isoformat() == "2023-12-31"
