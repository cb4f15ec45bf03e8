"""lm-eval's model class whose requests run through a Millstream engine, under the name `millstream`.

A repeated request in one list is another trial, as for a task's repeats; the same evaluation run again gets the same
trials. Knows no protocol.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

# lm-eval looks for its own models only as long as it knows of none.
import lm_eval.models  # type: ignore[import-untyped]  # noqa: F401
from lm_eval.api.model import LM  # type: ignore[import-untyped]
from lm_eval.api.registry import register_model  # type: ignore[import-untyped]
from msgspec import structs
from tqdm import tqdm  # type: ignore[import-untyped]

from ...configuration.configuration import settings_of
from ...configuration.errors import UsageError
from ...engine.call import Call, Failure, Reply
from ...providers.llm.openai.echoed_text import CantScore, ContinuationScore, score
from ...wiring import family_of
from ...wiring.sync_engine import SyncEngine
from .arguments import check_model, sending_of
from .lm_eval_asking import ChatPrompt, LmEvalGeneration, generation_of, weighing_of
from .trials import digest_of

_T = TypeVar("_T")

WEIGHS = "openai-completions"
_MAX_GEN_TOKS = 256


class UnsupportedTask(NotImplementedError):
    """Raised for a task that needs what the model can't do."""


class CallsFailed(Exception):
    """Raised if requests failed, since lm-eval has no result without them."""


@register_model("millstream")
class MillstreamLM(LM):  # type: ignore[misc]
    """lm-eval's model class `millstream`. `model` is provider/model. cache, mode, base_url, max_cost, rpm, tpm,
    concurrency, timeout, patience and config_file are those of Millstream's command line. `prefix` stands before
    texts without a context (such as `<|endoftext|>`), so that their first token has a probability too. batch_size,
    max_batch_size and device are ignored."""

    def __init__(
        self,
        model: str | None = None,
        pretrained: str | None = None,
        max_gen_toks: int = _MAX_GEN_TOKS,
        seed: int | None = None,
        prefix: str = "",
        batch_size: object = None,
        max_batch_size: object = None,
        device: object = None,
        **arguments: Any,
    ) -> None:
        super().__init__()
        name = model or pretrained
        if name is None:
            raise UsageError("no model: expected model=provider/model among the model's arguments")
        self.model = name
        self._max_gen_toks, self._seed, self._prefix = int(max_gen_toks), seed, prefix
        self._settings = settings_of(sending_of(arguments))
        check_model(name, self._settings)
        self._family = family_of(name, self._settings)

    @property
    def tokenizer_name(self) -> str:
        return "millstream"

    def apply_chat_template(self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True) -> str:
        if self._family == WEIGHS:
            raise UsageError(f"{self.model} takes bare texts, no conversations: leave out --apply_chat_template")
        return ChatPrompt(json.dumps(chat_history, ensure_ascii=False))

    def generate_until(self, requests: list[Any], disable_tqdm: bool = False) -> list[str]:
        generations = [self._generation(*request.args) for request in requests]
        ranks: Counter[Hashable] = Counter()
        calls = []
        for generation in generations:
            same = digest_of(generation.call)
            calls.append(structs.replace(generation.call, trial=ranks[same]))
            ranks[same] += 1

        def read(at: int, reply: Reply) -> str:
            text = generations[at].cut(reply.text)
            self.cache_hook.add_partial("generate_until", requests[at].args, text)
            return text

        return self._all(calls, read, disable_tqdm)

    def loglikelihood(self, requests: list[Any], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        texts = [request.args for request in requests]
        scores = self._weigh([(context or self._prefix, rest) for context, rest in texts], disable_tqdm)
        pairs = [(each.logprob, each.is_greedy) for each in scores]
        for text, result in zip(texts, pairs, strict=True):
            self.cache_hook.add_partial("loglikelihood", text, result)
        return pairs

    def loglikelihood_rolling(self, requests: list[Any], disable_tqdm: bool = False) -> list[float]:
        texts = [request.args[0] for request in requests]
        sums = [each.logprob for each in self._weigh([(self._prefix, text) for text in texts], disable_tqdm)]
        for text, result in zip(texts, sums, strict=True):
            self.cache_hook.add_partial("loglikelihood_rolling", (text,), result)
        return sums

    def _generation(self, context: str, arguments: dict[str, Any], *more: object) -> LmEvalGeneration:
        if more:
            raise NotImplementedError(
                "millstream sends no pictures and sounds of lm-eval's tasks: expected texts alone"
            )
        return generation_of(self.model, context, arguments, max_tokens=self._max_gen_toks, seed=self._seed)

    def _weigh(self, pairs: Sequence[tuple[str, str]], disable_tqdm: bool) -> list[ContinuationScore]:
        """Returns the log-likelihood of each second text after the first. All are trial 0: it is always the same."""
        if self._family != WEIGHS:
            raise UnsupportedTask(
                f"{self.model} tells no log-likelihoods of texts: expected a provider of kind {WEIGHS} (vLLM, "
                f"llama.cpp and others under /completions), as in model={WEIGHS}/NAME,base_url=http://127.0.0.1:8000/v1"
            )

        def read(at: int, reply: Reply) -> ContinuationScore:
            if reply.logprobs is None:
                raise CantScore(
                    f"{self.model} gave no log-probabilities: its server must take echo and logprobs together"
                )
            return score(reply.logprobs, *pairs[at])

        return self._all([weighing_of(self.model, context + rest) for context, rest in pairs], read, disable_tqdm)

    def _all(self, calls: Sequence[Call], read: Callable[[int, Reply], _T], disable_tqdm: bool) -> list[_T]:
        results: dict[int, _T] = {}
        failures: list[Failure] = []
        numbered = (structs.replace(call, tag=at) for at, call in enumerate(calls))
        with self._engine() as engine, tqdm(total=len(calls), desc="Requesting API", disable=disable_tqdm) as bar:
            cached = 0
            for outcome in engine.run(numbered):
                if outcome.reply is None:
                    assert outcome.failure is not None
                    failures.append(outcome.failure)
                else:
                    results[outcome.call.tag] = read(outcome.call.tag, outcome.reply)
                cached += outcome.cached
                bar.set_postfix(cached=cached, refresh=False)
                bar.update()
        if failures:
            first = failures[0]
            raise CallsFailed(
                f"{len(failures):,} of {len(calls):,} requests to {self.model} failed, the first with {first.kind}: "
                f"{first.detail.rstrip('.')}; run the same command again: what was answered is kept, and not sent again"
            )
        return [results[at] for at in range(len(calls))]

    @contextmanager
    def _engine(self) -> Iterator[SyncEngine]:
        """Opens an engine for one list of requests during the block, with what earlier lists spent. lm-eval never
        closes a model, and at the end of a program it is too late."""
        with SyncEngine(settings=self._settings) as engine:
            try:
                yield engine
            finally:
                self._settings = structs.replace(self._settings, spent=engine.statistics().spent)
