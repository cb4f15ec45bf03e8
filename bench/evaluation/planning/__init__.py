"""What a run will ask, take and cost, before it is sent."""
