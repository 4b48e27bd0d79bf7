#include "plain.h"

#include "elastic_kernels.h"
