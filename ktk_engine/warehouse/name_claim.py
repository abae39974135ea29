"""Whether a relation may have a name, and what it replaces."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ktk_engine.catalog.catalog import Catalog, Relation, list_relations, read_view
from ktk_engine.catalog.view import FOLDER as VIEW_FOLDER
from ktk_engine.catalog.view import view_key, view_name
from ktk_engine.cube.dataset_uuid import cube_and_dataset, is_in_cube, split_uuid
from ktk_engine.errors import CommitConflictError, ConsistencyError
from ktk_engine.log.dbt_node import DbtNode, Owner, builder_at, builder_of
from ktk_engine.log.scope import scope_of
from ktk_engine.log.stage.staged_store import StagedStore
from ktk_engine.log.state import resolve
from ktk_engine.maintain.remove import plan_removal, run_removal
from ktk_engine.messages import Message, Remedy
from ktk_engine.store.interface import ObjectStore
from ktk_engine.types.identifier import Identifier


@dataclass(frozen=True)
class NameClaim:
    """A relation that is about to be written."""

    name: str  # in the schema
    uuid: str = ""  # of the dataset; empty for a view
    owner: Owner | None = None  # the dbt node that writes it; None for a statement by hand
    full_refresh: bool = False  # whether what the node built before may be dropped
    keeps_versions: bool = False  # whether it is a snapshot, which no full refresh rebuilds

    @property
    def what(self) -> str:
        """What is to be written, for messages."""
        return _what(self.uuid, self.name)

    @property
    def who(self) -> str:
        """Who writes it, for messages."""
        return str(self.owner) if self.owner else "a statement"


def replaced_relations(store: ObjectStore, claim: NameClaim) -> tuple[Relation, ...]:
    """Find what has to be dropped when a relation is written.

    That is what has its name, and datasets of cubes that its node built before under other names.
    Rows of a cube's dataset are dropped only for the node that built them, in a full refresh. Other
    tables and views are replaced as in SQL and dbt, unless another node builds them. Raises a
    `ConsistencyError` if one must not be dropped.
    """
    catalog = Catalog.of(store)
    # A statement has no datasets under other names.
    by_name = claim.owner is None and not is_in_cube(claim.uuid)
    relations = catalog.known_as(claim.name) if by_name else catalog.relations
    found = tuple(item for item in relations if _stands_in_the_way(store, claim, item))
    for relation in found:
        if relation.uuid:  # raises if others depend on it
            plan_removal(store, *cube_and_dataset(relation.uuid))
    return found


def drop_replaced(
    store: ObjectStore, claim: NameClaim, relations: Iterable[Relation], history: Mapping[str, str]
) -> list[str]:
    """Drop what `replaced_relations` found once the new relation exists, and say so in clauses.

    Relations that meanwhile must not be dropped any more stay.
    """
    notes: list[str] = []
    wanted = tuple(relations)
    if not wanted:
        return notes
    try:
        present = replaced_relations(store, claim)
    except ConsistencyError as error:
        names = ", ".join(relation.uuid or relation.name for relation in wanted)
        return [Message(f"left {names} as it is, which was changed meanwhile: ", error)]
    for relation in wanted:
        if relation not in present:
            continue
        if not relation.uuid:
            store.delete([view_key(relation.name)])
            notes.append(f"dropped the view {relation.name}")
            continue
        name, dataset = cube_and_dataset(relation.uuid)
        reason = {"reason": f"{claim.who} now builds {claim.what}"}
        done = run_removal(plan_removal(store, name, dataset), {**history, **reason})
        what = f"took {dataset} out of cube {name}" if dataset else f"dropped the table {name}"
        back = Remedy.on("undrop", name, dataset)
        notes.append(Message(f"{what}, version {done.version} (", back, " brings it back)"))
    return notes


def check_staged_names(stage: StagedStore) -> None:
    """Refuse to publish relations whose names others have taken meanwhile.

    Raises a `CommitConflictError` with names that SQL cannot distinguish.
    """
    changes = {
        change.uuid: change
        for commits in stage.commits.values()
        for item in commits
        for change in item.change_set.changes
    }
    views = {view_name(key.rpartition("/")[2]) for key in stage.held_back(f"{VIEW_FOLDER}/")}

    def is_changed(item: Relation) -> bool:
        return item.uuid in changes if item.uuid else item.name in views

    written = list(filter(is_changed, list_relations(stage)))
    for other in list_relations(stage.beneath):
        if is_changed(other):
            continue  # the run has replaced or dropped it
        for own in written:
            if Identifier(own.name) == Identifier(other.name) and _is_taken(own, other):
                raise CommitConflictError(
                    f"{_what(own.uuid, own.name)} of this staged run is known as {own.name}, "
                    f"which has become the name of {_what(other.uuid, other.name)} meanwhile. "
                    "Nothing was published. Give one of them another name, or take the other "
                    "out: ",
                    _removal(other),
                )


def _is_taken(own: Relation, other: Relation) -> bool:
    """Whether two relations must not share a name; datasets that no node has named may."""
    nodes = (item.entry.node for item in (own, other) if item.entry)
    return not (own.uuid and other.uuid) or any(nodes)


def _stands_in_the_way(store: ObjectStore, claim: NameClaim, relation: Relation) -> bool:
    """Whether a relation has to be dropped; raises if it must not."""
    if relation.uuid != claim.uuid or not claim.uuid:
        _check_letter_case(claim, relation)
    same_name = relation.name == claim.name
    if not relation.uuid:
        if same_name:
            _check_view(store, claim, relation)
        return same_name and bool(claim.uuid)  # a view's document is overwritten
    if relation.uuid == claim.uuid:
        return False
    if is_in_cube(relation.uuid):
        builder = None if relation.entry is None else builder_at(relation.entry)
        own = claim.owner is not None and builder == claim.owner.builder
        if same_name and not own:
            raise ConsistencyError(_taken(claim, relation, builder))
        if own and not claim.full_refresh:
            raise ConsistencyError(_leaving(claim, relation))
        return own
    if same_name:
        _check_table(store, claim, relation)
    return same_name


def _check_letter_case(claim: NameClaim, relation: Relation) -> None:
    """Refuse a relation, dataset or cube whose name differs from another's only by case."""
    cubes = (split_uuid(claim.uuid)[0], split_uuid(relation.uuid)[0])
    pairs = ((claim.name, relation.name), (claim.uuid, relation.uuid), cubes)
    for new, known in pairs:
        if new != known and Identifier(new) == Identifier(known):
            raise ConsistencyError(
                f"{claim.who} would build {claim.what} as {new}, and there is "
                f"{_what(relation.uuid, relation.name)}, {known}: they differ only in letter "
                "case, which SQL ignores. Nothing was written. Spell it as that one, give it "
                "another name, or drop the other one first: ",
                _removal(relation),
            )


def _check_view(store: ObjectStore, claim: NameClaim, relation: Relation) -> None:
    """Refuse to replace a view that another node builds; it holds no rows."""
    view = read_view(store, relation.name)
    if claim.owner is None or view is None or not view.node:
        return
    builder = DbtNode(view.node, view.project)
    if not claim.owner.is_successor_of(builder):
        raise ConsistencyError(_taken(claim, relation, builder))


def _check_table(store: ObjectStore, claim: NameClaim, relation: Relation) -> None:
    """Refuse to replace a table of another program; one of the node or by hand may be dropped."""
    if claim.owner is None:
        return
    state = resolve(store, scope_of(relation.uuid))
    builder = builder_of(state, relation.uuid) if relation.uuid in state.datasets else None
    if builder is None and state.head is not None:
        return
    if builder is None or not claim.owner.is_successor_of(builder):
        raise ConsistencyError(_taken(claim, relation, builder))
    if is_in_cube(claim.uuid) and not claim.full_refresh:
        raise ConsistencyError(_leaving(claim, relation))


def _what(uuid: str, name: str) -> str:
    if not uuid:
        return f"the view {name}"
    return f"dataset {uuid}" if is_in_cube(uuid) else f"the table {uuid}"


def _removal(relation: Relation) -> Remedy:
    """How to drop a relation."""
    if not relation.uuid:
        return Remedy("drop_view", name=relation.name)
    return Remedy.on("drop", *cube_and_dataset(relation.uuid))


def _taken(claim: NameClaim, relation: Relation, builder: DbtNode | None) -> Message:
    by = f"built by {builder}" if builder else "whose builder is unknown"
    removal, other = _removal(relation), Remedy("other_name")
    if is_in_cube(claim.uuid):
        other = Remedy("other_name_in_cube", dataset=split_uuid(claim.uuid)[1])
    if claim.owner is None:
        return Message(
            f"The name {claim.name} is that of {_what(relation.uuid, relation.name)}, {by}: a "
            "statement does not replace it. Nothing was written. Use another name, or drop it "
            "first: ",
            removal,
        )
    return Message(
        f"{claim.who} would build {claim.what} under the name {claim.name}, which is that of "
        f"{_what(relation.uuid, relation.name)}, {by}. Nothing was written. Give one of them ",
        other,
        ", or drop the other one first: ",
        removal,
    )


def _leaving(claim: NameClaim, relation: Relation) -> Message:
    if claim.keeps_versions:
        return Message(
            f"{claim.who} is stored as {relation.uuid}, but its configuration asks for "
            f"{claim.uuid}. A snapshot cannot be rebuilt: it would lose its history. Nothing "
            "was written. Change the configuration back, or give the snapshot another name."
        )
    cube, dataset = cube_and_dataset(relation.uuid)
    leaves = f"{dataset} would leave cube {cube}" if dataset else f"table {cube} would be dropped"
    select = claim.owner.builder.name if claim.owner else claim.name
    return Message(
        f"{claim.who} has built {_what(relation.uuid, relation.name)} and would now build "
        f"{claim.what}: {leaves}, with its rows. Nothing was written. ",
        Remedy("leave_or_stay", select=select),
        " would drop it, and ",
        Remedy.on("undrop", cube, dataset),
        " would bring it back.",
    )
