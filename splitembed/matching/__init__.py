"""Which row of the pretrained vectors belongs to which token."""
