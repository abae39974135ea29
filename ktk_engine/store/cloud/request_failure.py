"""What is known about failed requests to object stores, and the errors for them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ktk_engine.errors import ObjectNotFoundError, StoreError
from ktk_engine.store.cloud.cloud import Cloud

# With 409 S3 says that another conditional put is running; Azure, that the object exists.
_BUSY = frozenset(
    {"ConditionalRequestConflict", "OperationAborted", "RequestTimeout", "SlowDown", "ServerBusy"}
)
_TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})
_NO_CONTAINER = frozenset({"NoSuchBucket", "ContainerNotFound", "InvalidBucketName"})
_NO_CONTAINER_TEXT = "bucket does not exist"
_REGION = frozenset(
    {"PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException"}
)
_STATUS = re.compile(r"status code: (\d{3})|HTTP (?:status )?(\d{3})|\((\d{3})\)")
_CODE = re.compile(r"<Code>\s*([^<]+?)\s*</Code>|\"reason\":\s*\"(\w+)\"|ErrorCode: (\w+)")
_MESSAGE = re.compile(r"<Message>\s*([^<]+?)\s*</Message>|\"message\":\s*\"([^\"]+)\"")
_SIGNATURE = re.compile(r"(?i)((?:sig|signature|token|credential)=)[^&\s\"')]+")
_KIND = re.compile(r"kind: (Connect|Timeout)\b")
_REASON = re.compile(r"message: \"([^\"]+)\"|error: \"([^\"]+)\"|(TimedOut)")
_SERVER = re.compile(r"(https?://[^/\s?]+)")
_NOISE = re.compile(r"Generic \w+ error: | in [\d.]+[µmn]?s\b|- Server returned non-2xx ")
_REDIRECT = "redirect without LOCATION"  # S3's response for a bucket in another region
_BEHIND_THE_END = "Wanted range starting at"  # obstore's error if the server sends the whole object
_METADATA = re.compile(r"http://169\.254\.|http://metadata[./]|http://\[fd00:ec2")
_LONGEST = 300


@dataclass(frozen=True)
class RequestFailure:
    """What is known about a failed request."""

    status: int  # of HTTP; 0: no response
    code: str  # the store's name of the problem; empty: none
    text: str  # for users, without secrets
    missing: bool  # whether the client understood it as "no such object"
    sent: bool  # whether the request may have reached the store
    # whether there were no credentials, not even from the machine, which is outside any cloud
    unsigned: bool = False

    @property
    def transient(self) -> bool:
        """Whether the same request may succeed soon, since it was not refused."""
        if self.unsigned:
            return self.status in _TRANSIENT
        return not self.missing and (
            not self.status or self.status in _TRANSIENT or self.code in _BUSY
        )

    @property
    def refused(self) -> bool:
        """Whether the store surely did nothing: it said so, or was not reached."""
        timed_out = self.status == 408 or self.code == "RequestTimeout"
        said_no = 400 <= self.status < 500 or self.status in (301, 501)
        return not self.sent or (said_no and not timed_out)

    @property
    def out_of_range(self) -> bool:
        """Whether the requested range begins after the end."""
        return self.status == 416 or _BEHIND_THE_END in self.text

    @property
    def no_container(self) -> bool:
        """Whether the bucket is missing."""
        return self.code in _NO_CONTAINER or _NO_CONTAINER_TEXT in self.text


def client_errors() -> tuple[type[Exception], ...]:
    """The exceptions that clients raise; any other is a bug."""
    from obstore.exceptions import BaseError

    return BaseError, OSError


def read_failure(error: BaseException, cloud: Cloud) -> RequestFailure:
    """Read the store's response from an error of obstore or an `OSError` of pyarrow.

    The text has none of the cloud's secrets.
    """
    whole = str(error)
    text, _, details = whole.partition("Debug source:")
    status, code, message = (_first(_STATUS, text), _first(_CODE, text), _first(_MESSAGE, text))
    if not status and _REDIRECT in text:
        status = "301"
    kind = _first(_KIND, details)
    if message or code:
        told = ": ".join(filter(None, [code, message.partition("\n")[0]]))
    elif kind == "Connect":
        told = f"no connection to {_first(_SERVER, text) or 'the server'}"
    else:
        told = " ".join(_NOISE.sub("", text.split("<?xml")[0]).split())
    if not status and (reason := _first(_REASON, details)):
        told += f" ({reason})"
    unsigned = bool(_METADATA.search(text))
    if unsigned:
        told = f"no credentials were found, and this machine has no role ({told[:80]}...)"
    for secret in cloud.secrets:
        told = told.replace(secret, "***")
    told = _SIGNATURE.sub(r"\1***", told)
    return RequestFailure(
        status=int(status or 0),
        code=code,
        text=told[:_LONGEST].rstrip(". "),
        missing=isinstance(error, FileNotFoundError),
        sent=kind != "Connect" and not unsigned,
        unsigned=unsigned,
    )


def store_error(
    failure: RequestFailure, cloud: Cloud, action: str, key: str, nothing_written: bool = False
) -> StoreError:
    """Make an error for users of a failed `action` (`read`, `write`) on an object or the store.

    `nothing_written` says whether that is certain.
    """
    where = f"{key!r} in {cloud.address}" if key else str(cloud.address)
    advice = _advice(failure, cloud)
    text = f"cannot {action} {where}: {failure.text}. {advice}."
    return StoreError(text, nothing_written=nothing_written)


def not_found(cloud: Cloud, key: str) -> ObjectNotFoundError:
    """The error for an object that the store does not have."""
    return ObjectNotFoundError(f"there is no {key!r} in {cloud.address}")


def _advice(failure: RequestFailure, cloud: Cloud) -> str:
    container = cloud.address.container
    if failure.no_container or (failure.missing and not failure.code):
        return f"Is there a bucket {container}? Create it, or correct the address"
    if failure.unsigned or failure.status in (401, 403) or "credential" in failure.text.lower():
        rights = f"They need permission to list, read, write and delete in {container}"
        return f"{cloud.advice}. {rights}"
    if failure.code in _REGION or failure.status == 301:
        return f"Set the region of {container}: `region` in storage_options, or AWS_REGION"
    if failure.status == 501:
        return "The server lacks conditional puts, which commits need; use another store"
    if not failure.status:
        return "Check the network, and `endpoint` in storage_options if set; run it again"
    if failure.transient:
        return "The store failed at each of several attempts; run it again when it is less busy"
    return "See docs/stores.md, Object stores"


def _first(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    return next((group for group in match.groups() if group), "") if match else ""
