"""The trees of an optimised plan, as Spark writes them in JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass
class Tree:
    """A node of a plan or expression with its children."""

    node: dict[str, Any]
    children: list[Tree]

    @property
    def name(self) -> str:
        """The name of Spark's class."""
        return str(self.node["class"]).rpartition(".")[2]


def parse(nodes: Sequence[dict[str, Any]]) -> Tree:
    """Build a tree from Spark's list of nodes in pre-order: a plan, or an expression in a node."""
    position = 0

    def take() -> Tree:
        nonlocal position
        node = nodes[position]
        position += 1
        return Tree(node, [take() for _ in range(node["num-children"])])

    return take()


def trees(nodes: list[dict[str, Any]]) -> Iterator[Tree]:
    """Give a plan itself and the plans of subqueries inside its expressions."""
    yield parse(nodes)
    for node in nodes:
        for value in node.values():
            yield from _subplans(value)


def _subplans(value: Any) -> Iterator[Tree]:
    if isinstance(value, list):
        for item in value:
            yield from _subplans(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key == "plan" and isinstance(item, list) and item and "class" in item[0]:
                yield from trees(item)
            else:
                yield from _subplans(item)


def walk(tree: Tree, parents: tuple[Tree, ...] = ()) -> Iterator[tuple[Tree, list[Tree]]]:
    """Give each node with those above it, the topmost first."""
    yield tree, list(parents)
    for child in tree.children:
        yield from walk(child, (*parents, tree))
