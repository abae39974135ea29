"""Claims on the names of cubes and tables, which must differ in more than letter case.

Each has a log of its own, so the commits of two do not meet. See
docs/design/files-and-commits.md, Names.
"""

from __future__ import annotations

from contextlib import suppress

from ktk_engine.errors import ConsistencyError, ObjectExistsError, TokenMismatchError
from ktk_engine.log.intent import read_intents
from ktk_engine.log.scope import LogScope
from ktk_engine.log.state import State, resolve


def claim_name(head: State, commit_id: str) -> None:
    """Claim the name of a scope that gets its first dataset; one request where it is free.

    A claim counts while its scope has a dataset, or a writer that is alive. Raises a
    `ConsistencyError` if one counts whose name differs only in letter case.
    """
    store, scope = head.store, head.scope
    claim = f"{scope} {commit_id}".encode()
    with suppress(ObjectExistsError):
        return store.put_if_absent(scope.name_key, claim)
    while True:
        found, token = store.get_with_token(scope.name_key)
        kind, _, name = found.decode(errors="replace").partition(" ")[0].partition("/")
        other = LogScope(kind, name)
        if name != scope.name and other.name_key == scope.name_key and _is_taken(head, other):
            raise ConsistencyError(
                f"{scope.name} and {name} of {store.url}: the names differ only in letter case, "
                "which SQL ignores. Nothing was committed. Give one of them another name. If "
                f"there is no {name}, its writer is at work, or was killed within a day."
            )
        with suppress(TokenMismatchError):
            # Also for an own claim: another writer must not take it over by an old token.
            return store.replace(scope.name_key, claim, token)


def _is_taken(head: State, scope: LogScope) -> bool:
    """Whether a scope exists or is being made; a writer that ends in between has committed."""
    store = head.store
    comes = any(intent.is_alive(store.now()) for intent in read_intents(store, scope))
    return comes or bool(resolve(store, scope).datasets)
