"""What the columns of a table are, and the features that they become."""
