"""Random commits through a network that cuts, delays, loses and truncates: nothing is lost."""

from __future__ import annotations

import logging
from random import Random

from ktk_engine.errors import CommitStateUnknownError, KtkError
from ktk_engine.store.cloud.cloud_store import CloudStore  # deep: a cloud that fails
from tests.faults.content import ARROW_VERBS, SEED, TABLE, Content, choose_verb, first_content
from tests.faults.invariants import problems_of
from tests.faults.read import content_of
from tests.faults.report import Tally
from tests.faults.scale import cases
from tests.faults.verbs import run
from tests.servers.fault_proxy import FAULTS, FaultProxy
from tests.support.committed import read_entries, resolve, scope_of
from tests.support.stores import Backoff, ObjectStore, open_store

# Without `publish`, which needs a store that is prepared for it.
_VERBS = {
    uuid: tuple(verb for verb in verbs if verb != "publish") for uuid, verbs in ARROW_VERBS.items()
}
_COMMITS = 20  # in one store
_SOMETIMES, _OUTAGES = 0.1, 0.2


class _BadNetwork:
    """Lets requests go wrong now and then; in an outage all of them, from one on."""

    def __init__(self, proxy: FaultProxy, random: Random) -> None:
        self._proxy, self._random = proxy, random
        proxy.decide = self._decide
        self._left: int | None = None

    def next_commit(self) -> None:
        """Choose how the next commit fares."""
        outage = self._random.random() < _OUTAGES
        self._left = self._random.randrange(40) if outage else None

    def _decide(self, method: str, path: str) -> object:
        if self._left is not None:
            self._left -= 1
            if self._left < 0:
                return self._random.choice(("cut", "refuse", "lost", "lost 500"))
        return self._random.choice(FAULTS) if self._random.random() < _SOMETIMES else None


def test_random_commits(request, s3_server):
    logging.getLogger("ktk_engine").setLevel(logging.CRITICAL)
    tally = Tally("commits on S3 through a proxy that cuts, delays, loses and truncates")
    proxy = FaultProxy(s3_server.endpoint)
    try:
        for name, random in cases("network", 1, 25):
            _commit(tally, name, random, proxy, s3_server)
    finally:
        proxy.stop()
        logging.getLogger("ktk_engine").setLevel(logging.NOTSET)
    faults = sum(proxy.faults.values())
    tally.what += f"; {len(proxy.requests):,} requests, {faults:,} of them broken"
    assert set(proxy.faults) == set(FAULTS)
    tally.finish(request)


def _commit(tally: Tally, name: str, random: Random, proxy: FaultProxy, server) -> None:
    url = server.new_url()
    sound = open_store(url, server.options)
    broken = open_store(url, {**server.options, "endpoint": proxy.endpoint})
    store = CloudStore(broken._cloud, Backoff(tries=6, sleep=lambda seconds: None))
    proxy.decide = lambda method, path: None
    content, verbs = first_content(random)
    for verb in verbs:
        run(store, verb)
    network = _BadNetwork(proxy, random)
    for number in range(_COMMITS):
        verb = choose_verb(random, content, _VERBS)
        network.next_commit()
        after = verb.after(content)
        case = f"{name} commit {number}: {verb.name} {verb.uuid}"
        try:
            run(store, verb)
            outcome, allowed = "acknowledged", [after]
        except CommitStateUnknownError:
            outcome, allowed = "unknown, and said so", [content, after]
        except KtkError as error:
            outcome, allowed = "refused, and nothing was committed", [content]
            if "is committed and stays so" in "".join(getattr(error, "__notes__", [])):
                outcome, allowed = "interrupted, and said that it stands", [after]
        found = _content(sound)
        if found in [_plain(item) for item in allowed]:
            tally.good(outcome)
        else:
            tally.bad(case, f"{outcome}, but the store has {found}, not {allowed}")
            return
        content = next(item for item in allowed if _plain(item) == found)
    for uuid in (TABLE, SEED):
        scope = scope_of(uuid)
        state = resolve(sound, scope)
        versions = [entry.version for entry, _ in read_entries(sound, scope, 0)]
        if versions != [*range(1, state.version + 1)]:
            tally.bad(name, f"versions of {scope}: {versions}")
        if state.datasets and (problems := problems_of(sound, scope.name)):
            tally.bad(name, f"check of {scope}: {problems}")


def _content(store: ObjectStore) -> dict[str, tuple]:
    found: dict[str, tuple] = {}
    for uuid in (TABLE, SEED):
        found |= content_of(resolve(store, scope_of(uuid)))
    return found


def _plain(content: Content) -> dict[str, tuple]:
    return {uuid: tuple(rows) for uuid, rows in content.items()}
