// The robust engine for few pairs, whose time is the latency of a chunk: a team of warps for every strip of float32 series of
// one dimension, and in forward of a few (few_tile.cuh). One warp sweeps, and the others do what it need not wait for. Two rows a
// lane; forward four where strips of two would have to take turns.
//
// Forward a second warp computes what costs add to m and multiply s with, ahead of the sweep. Backward two warps rebuild
// stages in turn from their snapshots, ahead of the one that goes back over them. Strips of a block hand over through rings
// (ring.cuh). What another block leaves is carried in by a warp of the block, and what its last strip leaves is carried out by
// another.
#pragma once

#include "team_backward.cuh"
#include "team_forward.cuh"
