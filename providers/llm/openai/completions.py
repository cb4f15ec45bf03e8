"""The wire protocol of OpenAI's older completions, which continue a text: pure encode and decode.

A call is a bare prompt. With `echo` in its extra, the answer repeats the prompt, and with logprobs also its tokens'
log-probabilities: NaN for a token without one, as the first. Complete under the same rules as a chat completion.
"""

from __future__ import annotations

from ....engine.call import Call, Reply
from ....engine.endpoint import EncodeError, Fault, Request, Response
from ..answer_listeners import completion_text, listener_of
from ..answer_values import as_object
from ..faults import bad_json, empty_answer, refusal_or_fault, unreadable
from ..protocol import Target, WireProtocol, add_extra, check_absent, request_of, sampling_of
from .chat import STREAM, STREAM_ALONE, Chunks, decode_stream, read_answer, reply_of
from .shapes import ChatChoice, CompletionMessage, logprobs_of, parallel_logprobs

PATH = "/completions"
_NOT_EXTRA = ("prompt", "model", "stream")
_NOT_HERE = ("reasoning_effort", "json_schema", "tools", "tool_choice", "parallel_tools")


def encode(call: Call, target: Target) -> Request:
    check_absent(call, _NOT_HERE, "OpenAI's older completions have no NAME: leave it out, or use kind openai")
    params = {"model": target.model, **sampling_of(call, target, seed=target.names.get("seed", "seed"))}
    if call.logprobs is not None:
        params["logprobs"] = call.logprobs
    add_extra(call, params, _NOT_EXTRA)
    streamed = STREAM_ALONE if "stream_options" in target.refuses else STREAM
    return request_of(call, target, PATH, params, {"prompt": _prompt_of(call)}, streamed=streamed)


def _prompt_of(call: Call) -> str:
    if isinstance(call.input, str):
        return call.input
    only = call.input[0] if len(call.input) == 1 else None
    if only is None or only.role != "user" or not isinstance(only.content, str):
        raise EncodeError(
            f"{call.model}: OpenAI's older completions go on with one text: give a prompt, or use kind openai"
        )
    return only.content


def decode(response: Response) -> Reply | Fault:
    if response.status != 200:
        return refusal_or_fault(response)
    if response.stream and not response.body.lstrip().startswith((b"{", b"[")):
        return decode_stream(response, _CompletionChunks())
    answer, is_strict = read_answer(response.body)
    if answer is None:
        return unreadable(response.body)
    joined = _CompletionChunks()
    if (result := joined.take(answer, response, response.body)) is not None:
        return result
    if answer.choices is None:
        return bad_json("200 with JSON that is no completion")
    if not joined.has_choices:
        return empty_answer("an empty list of choices", joined.usage)
    if not joined.texts and joined.finish != "stop":
        return bad_json("200 with a choice that holds no text")
    return joined.reply(response, is_strict=is_strict)


class _CompletionChunks(Chunks):
    """The chunks of a stream, or a whole answer as the only chunk."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def take_choice(self, choice: ChatChoice) -> None:
        text = choice.text if isinstance(choice.text, str) else None
        if text is not None:
            self.texts.append(text)
        rows = parallel_logprobs(as_object(choice.logprobs), is_aligned=True)
        if rows is None:
            rows = logprobs_of(choice.logprobs, text)
        if rows is not None:
            self.logprobs = [*(self.logprobs or ()), *rows]

    def reply(self, response: Response, *, is_strict: bool) -> Reply | Fault:
        message = CompletionMessage("".join(self.texts) if self.texts else None)
        choice = ChatChoice(message=message, finish_reason=self.finish)
        return reply_of(choice, self.origin, self.usage, self.logprobs, response, None, is_strict=is_strict)


PROTOCOL = WireProtocol("openai-completions", encode, decode, listen=listener_of(completion_text), is_verbatim=True)
