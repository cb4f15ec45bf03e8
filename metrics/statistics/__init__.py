"""Statistics: distributions, intervals and comparisons of any figures; knows no benchmark."""
