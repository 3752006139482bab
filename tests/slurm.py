"""A SLURM cluster of one machine, as far as submitit and Lightning see one: four small programs."""

from __future__ import annotations

from pathlib import Path

JOB = 77
"""The number that every array has."""
_SBATCH = """#!/bin/bash
# runs each task of the array, again as often as it asks for, without its caller's TARTAN_SWEEP
last=$(sed -n 's/^#SBATCH --array=0-\\([0-9]*\\).*/\\1/p' "$1")
cp "$1" {notes}/sbatch
for i in $(seq 0 "$last"); do
  (
    unset TARTAN_SWEEP
    export SLURM_ARRAY_JOB_ID={job} SLURM_ARRAY_TASK_ID=$i SLURM_JOB_ID=$(({job} + i))
    export SLURM_NTASKS=1 SLURM_NTASKS_PER_NODE=1 SLURM_NNODES=1 SLURM_JOB_NUM_NODES=1
    export SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NODEID=0 SLURM_JOB_NAME=tartan
    export SLURM_NODELIST=localhost SLURM_JOB_NODELIST=localhost
    bash "$1"
    while [ -e "{notes}/again.{job}_$i" ]; do rm "{notes}/again.{job}_$i"; bash "$1"; done
  ) < /dev/null > {notes}/output.$i 2>&1 &
done
echo "Submitted batch job {job}"
"""
_SRUN = """#!/bin/bash
while [[ "$1" != *python* ]]; do shift; done
exec "$@"
"""
_SCONTROL = """#!/bin/bash
echo "$@" >> {notes}/scontrol
touch "{notes}/again.$2"
"""
_SACCT = """#!/bin/bash
echo "JobID|State|NodeList"
"""
PROGRAMS = {"sbatch": _SBATCH, "srun": _SRUN, "scontrol": _SCONTROL, "sacct": _SACCT}


def install(folder: Path) -> Path:
    """Put the programs in `folder/bin`; they leave notes in the folder that is returned."""
    notes, binaries = folder / "notes", folder / "bin"
    for path in (notes, binaries):
        path.mkdir(parents=True)
    for name, text in PROGRAMS.items():
        program = binaries / name
        program.write_text(text.replace("{notes}", str(notes)).replace("{job}", str(JOB)))
        program.chmod(0o755)
    return notes
