import hashlib
import json
from dataclasses import replace

import pytest

from ktk_engine.catalog.view import ViewDocument, parse_view, render_view
from ktk_engine.errors import FormatError
from tests.support.documents import Comments, render_checksummed

VIEW = ViewDocument(
    "v",
    "view",
    sql='select "ä"',
    columns={"ä": "string", "s": "struct<a:int>"},
    comments=Comments("It's\n{{ 100 % }}", {"ä": "Größe"}),
    owner="jo",
)
CUBE = ViewDocument("c", "cube", cube="nyc", datasets=("flights",))
JOINED = replace(CUBE, external={"flights": "production"})


@pytest.mark.parametrize("view", [VIEW, CUBE, JOINED], ids=["view", "cube", "joined"])
def test_a_document_says_the_same_again(view):
    assert parse_view(render_view(view), "key") == view


@pytest.mark.parametrize("damage", [{"columns": 5}, {"comments": "text"}, {"kind": "table"}])
def test_damage(damage):
    content = json.loads(render_view(VIEW)) | damage
    del content["sha256"]
    with pytest.raises(FormatError):
        parse_view(render_checksummed(content), "key")


@pytest.mark.parametrize("damage", [{"sql": "select '\ud800'"}, {"sql": "x" * (1 << 20) + "x"}])
def test_what_is_never_read_is_never_written(damage):
    with pytest.raises(FormatError, match=r"has an invalid character|more than 1 MiB"):
        render_view(replace(VIEW, **damage))
    content = json.loads(render_view(VIEW)) | damage
    del content["sha256"]
    body = json.dumps(content, indent=1).encode()
    start = f'{{\n "sha256": "{hashlib.sha256(body).hexdigest()}",'.encode()
    with pytest.raises(FormatError, match=r"surrogates not allowed|more than 1 MiB"):
        parse_view(start + body[1:], "key")
