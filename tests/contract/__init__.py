"""What holds whatever the code looks like inside: the public face and the commands."""
