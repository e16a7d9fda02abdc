"""The fronts: tables in, the main job, reports, model files and the command."""
