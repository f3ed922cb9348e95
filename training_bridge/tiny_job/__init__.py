"""A real small RL job: a torch policy edits small Python projects, tests are executed, groups are graded by Gagar."""
