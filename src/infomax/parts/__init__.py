"""The parts of DGI, as the paper names them: encoders, corruptions, readouts, discriminators, objectives."""
