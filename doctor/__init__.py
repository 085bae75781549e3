"""The read-only report of drift: what runs on each host, and what differs from what `pulumi up` made of it."""
