"""Input transforms: how a text is changed before the body reads it."""
