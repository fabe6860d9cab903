"""Where the framework's operations are replaced, refused or left as they are."""
