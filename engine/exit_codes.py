"""What the program ends with. An error that a person can cause bears its code as `exit_code`; others are defects."""

DONE = 0
WRONG_USAGE = 2
WITH_FAILURES = 3
RESUMABLE = 4
LOCAL_FAULT = 5
SIGNAL = 128  # and the signal's number: 130, 143
INTERRUPTED = SIGNAL + 2
