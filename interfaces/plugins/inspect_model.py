"""A model of Inspect's whose calls run through a Millstream engine: `millstream/openai/gpt-6.2-sol`.

Only the engine retries, paces and caches. Each epoch gets a sample of its own, and so does each repeat of a call within
it; the same evaluation run again gets the same samples. Knows no protocol.
"""

from __future__ import annotations

import asyncio
from asyncio import AbstractEventLoop
from typing import Any
from weakref import WeakKeyDictionary

from inspect_ai._util.error import PrerequisiteError  # what Inspect reports in one line
from inspect_ai.log._samples import sample_active
from inspect_ai.model import ChatMessage, GenerateConfig, ModelAPI, ModelCall, ModelOutput
from inspect_ai.tool import ToolChoice, ToolInfo
from msgspec import structs

from ...configuration.configuration import settings_of
from ...configuration.errors import UsageError
from ...engine.call import Call, Outcome
from ...engine.fault import LocalFault, Stopped
from ...wiring import ConfigurationError, family_of
from .arguments import check_model, sending_of
from .inspect_answers import InspectCallError, output_of, record_of
from .inspect_asking import call_of
from .inspect_engine import LoopEngines, SharedEngine
from .trials import Asker, Trial

# Inspect makes models wherever one is named, and all of a loop share an engine, its quotas and its count of calls.
_LOOPS: WeakKeyDictionary[AbstractEventLoop, LoopEngines] = WeakKeyDictionary()


class MillstreamAPI(ModelAPI):
    """Inspect's model class for `millstream/PROVIDER/MODEL`. Its arguments (-M NAME=VALUE) are cache, mode, max_cost,
    rpm, tpm, concurrency, timeout, patience and config_file, as on Millstream's command line. API keys come from the
    provider's own variable, or as that file names them."""

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig = GenerateConfig(),  # noqa: B008 - Inspect's own signature
        **model_args: Any,
    ) -> None:
        super().__init__(model_name, base_url, api_key, [], config)
        if api_key is not None:
            raise PrerequisiteError(
                f"millstream/{model_name} takes no api_key: put the key into its provider's variable, such as "
                f"OPENAI_API_KEY, or name that in a config file"
            )
        try:
            self._sending = sending_of({"base_url": base_url, **model_args})
            self._settings = settings_of(self._sending)
            check_model(model_name, self._settings)
        except (UsageError, ConfigurationError) as error:
            raise PrerequisiteError(f"millstream/{model_name}: {error}") from error
        self._family = family_of(model_name, self._settings)

    async def generate(
        self,
        input: list[ChatMessage],
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput | tuple[ModelOutput | Exception, ModelCall]:
        call = call_of(self.model_name, self._family, input, tools, tool_choice, config)
        engines = _engines_here()
        engine = engines.engine(self._sending, self._settings, id(self))
        place = _place_here()
        trials = [engines.trials.take(call, place) for _ in range(config.num_choices or 1)]
        if len(trials) == 1:
            outcomes = [await _ask(engine, call, trials[0])]
        else:
            outcomes = await asyncio.gather(*(_ask(engine, call, trial) for trial in trials))
        return output_of(outcomes, tools), record_of(outcomes)

    async def aclose(self) -> None:
        if (engines := _LOOPS.get(asyncio.get_running_loop())) is not None:
            await engines.leave(id(self))

    def should_retry(self, ex: Exception) -> bool:
        """Returns False: the engine has made all retries."""
        return False

    def max_connections(self) -> int:
        return self._settings.concurrency_of(self.model_name)

    def connection_key(self) -> str:
        return f"{self._sending} {self.model_name}"

    def tools_required(self) -> bool:
        return self._family in ("anthropic", "bedrock")

    def tool_result_images(self) -> bool:
        return self._family in ("anthropic", "bedrock", "openai-responses")

    def collapse_user_messages(self) -> bool:
        return self._family in ("anthropic", "bedrock", "gemini")

    def collapse_assistant_messages(self) -> bool:
        return self._family in ("anthropic", "bedrock", "gemini")


async def _ask(engine: SharedEngine, call: Call, trial: Trial) -> Outcome:
    """Returns the outcome of one trial. After a failure the trial number is free again."""
    is_answered = False
    try:
        outcome = await engine.ask(structs.replace(call, trial=trial.number))
        is_answered = outcome.failure is None
        return outcome
    except (Stopped, LocalFault, ConfigurationError) as error:
        raise InspectCallError(f"{call.model}: {error}") from error
    finally:
        if not is_answered:
            trial.give_back()


def _engines_here() -> LoopEngines:
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError as error:
        raise PrerequisiteError("millstream runs on asyncio alone: leave INSPECT_ASYNC_BACKEND at asyncio") from error
    return _LOOPS.setdefault(loop, LoopEngines())


def _place_here() -> Asker:
    """Returns the sample of Inspect that makes this call. Outside an evaluation, every call is a new sample."""
    active = sample_active()
    if active is None:
        return Asker(None, None, None)
    return Asker(active.eval_id, active.sample.id, active.id, active.epoch)
