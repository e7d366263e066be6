"""The laboratory behind the book: grids of experiments, trainings, what resumes and stores them, and their commands."""
