#include "plain.h"

#include "cpu/isa/elastic_lanes_kernels.h"
