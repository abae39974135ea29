"""Messages show no secret that stands in a URL."""

import pickle

import pytest

from ktk_engine.errors import KtkError, StoreError, without_secrets

SECRET = "S3cr/et+x"


@pytest.mark.parametrize(
    "url",
    [
        f"http://user:{SECRET}@host:9000/path",
        f"https://{SECRET.replace('/', '')}@host/path",
        f"s3:/key:{SECRET}@bucket",
        f"s3://key:{SECRET}@bucket/prefix",
        f"abfss://container:{SECRET}@account.dfs.core.windows.net",
        f"https://account.blob.core.windows.net/c/key?sv=2024&sig={SECRET}",
        f"jdbc:postgresql://user:{SECRET}@host/db",
        f"file 'https://u:{SECRET}@h/a b' and s3a://k:{SECRET}@b",
    ],
)
def test_user_and_query_are_masked(url):
    shown = without_secrets(f"cannot read {url}: no")
    assert SECRET not in shown and SECRET.replace("/", "") not in shown
    assert "***" in shown and shown.startswith("cannot read") and shown.endswith(" no")


@pytest.mark.parametrize(
    "text",
    [
        "abfss://container@account.dfs.core.windows.net/prefix",
        "http://localhost:9000/bucket/file@2.parquet",
        "s3://bucket/pre@fix/a=b",
        "file:///home/me@work/t?x",
        "spark://host:7077",
        "cast(a as b): what? see docs/stores.md",
        "at 12:30 someone@example.org",
    ],
)
def test_other_text_stays(text):
    assert without_secrets(text) == text


@pytest.mark.parametrize("secret", ["pa@ss", "a@b/c@d", "@", "x@1:2@y"])
def test_a_secret_may_hold_what_ends_it(secret):
    shown = without_secrets(f"'https://u:{secret}@host/a' and s3://k:{secret}@bucket/p@q.")
    assert shown == "'https://***@host/a' and s3://***@q."  # up to the last @


def test_every_error_masks_them():
    error = StoreError(f"http://u:{SECRET}@h is gone", nothing_written=True)
    assert str(error) == "http://***@h is gone"
    assert str(pickle.loads(pickle.dumps(KtkError(f"s3://u:{SECRET}@b")))) == "s3://***@b"
