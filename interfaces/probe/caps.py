"""What a probe may use unless a person says otherwise. Light to import, since `--help` tells of it."""

MAX_CALLS = 20_000
MAX_COST = 1.0
IN_FLIGHT = 1_024
TIMEOUT_S = 120.0
