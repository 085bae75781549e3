"""What a user sets: models, the rules between them, and how Pulumi's configuration becomes both."""
