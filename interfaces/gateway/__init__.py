"""The gateway: other programs' calls, through our cache, quotas, trial numbers and budgets."""
