"""Runs statements on a store as the adapter does, and looks at what they leave."""

from __future__ import annotations

from ktk_engine import Store
from ktk_engine.spark.client.client import is_connect
from ktk_engine.sql.token import split_statements
from ktk_engine.warehouse.actor import statement_actor  # deep: a view is stored by somebody
from tests.support.changes import Relations, WriteRequest, build, run_statement
from tests.support.committed import resolve, scope_of
from tests.support.spark import SqlSession, new_session
from tests.support.stores import Warehouse


class Statements:
    """A session of its own on a warehouse with the schema `an`."""

    def __init__(self, spark, root, settings=()):
        self.warehouse = Warehouse(str(root / "warehouse"))
        self.store = self.warehouse.create_schema("an")
        self.relations = Relations(self.warehouse)
        self.default = spark
        self.spark = spark if is_connect(spark) else new_session(spark)
        for key, value in dict(settings).items():
            self.spark.conf.set(key, value)
        self.session = SqlSession(self.spark, self.warehouse.find_schema, root / "scratch")

    def run(self, text):
        """Run statements; gives the rows of the last one."""
        found = []
        for part in split_statements(text):
            statement = self.session.read(part)
            done = run_statement(lambda: self.session, self.relations, statement)
            if done is None:
                found = list(map(tuple, self.session.sql(statement).collect()))
            else:
                found = list(done.answer.rows) if done.answer else []
        return found

    def fill(self, name, table, partition_by=()):
        """Make a table of the rows, without Spark."""
        build(self.store, table, WriteRequest(name, partition_by=partition_by))

    def stored(self, name):
        """The rows of a table, without Spark."""
        return Store(self.store.url).table(name).query().to_arrow()

    def rows(self, text):
        """The rows of a query, which have no order."""
        return sorted(self.run(text), key=repr)

    def names(self):
        return [item.name for item in self.relations.list("an")]

    def versions(self):
        return {n: resolve(self.store, scope_of(n)).version for n in self.names()}

    def store_view(self, name, sql):
        """Store a view as it is, as earlier versions and other people did."""
        self.relations.create_view("an", name, sql, {}, statement_actor())

    def close(self):
        """Leave nothing in a session that others use as well."""
        if self.spark is self.default:
            for view in self.spark.catalog.listTables():
                self.spark.catalog.dropTempView(view.name)
