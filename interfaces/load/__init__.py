"""`millstream load`: what is asked, carried out, shown and written."""
