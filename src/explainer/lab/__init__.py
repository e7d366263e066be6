"""What every experiment needs: where results are stored, where they are computed."""
