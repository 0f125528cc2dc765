"""Settings of the documentation site. `make docs` builds it."""

import sys
import warnings
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "extensions"))

import matplotlib  # noqa: E402

matplotlib.use("agg")

from sphinx_gallery.sorting import ExplicitOrder  # noqa: E402

import aberra  # noqa: E402
from aberra.methods import methods  # noqa: E402

project = "Aberra"
author = copyright = "The Aberra developers"
version = release = aberra.__version__

extensions = [
    "sphinx.ext.autodoc",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "mathml",  # equations without scripts from elsewhere
    "from_repository",  # the changelog, the results and others, which live outside of docs/
    "from_register",  # the reference, from the register of methods
]
exclude_patterns = ["_build", "extensions", "static", "gallery/**/*.md5"]
root_doc = "index"
default_role = "literal"
nitpicky = True
language = "en"
smartquotes = False  # "auto" is code
html_math_renderer = "mathml"

# A page that is made anew on every build must not carry a date.
html_last_updated_fmt = None
html_theme = "pydata_sphinx_theme"
html_title = f"Aberra {release}"
html_favicon = "../src/aberra/viewer/static/icon.svg"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
# Pages that stand alone have nothing to list beside them.
html_sidebars = {name: [] for name in ("index", "how-it-works", "choose", "comparison", "faq")}
html_theme_options = {
    "logo": {"text": "Aberra", "image_light": "static/mark.svg", "image_dark": "static/mark.svg"},
    "navbar_align": "left",
    "header_links_before_dropdown": 9,
    "navigation_with_keys": False,
    "show_prev_next": True,
    "collapse_navigation": True,
    "navigation_depth": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist", "substitution"]
myst_heading_anchors = 4
myst_dmath_double_inline = True
myst_substitutions = {
    "version": release,
    "n_methods": len(list(methods())),
    "n_localisers": sum(method.localises for method in methods()),
}

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings say it in words
autodoc_inherit_docstrings = True
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

warnings.filterwarnings("ignore", category=UserWarning, module="sklearn")
sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"/plot_",
    "subsection_order": ExplicitOrder(
        [f"../examples/{name}" for name in ("tables", "trust", "images")]
    ),
    "within_subsection_order": "FileNameSortKey",
    "image_scrapers": ("matplotlib",),
    "reset_modules": (),
    "abort_on_example_error": False,
    "only_warn_on_example_error": False,
    "show_memory": False,
    "min_reported_time": 3600,  # times differ from machine to machine: none are shown
    "write_computation_times": False,
    "download_all_examples": False,
    "show_signature": False,
    "remove_config_comments": True,
    "matplotlib_animations": False,
}
