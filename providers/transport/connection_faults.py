"""The faults of broken connections: what each error of a connector or an exchange means for the attempt, and what a
person can do about it.

Pure: no I/O. What an HTTP status means: providers/llm/faults. Messages name an address by its scheme, host and port.
"""

from __future__ import annotations

import errno
import os
import ssl

import aiohttp
from yarl import URL

from ...engine.endpoint import Fault
from ...engine.own_machine import out_of, what_ran_out
from ..table import SIM_PORT
from .http_connection import AnswerTooLarge, ExchangeError, HungUp, NeverSent, NoHttp

# OpenSSL's numbers for a self-signed certificate, and for one with an unknown signer.
_NOBODY_KNOWN = (18, 19, 20, 21)
# OpenSSL's numbers for a certificate that is not valid yet or any more, and for one with other names.
_OUT_OF_DATE = (9, 10)
_OTHER_NAME = (62, 63, 64)
# OpenSSL's reasons for bytes that are no TLS, by version.
_NO_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG", "RECORD_LAYER_FAILURE")
# And for a server whose newest TLS is too old for us.
_OLD_TLS = ("UNSUPPORTED_PROTOCOL", "TLSV1_ALERT_PROTOCOL_VERSION", "UNSUPPORTED_SSL_VERSION")


def fault_of(error: BaseException, timeout_s: float, url: URL) -> Fault:
    """Returns the fault of a broken exchange with `url`; the quota of a request that was certainly never sent is
    refunded."""
    detail = str(error) or type(error).__name__
    match error:
        case AnswerTooLarge():
            return Fault("too_large", detail, "never", error.status, is_billed_maybe=True)
        case NeverSent():
            return Fault("disconnected", detail, "retry", quota="refund", is_immediate=True)
        case HungUp():
            return Fault("disconnected", detail, "retry", is_billed_maybe=True, is_immediate=True)
        case NoHttp():
            return Fault("incomplete", f"the answer is no HTTP ({detail})", "retry", is_billed_maybe=True)
        case ExchangeError():
            return Fault("incomplete", f"the answer broke off ({detail})", "retry", is_billed_maybe=True)
        case aiohttp.ClientConnectorCertificateError():
            return Fault("connect", _certificate_text(error), "retry", quota="refund")
        case aiohttp.ClientConnectorDNSError(os_error=cause):
            if what := what_ran_out(cause):
                return out_of(what, cause)
            return Fault("dns", _name_text(url, cause), "retry", quota="refund")
        case OSError() if what := what_ran_out(error):
            return out_of(what, error)
        case TimeoutError() if not isinstance(error, aiohttp.ConnectionTimeoutError):
            return Fault("timeout", f"no whole answer within {timeout_s:g} s", "retry", is_billed_maybe=True)
    # An error of the connector, before anything was sent.
    return Fault("connect", _connector_text(error, url), "retry", quota="refund")


def silent_address(url: URL, seconds: float) -> Fault:
    """Returns the fault of an address that has accepted no connection for some seconds."""
    where = f"{url.origin()} has accepted no connection for {seconds:g} s"
    return Fault("connect", f"{where}: check host, port and firewalls", "retry", quota="refund")


def advice_of(fault: Fault, url: URL) -> str:
    """Returns the message about an address none of whose answers could be read so far; empty: the fault is no sign of
    a wrong address."""
    where = url.origin()
    if fault.kind in ("connect", "dns"):
        return fault.detail
    other = "http" if url.scheme == "https" else "https"
    if fault.kind == "disconnected" and fault.is_billed_maybe:
        return f"{where} closes connections without an answer: is the port right, does it expect {other}://?"
    if fault.kind == "incomplete" and fault.detail.startswith("the answer is no HTTP"):
        return f"{where} answers, but not in HTTP: is the port right, does it expect {other}://?"
    return ""


def _connector_text(error: BaseException, url: URL) -> str:
    where, detail = url.origin(), str(error) or type(error).__name__
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return f"{where} does not accept connections in time: check host, port and firewalls"
    if isinstance(error, aiohttp.ClientConnectorSSLError):
        reason = getattr(error.os_error, "reason", None) or type(error.os_error).__name__
        if reason in _NO_TLS:
            return f"{where} does not speak TLS ({reason}): try {where.with_scheme('http')}"
        if reason in _OLD_TLS:
            return f"{where} has no version of TLS that is still safe ({reason}): it needs TLS 1.2 or 1.3"
        return f"no secure connection to {where} ({reason}): is the port right?"
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    if isinstance(cause, OSError) and cause.errno == errno.ECONNREFUSED:
        start = " (`millstream sim` in another terminal starts the simulator)" if _is_sim(url) else ""
        return f"{where} refuses connections: is the server up{start}, is the port right?"
    if isinstance(cause, OSError) and cause.errno in (errno.ENETUNREACH, errno.EHOSTUNREACH):
        return f"{where} can't be reached ({os.strerror(cause.errno)}): check the address and this machine's network"
    if isinstance(cause, OSError) and cause.errno:
        return f"no connection to {where} ({os.strerror(cause.errno)}): check the address"
    return f"no connection to {where} ({detail})"


def _is_sim(url: URL) -> bool:
    return url.port == SIM_PORT and url.host in ("127.0.0.1", "localhost")


def _name_text(url: URL, error: OSError) -> str:
    reason = error.strerror or str(error) or type(error).__name__
    return f"the host name {url.host} can't be resolved ({reason}): check its spelling and this machine's network"


def _certificate_text(error: aiohttp.ClientConnectorCertificateError) -> str:
    reason = error.certificate_error
    if not isinstance(reason, ssl.SSLCertVerificationError):
        return f"the certificate of {error.host}:{error.port} is not trusted ({reason})"
    text = f"the certificate of {error.host}:{error.port} is not trusted ({reason.verify_message})"
    if reason.verify_code in _NOBODY_KNOWN:
        return f"{text}: name the file of the authority that signed it in SSL_CERT_FILE"
    if reason.verify_code in _OTHER_NAME:
        return f"{text}: use the host name that the certificate is made out to"
    return f"{text}: renew it, or set this machine's clock" if reason.verify_code in _OUT_OF_DATE else text
