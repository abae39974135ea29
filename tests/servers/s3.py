"""An S3 server in this process: moto, one a test session."""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from unittest.mock import patch

BUCKET = "ktk-tests"
KEY, SECRET = "AKIAKTKTESTS", "canary-s3-secret/7f3a+x="


@dataclass(frozen=True)
class S3Server:
    """A server that runs.

    Attributes:
        endpoint: its address.
    """

    endpoint: str

    @property
    def options(self) -> dict[str, str]:
        """What goes into `storage_options`."""
        return {
            "endpoint": self.endpoint,
            "region": "eu-central-1",
            "access_key_id": KEY,
            "secret_access_key": SECRET,
        }

    @property
    def environment(self) -> dict[str, str]:
        """The same as AWS's tools have it in the environment."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_REGION": "eu-central-1",
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
        }

    def new_url(self) -> str:
        """A place where nothing is."""
        return f"s3://{BUCKET}/{uuid.uuid4().hex[:12]}"


def _put_one_at_a_time() -> Callable[[], object]:
    """Let moto decide conditions as S3 does: it looks and then puts, each request in a thread.

    Of two requests that look before either of them puts, both would be done. Gives what ends it.
    """
    from moto.s3.responses import S3Response

    lock, put = threading.Lock(), S3Response.put_object

    def put_object(self: S3Response) -> object:
        with lock:
            return put(self)

    patched = patch.object(S3Response, "put_object", put_object)
    patched.start()
    return patched.stop


def start_s3() -> tuple[S3Server, Callable[[], None]]:
    """Start it; gives the server, and what stops it."""
    import boto3
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    many_at_a_time = _put_one_at_a_time()
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    found = S3Server(f"http://{host}:{port}")
    boto3.client(
        "s3",
        endpoint_url=found.endpoint,
        region_name="eu-central-1",
        aws_access_key_id=KEY,
        aws_secret_access_key=SECRET,
    ).create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})

    def stop() -> None:
        server.stop()
        many_at_a_time()

    return found, stop
