"""The scores of tasks: trials combined by item, means with intervals, paired comparisons."""
