"""Probes of a grader: does it judge the work, or slots, letters, length, names and what candidates tell it to do?"""
