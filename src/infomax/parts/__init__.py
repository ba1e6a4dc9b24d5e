"""What the paper names: encoders, corruptions, readouts, discriminators, objectives."""
