#include "plain.h"

#include "elastic_lanes_kernels.h"
