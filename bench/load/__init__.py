"""Load tests that tell the truth about time: from options to calls, figures and a page."""
