"""The framework's operations, by portable definitions."""
