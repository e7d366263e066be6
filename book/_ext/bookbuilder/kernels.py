"""Kernels whose packages are imported already, a plugin of pytest: else each of fifty pages imports for ten seconds."""

import asyncio
import os
from importlib.metadata import EntryPoint
from multiprocessing import get_context
from typing import Any

from ipykernel import kernelapp
from jupyter_client.provisioning import KernelProvisionerFactory, LocalProvisioner

_PACKAGES = ("nbformat", "explainer.explorables", "explainer.figures", "explainer.models.loading",
             "transformers.models.llama.modeling_llama")  # fmt: skip
_FORK = get_context("forkserver")


class Forked(LocalProvisioner):
    """Forks a kernel from a server that has imported the packages, where Jupyter's own starts an interpreter."""

    async def launch_kernel(self, cmd: list[str], *, env: dict[str, str], cwd: str, **_: Any) -> dict[str, Any]:
        """Start the kernel that Jupyter's command describes, as a group of processes of its own."""
        self.process = _FORK.Process(target=_kernel, args=(cmd[cmd.index("-f") :], env, cwd))
        self.process.start()
        self.pid = self.pgid = self.process.pid
        return self.connection_info

    async def poll(self) -> int | None:
        """The exit code; None while the kernel runs."""
        return self.process.exitcode if self.process else 0

    async def wait(self) -> int | None:
        """Wait for the exit code."""
        while (code := await self.poll()) is None:
            await asyncio.sleep(0.1)
        self.process = None
        return code


def _kernel(arguments: list[str], env: dict[str, str], cwd: str) -> None:
    os.setsid()
    os.environ.update(env)
    os.chdir(cwd)
    kernelapp.launch_new_instance(arguments)


def pytest_configure() -> None:
    """Make it what Jupyter starts kernels with, in this process and in the workers that it starts."""
    factory, name = KernelProvisionerFactory, "forked"
    factory.provisioners[name] = EntryPoint(name, f"{__name__}:{Forked.__name__}", factory.GROUP_NAME)
    os.environ[factory.default_provisioner_name_env] = name
    _FORK.set_forkserver_preload([__name__, *_PACKAGES])
