"""What many results say together; nothing is drawn here."""
