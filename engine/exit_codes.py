"""The program's exit codes. An error that a user can cause has its code in `exit_code`; any other error is a defect."""

DONE = 0
WRONG_USAGE = 2
WITH_FAILURES = 3
RESUMABLE = 4
LOCAL_FAULT = 5
SIGNAL = 128  # and the signal's number: 130, 143
INTERRUPTED = SIGNAL + 2
