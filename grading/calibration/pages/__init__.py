"""What each calibration page shows: context for templates, a constant number of queries."""
