"""Input transforms, which change a text before the body reads it."""
