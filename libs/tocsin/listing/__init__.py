"""How a published list is read, whoever reads it: other orders of its rows, why one stands above another, its JSON, a row by its name. Pure."""
