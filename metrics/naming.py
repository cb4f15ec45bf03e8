"""Names of temperatures in figures."""

from __future__ import annotations


def temperature_name(temperature: float | None) -> str:
    if temperature is None:
        return "default"
    return str(int(temperature)) if temperature == int(temperature) else repr(float(temperature))
