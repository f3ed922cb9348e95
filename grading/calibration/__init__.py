"""What people's answers say about the rubric and the grader: knobs, what-if, fit, gate, versions, agreement."""
