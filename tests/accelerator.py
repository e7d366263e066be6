"""A pretended accelerator: a device whose tensors compute on the processor and refuse what a GPU refuses.

`DEVICE` is `accel:0`. Its tensors hold a tensor of the processor, say that they are elsewhere, and compute with its
numbers. They refuse to meet tensors of the processor (of one number excepted, as on a GPU) and to become arrays. So
code that would fail on its first run on a GPU fails in a test, and what runs has the processor's numbers.
"""

import torch
from torch import Tensor
from torch.utils import backend_registration
from torch.utils._device import _device_constructors
from torch.utils._python_dispatch import return_and_correct_aliasing
from torch.utils._pytree import tree_leaves, tree_map

NAME = "accel"
_ACROSS = ("aten::copy_", "aten::_to_copy")
"""What moves numbers from one device to another."""


class _Module(backend_registration._DummyBackendModule):
    """One device, without random numbers of its own."""

    def device_count(self):
        return 1

    def current_device(self):
        return 0

    def get_rng_state(self, device=None):
        return torch.get_rng_state()

    def set_rng_state(self, state, device=None):
        pass

    def manual_seed_all(self, seed):
        pass

    def synchronize(self, device=None):
        pass


backend_registration._setup_privateuseone_for_python_backend(NAME, backend_module=_Module())
DEVICE = torch.device(NAME, 0)


class There(Tensor):
    """A tensor on the device."""

    @staticmethod
    def __new__(cls, held: Tensor):
        return Tensor._make_wrapper_subclass(
            cls, held.size(), strides=held.stride(), storage_offset=held.storage_offset(), dtype=held.dtype,
            device=DEVICE, requires_grad=held.requires_grad,
        )  # fmt: skip

    def __init__(self, held: Tensor):
        self.held = held.detach()

    def __repr__(self, **_):
        return f"There({self.held!r})"

    def __getitem__(self, index):
        whole = index if isinstance(index, tuple) else (index,)
        whole = tuple(torch.tensor(list(i), device=DEVICE) if isinstance(i, list | range) else i for i in whole)
        return super().__getitem__(whole)

    def numpy(self, **_):
        raise TypeError(f"can't convert {NAME}:0 device type tensor to numpy. Use Tensor.cpu() first.")

    __array__ = numpy

    def tolist(self):
        return self.held.tolist()

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        return _run(function, args, kwargs or {})


def _run(function, args, kwargs):
    tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)]
    there = [x for x in tensors if isinstance(x, There)]
    name = function._schema.name
    indexed = name.startswith("aten::index") and isinstance(args[0], There)  # an index may stay on the processor
    if name not in _ACROSS and there and not indexed:
        _require_here_is_a_number(name, [x for x in tensors if not isinstance(x, There)])
    asked = kwargs.get("device")
    ends = torch.device(asked).type if asked is not None else NAME if there else "cpu"
    held = tree_map(lambda x: x.held if isinstance(x, There) else x, (args, kwargs))
    if asked is not None:
        held[1]["device"] = "cpu"
    found = function(*held[0], **held[1])
    if name == "aten::copy_":
        return args[0]
    if ends != NAME:
        return found
    found = tree_map(lambda x: There(x) if isinstance(x, Tensor) and not isinstance(x, There) else x, found)
    return return_and_correct_aliasing(function, args, kwargs, found) if len(there) == len(tensors) > 0 else found


def _require_here_is_a_number(name, here):
    if any(x.dim() > 0 for x in here):
        raise RuntimeError(f"{name}: Expected all tensors to be on the same device, but found {NAME}:0 and cpu.")


_library = torch.library.Library("_", "IMPL", "PrivateUse1")
_library.fallback(lambda function, *args, **kwargs: _run(function, args, kwargs))


def pretend() -> None:
    """Replace what Python is not asked in: inference mode, and the copies that `torch.tensor` makes. For good."""
    make = torch.tensor
    # `with torch.device("meta")` knows its constructors from the first time it asks: the real `tensor` must be among
    # them. Else transformers, which makes one to see where it is, takes meta for the processor, initialises buffers
    # that hold nothing yet, and leaves those that it loads a model into as they come from memory.
    _device_constructors()

    def tensor(data, *, device=None, **options):
        return make(data, **options) if device is None else make(data, **options).to(device)

    torch.inference_mode = lambda mode=True: torch.no_grad() if mode else torch.enable_grad()
    torch.tensor = tensor
