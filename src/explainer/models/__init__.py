"""Checkpoints, and what is done to them: scoring, recording, fine-tuning, training."""
