"""How people and programs reach Millstream. Nothing heavy is imported before it is needed."""
