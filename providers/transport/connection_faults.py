"""The faults of broken connections: what each error of a connector or an exchange means for the attempt.

Pure: no I/O. What an HTTP status means: providers/llm/faults.
"""

from __future__ import annotations

import ssl

import aiohttp

from ...engine.endpoint import Fault
from ...engine.own_machine import out_of, what_ran_out
from .http_connection import AnswerTooLarge, ExchangeError, HungUp, NeverSent, NoHttp

# OpenSSL's numbers for a self-signed certificate, and for one with an unknown signer.
_NOBODY_KNOWN = (18, 19, 20, 21)


def fault_of(error: BaseException, timeout_s: float) -> Fault:
    """Returns the fault of a broken exchange; the quota of a request that was certainly never sent is refunded."""
    said = str(error) or type(error).__name__
    match error:
        case AnswerTooLarge():
            return Fault("too_large", said, "never", error.status, is_billed_maybe=True)
        case NeverSent():
            return Fault("disconnected", said, "retry", quota="refund", is_immediate=True)
        case HungUp():
            return Fault("disconnected", said, "retry", is_billed_maybe=True, is_immediate=True)
        case NoHttp():
            return Fault("incomplete", f"the answer is no HTTP ({said})", "retry", is_billed_maybe=True)
        case ExchangeError():
            return Fault("incomplete", f"the answer broke off ({said})", "retry", is_billed_maybe=True)
        case aiohttp.ClientConnectorCertificateError():
            return Fault("connect", _certificate_told(error), "retry", quota="refund")
        case aiohttp.ClientConnectorDNSError(os_error=cause):
            what = what_ran_out(cause)
            return out_of(what, cause) if what else Fault("dns", said, "retry", quota="refund")
        case OSError() if what := what_ran_out(error):
            return out_of(what, error)
        case TimeoutError() if not isinstance(error, aiohttp.ConnectionTimeoutError):
            return Fault("timeout", f"no whole answer within {timeout_s:g} s", "retry", is_billed_maybe=True)
    # An error of the connector, before anything was sent.
    return Fault("connect", said, "retry", quota="refund")


def _certificate_told(error: aiohttp.ClientConnectorCertificateError) -> str:
    reason = error.certificate_error
    said = reason.verify_message if isinstance(reason, ssl.SSLCertVerificationError) else str(reason)
    told = f"the certificate of {error.host}:{error.port} is not to be trusted ({said})"
    is_of_stranger = isinstance(reason, ssl.SSLCertVerificationError) and reason.verify_code in _NOBODY_KNOWN
    return f"{told}: name the file of the authority that signed it in SSL_CERT_FILE" if is_of_stranger else told
