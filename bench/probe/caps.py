"""The default caps of a probe. Light to import, since `--help` prints them."""

MAX_CALLS = 20_000
MAX_COST = 1.0
IN_FLIGHT = 1_024
TIMEOUT_S = 120.0
TOKENS_A_CALL = 30_000
# The time that most of the simulated providers take that the tests draw.
MINUTES = "2 to 5"
