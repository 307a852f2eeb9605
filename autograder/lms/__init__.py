"""What learning systems hand out and take back: downloads, rosters, marks."""
