"""Each experiment: its settings, its arithmetic, its grids."""
