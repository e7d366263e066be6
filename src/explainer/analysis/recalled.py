"""What the published runs of associative recall say."""
