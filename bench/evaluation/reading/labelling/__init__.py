"""Labels that people give to a run's answers, and how well our readings agree with them."""
