#include "plain.h"

#include "cpu/isa/elastic_kernels.h"
