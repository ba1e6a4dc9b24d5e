"""What was learnt, as numbers and pictures: arrays in, figures out."""
