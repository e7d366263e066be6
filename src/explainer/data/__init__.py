"""Texts, tasks and files, each checked against its digest."""
