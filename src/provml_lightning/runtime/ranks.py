"""Which process this is among those of one training."""

from __future__ import annotations

import os
import sys
from typing import Any

__all__ = ["broadcast", "global_rank", "has_process_group", "local_rank", "world_size"]

# The order in which Lightning and the launchers are believed.
_RANKS = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "JSM_NAMESPACE_RANK")
_LOCAL_RANKS = (
    "LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
    "JSM_NAMESPACE_LOCAL_RANK",
)  # fmt: skip
_SIZES = ("WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "JSM_NAMESPACE_SIZE")


def global_rank() -> int:
    """Return this process's rank: from its process group, else from its launcher, else 0.

    Source:
        ``torch.distributed.get_rank``; the variables of torchrun, SLURM, Open MPI, MPICH and LSF.
    """
    group = _process_group()
    return int(group.get_rank()) if group is not None else _from_environment(_RANKS, 0)


def world_size() -> int:
    """Return the number of processes, found as the rank is [1]."""
    group = _process_group()
    return int(group.get_world_size()) if group is not None else _from_environment(_SIZES, 1)


def local_rank(rank: int) -> int:
    """Return the number of a rank among those of its machine.

    Where no launcher tells, all ranks are taken to be of one machine: then a machine may go
    unmeasured, but is never measured twice.

    Source:
        The variables of torchrun and Lightning, SLURM, Open MPI, MPICH and LSF.
    """
    return _from_environment(_LOCAL_RANKS, rank)


def has_process_group() -> bool:
    """Tell whether the processes can talk to each other."""
    return _process_group() is not None


def broadcast(value: str | None, source: int = 0) -> str | None:
    """Return the value of one rank on every rank, or one's own where there is no process group.

    With a process group all its ranks must call it.
    """
    group = _process_group()
    if group is None:
        return value
    values = [value]
    group.broadcast_object_list(values, src=source)
    return values[0]


def _process_group() -> Any:
    """Return ``torch.distributed`` if a process group is up; torch is never imported for it."""
    if "torch" not in sys.modules:
        return None
    import torch.distributed as dist

    return dist if dist.is_available() and dist.is_initialized() else None


def _from_environment(names: tuple[str, ...], default: int) -> int:
    for name in names:
        text = os.environ.get(name, "")
        if text.isdecimal():
            return int(text)
    return default
