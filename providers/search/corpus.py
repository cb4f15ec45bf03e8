"""The corpus as a search engine and as a web site: an index over a folder, and its documents by their addresses.

Sends nothing. Indexing and searching run in a thread of their own; the first search waits for the index. The folder's
digest is part of every cache key.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

import orjson

from ...engine.call import Call, Hit, PageResponse, Reply
from ...engine.endpoint import AwaitingEndpoint, Cleared, EncodeError, Fault, Request, Response
from ...engine.fault import LocalFault
from ...engine.limits import Limit
from ..llm.faults import bad_json
from ..llm.repair import read_object
from ..pages.page import reply_of, response_of
from .answer import LAST, MORE, Object, list_at
from .bm25 import Postings, TextIndex, words_of
from .documents import CorpusDocument, CorpusError, digest_of, document_text, page_of
from .documents import list_documents as documents_in
from .query import search_query
from .results import SNIPPET_MAX, TITLE_MAX, plain
from .table import CORPUS_REACH, SCHEME

Result = TypeVar("Result")
COUNT = 10
_SNIPPET = 320
_BEFORE = 80
_LOOKED_AT = 200_000


class Corpus:
    """A folder's documents and their index, which the first search builds. The constructor reads every file, so it must
    not run on a loop; raises CorpusError if there is no document, or one that can't be read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.documents = documents_in(folder)
        self.digest = digest_of(self.documents)
        self._by_url = {document.url: document for document in self.documents}
        self._index: TextIndex | None = None
        self._is_closed = False
        self._thread = ThreadPoolExecutor(1, "corpus")

    def __repr__(self) -> str:
        state = "not indexed" if self._index is None else "indexed"
        return f"<Corpus {self.folder} [{len(self.documents):,} documents, {state}]>"

    async def apart(self, work: Callable[[], Result]) -> Result:
        """Runs work in the corpus's own thread, one piece after another, and returns its result; raises LocalFault for
        a file that can't be read."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        except CorpusError as error:
            raise LocalFault(str(error)) from error  # a file of ours

    def close(self) -> None:
        self._is_closed = True
        self._thread.shutdown(wait=False, cancel_futures=True)

    def index(self) -> TextIndex:
        if self._index is None:
            postings = Postings()
            for document in self.documents:
                if self._is_closed:
                    raise CorpusError(f"the corpus {self.folder} was closed while it was indexed")
                content = document_text(document, document.read())
                postings.add(f"{content.title}\n{content.text}")
            self._index = postings.index()
        return self._index

    def search(self, query: str, count: int, page: int) -> Object:
        """Returns page `page` (from 1) of `count` results each, with the `total` number of results and `has_more`."""
        ranked = self.index().ranked(query)
        results = [self._result(self.documents[number], query) for number in ranked[(page - 1) * count : page * count]]
        return {"results": results, "total": len(ranked), "has_more": page * count < len(ranked)}

    def read(self, url: str) -> tuple[str, bytes] | None:
        """Returns content type and bytes of a document; None if no document has this address."""
        document = self._by_url.get(url)
        return None if document is None else page_of(document, document.read())

    def _result(self, document: CorpusDocument, query: str) -> Object:
        content = document_text(document, document.read())
        return {"url": document.url, "title": content.title, "snippet": _snippet(content.text, query)}


def _snippet(text: str, query: str) -> str:
    """Returns up to 320 characters of the text around the first word of the query in it, else from its start."""
    words = sorted(set(words_of(query)), key=lambda word: (-len(word), word))
    pattern = "|".join(map(re.escape, words))
    match = re.search(rf"(?<!\w)(?:{pattern})", text[:_LOOKED_AT], re.IGNORECASE)
    start = max(0, match.start() - _BEFORE) if match is not None else 0
    if start:
        start = text.find(" ", start) + 1 or start
    return plain(text[start : start + 2 * _SNIPPET], _SNIPPET)


class _CorpusAccess(AwaitingEndpoint):
    """The common part of the corpus's two endpoints, for searches and for documents."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._corpus}>"

    @property
    def base_url(self) -> str:
        return SCHEME + self._corpus.digest

    def limits(self, response: Response) -> tuple[Limit, ...]:
        return ()


class CorpusSearch(_CorpusAccess):
    """The endpoint of `search/corpus`, which searches a folder of documents on this machine."""

    def encode(self, call: Call) -> Request:
        query = search_query(call, CORPUS_REACH, ("q",))
        if query.more:
            raise EncodeError(f"{call.model} takes count and page alone, and no {', '.join(query.more)}: leave it out")
        return _request(self._corpus, "search", {"q": query.query}, {"count": query.count or COUNT, "page": query.page})

    async def send(self, request: Request, cleared: Cleared) -> Response:
        query = orjson.loads(request.body)
        results = await self._corpus.apart(lambda: self._corpus.search(query["q"], query["count"], query["page"]))
        return Response(200, orjson.dumps(results))

    def decode(self, response: Response) -> Reply | Fault:
        answer = read_object(response.body)[0] or {}
        rows = list_at(answer, "results")
        if rows is None:
            return bad_json("the corpus's answer is not whole")
        hits = tuple(_hit(rank, row) for rank, row in enumerate(rows, 1) if isinstance(row, dict))
        finish = MORE if answer.get("has_more") is True else LAST
        return Reply("", None, finish, raw_hash=sha256(response.body).hexdigest(), hits=hits)


class CorpusEndpoint(_CorpusAccess):
    """The engine's endpoint for the corpus's documents: `web` with addresses that begin with `corpus:`."""

    def encode(self, call: Call) -> Request:
        if not isinstance(call.input, str) or not call.input.startswith(SCHEME):
            raise EncodeError(f"a call to the corpus takes one address that begins with {SCHEME}")
        return _request(self._corpus, "read", {"url": call.input}, {})

    async def send(self, request: Request, cleared: Cleared) -> Response:
        url = orjson.loads(request.body)["url"]
        document = await self._corpus.apart(lambda: self._corpus.read(url))
        if document is None:
            return Response(404, b"")
        content_type, body = document
        return response_of(PageResponse(200, content_type, "", None, body))

    def decode(self, response: Response) -> Reply | Fault:
        if response.status == 404:
            return Fault("rejected", "404: there is no such document in the corpus", "never", 404)
        return reply_of(response)


def _request(corpus: Corpus, what: str, prompt: dict[str, Any], params: dict[str, Any]) -> Request:
    try:
        body = orjson.dumps({**prompt, **params}, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError as error:
        raise EncodeError(f"a call to the corpus can't be written as JSON ({error}): correct its text") from error
    return Request(
        SCHEME + what,
        f"{SCHEME}{corpus.digest}/{what}",
        body,
        body,
        orjson.dumps(prompt, option=orjson.OPT_SORT_KEYS),
        orjson.dumps(params, option=orjson.OPT_SORT_KEYS),
    )


def _hit(rank: int, row: Object) -> Hit:
    url = row.get("url")
    title, snippet = plain(row.get("title"), TITLE_MAX), plain(row.get("snippet"), SNIPPET_MAX)
    return Hit(rank, url if isinstance(url, str) else "", title, snippet)
