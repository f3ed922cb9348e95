"""What a grader may do while it looks at a group: one file per family of tools; `toolbox` picks, checks and calls."""
