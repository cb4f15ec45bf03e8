"""lm-eval's own command line with one more model, `millstream`: `python -m millstream.interfaces.plugins.lm_eval …`.

lm-eval does not find other packages' models by itself. Owns the exit code and the line of an error.
"""

from __future__ import annotations

import sys

from ...configuration.errors import INTERRUPTED, RESUMABLE, WITH_FAILURES, WRONG_USAGE, exit_code_of
from ...engine.no_dumps import forbid_core_dumps

MODEL = "millstream.interfaces.plugins.lm_eval_model:MillstreamLM"


def main() -> int:
    forbid_core_dumps()
    try:
        # lm-eval looks for its own models only as long as it knows of none.
        import lm_eval.models  # type: ignore[import-untyped]  # noqa: F401
        from lm_eval.__main__ import cli_evaluate  # type: ignore[import-untyped]
        from lm_eval.api.registry import model_registry  # type: ignore[import-untyped]
    except ModuleNotFoundError as error:
        return _print_error(f"lm-eval is not installed ({error}): pip install lm-eval", WRONG_USAGE)
    model_registry.register("millstream", target=MODEL)
    try:
        cli_evaluate()
    except KeyboardInterrupt:
        return _print_error("interrupted: run the same command again, what was answered is kept", INTERRUPTED)
    except Exception as error:
        code = _code_of(error)
        if code is None:
            raise
        return _print_error(str(error), code)
    return 0


def _code_of(error: Exception) -> int | None:
    """Returns the exit code of an error that a person can cause; None for lm-eval's errors, which it reports itself."""
    from ...engine.fault import Stopped
    from ...providers.llm.openai.echoed_text import CantScore
    from .lm_eval_model import CallsFailed, UnsupportedTask

    if isinstance(error, Stopped):
        return RESUMABLE
    if isinstance(error, CallsFailed | CantScore):
        return WITH_FAILURES
    return WRONG_USAGE if isinstance(error, UnsupportedTask) else exit_code_of(error)


def _print_error(line: str, code: int) -> int:
    print(f"millstream-lm-eval: {line}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
