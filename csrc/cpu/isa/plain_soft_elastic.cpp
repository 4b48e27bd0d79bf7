#include "plain.h"

#include "soft_elastic_kernels.h"
