from importlib.metadata import version as installed

version = installed("dbt-ktk")
