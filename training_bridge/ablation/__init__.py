"""The paper's ablation (Sec. 4.4) as a small experiment: what came of each run, its curves, its table, its picture."""
