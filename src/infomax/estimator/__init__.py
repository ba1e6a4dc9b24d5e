"""The Python interface: `DGI`, an estimator in the style of scikit-learn.

dgi.py              the estimator; each of its methods hands on to one of the files below
settings.py         from its arguments to the preset that a graph is trained with
assembly.py         from a preset to a training: model, scaled features, views
fitting.py          runs a training, with its run folder, and returns a fitted model
together.py         the same for several seeds at a time
fitted_model.py     what a training leaves, and the vectors that are computed with it
vector_parts.py     fits the parts of vectors that no training makes
training_record.py  how a training went, and the report on it
run_folder.py       writes a fitted model to a run folder, and reads it back
same_features.py    refuses graphs that a fitted model was not made for
later_graphs.py     takes a fitted model to a later graph
new_nodes.py        vectors of new nodes that are passed as arguments
questions.py        vectors as of the time of a question
explaining.py       traces a vector back to cells, edges, parts and the functions that made it
"""

from infomax.estimator.assembly import build as build
from infomax.estimator.dgi import DGI as DGI
