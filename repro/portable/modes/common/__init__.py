"""What the three modes share."""
