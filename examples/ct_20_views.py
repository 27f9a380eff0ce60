"""CT from 20 views: DC-PnPDP beside filtered back-projection and total variation."""

import sys

import dualscope as ds

size, nfe = (64, 4) if "--quick" in sys.argv else (256, 50)

problem = ds.simulate("demo:ct", views=20, size=size)
comparison = ds.compare(problem, ["fbp", "tv", "dc-pnpdp"], nfe=nfe)
print(comparison)
comparison.save("ct_20_views.png", overwrite=True)

result = comparison["dc-pnpdp"]
print(f"{result.image.shape} from {result.image.min():.0f} to {result.image.max():.0f} HU")
print(*result.verdicts.values(), sep="\n")
result.save("ct_20_views.dcm", "ct_20_views.json", overwrite=True)
