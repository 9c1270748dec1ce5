"""Clusters: trials as jobs of Slurm, in images of Apptainer or pyxis."""
