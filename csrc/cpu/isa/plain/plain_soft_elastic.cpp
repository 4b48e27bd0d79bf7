#include "plain.h"

#include "cpu/isa/soft_elastic_kernels.h"
