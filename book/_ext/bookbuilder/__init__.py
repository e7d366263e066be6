"""The book's static site: what turns executed notebooks into pages that need no kernel and no other host."""
