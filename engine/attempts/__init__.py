"""What a call tries and what that may cost: retries, routes, estimates, prices and budgets."""
