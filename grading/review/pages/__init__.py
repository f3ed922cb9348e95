"""What each page of grading shows: steps that read rows and bodies and assemble a template's context."""
