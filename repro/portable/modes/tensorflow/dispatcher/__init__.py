"""Dispatcher: operations of the framework are replaced, refused or left as they are."""
