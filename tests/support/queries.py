"""What tests ask with: types, conditions, plans and rows, without Spark."""
# ruff: noqa: F401 - what is imported here, tests take from here

from __future__ import annotations

from ktk_engine.catalog.moment import Moment
from ktk_engine.catalog.source_address import FileAddress, StoreAddress
from ktk_engine.conditions.condition import Condition, IsIn, TrueCondition, conjunction
from ktk_engine.conditions.literal import comparison, is_in
from ktk_engine.conditions.parse import parse_condition
from ktk_engine.files.data_file import read_data_file, read_row_groups
from ktk_engine.files.file_statistics import computable
from ktk_engine.files.footers import FooterCache
from ktk_engine.files.metadata_cache import MetadataCache
from ktk_engine.files.read_rows import read_rows
from ktk_engine.local.answer import LocalEngine
from ktk_engine.local.sorted_rows import sorted_indices
from ktk_engine.plan.explain import explain
from ktk_engine.plan.plan import PartialAggregate, Plan
from ktk_engine.plan.plan_cube import load_cube
from ktk_engine.plan.plan_dataset import plan_rows
from ktk_engine.plan.prune import prune
from ktk_engine.plan.statement.named_relations import KnownStores, NamedRelations
from ktk_engine.report.cube_report import make_report
from ktk_engine.report.html_report import render_html
from ktk_engine.types.arrow_name import parse_type
from ktk_engine.types.mismatch import mismatch
from ktk_engine.types.quote import quote_identifier, quote_literal
from ktk_engine.types.schema import dataset_schema
from ktk_engine.types.to_container import to_container
from ktk_engine.types.type_class import normalize
