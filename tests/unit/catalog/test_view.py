import json
from dataclasses import replace

import pytest

from ktk_engine.catalog.view import ViewDocument, parse_view, render_view
from ktk_engine.errors import FormatError
from tests.support.documents import Comments

VIEW = ViewDocument(
    "v",
    "view",
    sql='select "ä"',
    columns={"ä": "string", "s": "struct<a:int>"},
    comments=Comments("It's\n{{ 100 % }}", {"ä": "Größe"}),
    owner="jo",
)
CUBE = ViewDocument("c", "cube", cube="nyc", datasets=("flights",))
JOINED = replace(CUBE, elsewhere={"flights": "production"})


@pytest.mark.parametrize("view", [VIEW, CUBE, JOINED], ids=["view", "cube", "joined"])
def test_a_document_says_the_same_again(view):
    assert parse_view(render_view(view), "key") == view


def test_only_a_cube_on_datasets_elsewhere_is_unknown_to_earlier_versions():
    formats = [json.loads(render_view(view))["format"] for view in (VIEW, CUBE, JOINED)]
    assert formats == [2, 2, 3]
    assert "elsewhere" not in json.loads(render_view(CUBE))


def test_columns_comments_and_owner_may_be_missing():
    content = json.loads(render_view(VIEW)) | {"format": 1}  # as the first version wrote it
    for name in ("columns", "comments", "owner", "sha256"):
        del content[name]
    found = parse_view(json.dumps(content).encode(), "key")
    assert found == ViewDocument("v", "view", sql=VIEW.sql)


@pytest.mark.parametrize("damage", [{"columns": 5}, {"comments": "text"}, {"kind": "table"}])
def test_damage(damage):
    content = json.loads(render_view(VIEW)) | {"format": 1} | damage
    del content["sha256"]
    with pytest.raises(FormatError):
        parse_view(json.dumps(content).encode(), "key")


@pytest.mark.parametrize("damage", [{"sql": "select '\ud800'"}, {"sql": "x" * (1 << 20) + "x"}])
def test_what_is_never_read_is_never_written(damage):
    with pytest.raises(FormatError, match=r"has no character there|more than 1 MiB"):
        render_view(replace(VIEW, **damage))
    content = json.loads(render_view(VIEW)) | {"format": 1} | damage
    del content["sha256"]
    with pytest.raises(FormatError, match=r"surrogates not allowed|more than 1 MiB"):
        parse_view(json.dumps(content).encode(), "key")
