"""Constants, tables, polynomials and precisions: the numbers of the specification."""
