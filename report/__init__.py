"""The report as data and as a page: tables, figures, charts, their files. Knows no benchmark."""
