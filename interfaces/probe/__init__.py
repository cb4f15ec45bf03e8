"""`millstream probe`: what is asked, carried out, shown and written."""
