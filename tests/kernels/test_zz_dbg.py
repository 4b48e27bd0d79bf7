import pytest
import test_scaled_linear_domain as s
from cases import OF_GPU
pytestmark = OF_GPU
def test_dbg():
    for sz in ((500,500),(200,200)):
        for d in (2,4,8):
            x,y=s.series("noise",30,sz[0],d,1),s.series("noise",30,sz[1],d,2)
            for b in (5,30):
                r=s.statuses(x[:b],y[:b]); print(sz,d,b,r.count(s.TAKEN),'of',b, flush=True)
