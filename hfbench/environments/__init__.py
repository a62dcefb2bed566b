"""Other Pythons: declared in the configuration, asked what they have, and chosen for an action that needs it."""

from hfbench.environments.choose import Place as Place
from hfbench.environments.choose import place_for as place_for
from hfbench.environments.declared import Environment as Environment
from hfbench.environments.declared import declared as declared
from hfbench.environments.declared import find as find
from hfbench.environments.declared import here as here
from hfbench.environments.probe import probe as probe
from hfbench.environments.probe import probe_all as probe_all
from hfbench.environments.probed import Probed as Probed
from hfbench.environments.probed import Torch as Torch
