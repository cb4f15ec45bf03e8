"""One module a verb: HELP, add_arguments(parser), run(options). Light to import: heavy parts are loaded inside run."""
