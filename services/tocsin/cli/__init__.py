"""The command `tocsin`: a composition root. One file per verb, imported only when that verb is used."""
