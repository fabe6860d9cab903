"""One framework's arithmetic each: what definitions are written over."""
