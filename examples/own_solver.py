"""Your own solver: DC-PnPDP again, from the pieces that all solvers share."""

import sys

import torch

import dualscope as ds

size, nfe = (64, 4) if "--quick" in sys.argv else (256, 50)


class Mine(ds.Solver):
    name, settings_class = "mine", ds.DcPnpdpSettings

    def iterate(self, problem, prior, settings, generator, resume=None):
        sigmas = settings.sigmas()
        data_step = ds.DataStep(problem, settings)
        z = settings.starting_image(problem, generator)
        u, n = torch.zeros_like(z), None
        for k, sigma in enumerate(sigmas):
            x = data_step(z - u, sigma)  # argmin ||Ax - y||^2 + rho ||x - z + u||^2
            n = settings.noise(k, sigma, x, generator, n)
            v = ds.homogenize(x + u, z, sigma, settings, n)
            z = settings.seen(prior, k)(v, sigma)
            u = u + x - z
            fitted, denoised = problem.residual(x), problem.residual(z)
            data_step.learn(denoised, fitted, sigma)
            norms = [r.flatten(1).norm(dim=1) for r in (fitted, denoised, x - z, u)]
            yield ds.Iteration(k + 1, nfe, sigma, z, x, z, *norms, state={}, nfe=k + 1)


problem = ds.simulate("demo:ct", views=20, size=size)
mine = ds.reconstruct(problem, Mine(), nfe=nfe, seed=3)
built_in = ds.reconstruct(problem, "dc-pnpdp", nfe=nfe, seed=3)
print(f"largest difference: {abs(mine.image - built_in.image).max():g} HU")
