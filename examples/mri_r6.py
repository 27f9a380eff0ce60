"""MRI at acceleration 6, step by step: finish when the image hardly changes any more."""

import sys

import numpy as np

import dualscope as ds

size, nfe = (64, 6) if "--quick" in sys.argv else (256, 50)

problem = ds.simulate("demo:mri", acceleration=6, kspace_noise=0.005, size=size, seed=1)
last = ds.reconstruct(problem, "zero-filled").image

run = ds.run(problem, "dc-pnpdp", nfe=nfe, seed=1)
for step in run:
    change = np.linalg.norm(step.image - last) / np.linalg.norm(last)
    print(f"{step}; changed by {100 * change:.2f} %")
    last = step.image
    if change < 1e-3:
        run.finish()

result = run.result
print(result)
result.save("mri_r6.png", "mri_r6.nii.gz", overwrite=True)
np.save("mri_r6_phase.npy", np.angle(result.complex_image))
