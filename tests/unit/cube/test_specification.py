import pytest

from ktk_engine.cube.specification import CubeSpecification
from ktk_engine.errors import SpecificationError


def test_metadata_and_uuids():
    cube = CubeSpecification("c", ("x", "y"), ("p",), "s", suppress_index_on={"y"})
    assert cube.seed_uuid == "c++s"
    assert cube.shared_columns == {"x", "y", "p"}
    assert cube.metadata("s") == {
        "ktk_cube_is_seed": True,
        "ktk_cube_dimension_columns": ["x", "y"],
        "ktk_cube_partition_columns": ["p"],
        "ktk_cube_suppress_index_on": ["y"],
    }
    assert cube.metadata("e")["ktk_cube_is_seed"] is False


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("c", ()), "must not be empty"),
        (("c", ("x",), ("x",)), "partition_columns and dimension_columns must not share"),
        (("c", ("x",), (), "s", {"x"}), "share x. Dimension columns have an index already"),
        (("c", ("x",), ("p",), "s", {"p"}), "index_columns and partition_columns"),
        (("c", ("x",), (), "s", (), {"z"}), "subset of dimension_columns"),
        (("a++b", ("x",)), "separates cube and dataset"),
        (("a b", ("x",)), "a_b"),
        (("", ("x",)), "may only hold"),
        (("c", ("x",), (), "s/t"), "s_t"),
    ],
)
def test_refused(arguments, message):
    with pytest.raises(SpecificationError, match=message.replace("+", r"\+")):
        CubeSpecification(*arguments)
