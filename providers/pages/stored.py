"""A hop to a page as the engine carries and stores it: the bytes of the wire, and beside them what tells what they are.

Pure. Whatever serves pages puts them this way, so that one reader and one export of the cache understand them all.
"""

from __future__ import annotations

from hashlib import sha256

from ...engine.call import Fetched, Reply
from ...engine.endpoint import Response

CONTENT_TYPE, CONTENT_ENCODING, LOCATION = "content-type", "content-encoding", "location"


def response_of(fetched: Fetched) -> Response:
    told = {CONTENT_TYPE: fetched.content_type, CONTENT_ENCODING: fetched.encoding, LOCATION: fetched.location}
    return Response(fetched.status, fetched.body, headers={name: value for name, value in told.items() if value})


def fetched_of(response: Response) -> Fetched:
    told = response.headers
    content_type, encoding = told.get(CONTENT_TYPE, ""), told.get(CONTENT_ENCODING, "")
    return Fetched(response.status, content_type, encoding, told.get(LOCATION), response.body)


def reply_of(response: Response) -> Reply:
    return Reply("", raw_hash=sha256(response.body).hexdigest(), fetched=fetched_of(response))
