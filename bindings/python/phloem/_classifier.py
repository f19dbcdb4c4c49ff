"""phloem.Classifier: a click model as scikit-learn wants an estimator."""
import inspect
import itertools
import textwrap

import numpy
import sklearn.base
import sklearn.utils.multiclass
import sklearn.utils.validation

from phloem import _data, _settings, _train
from phloem._library import DataError

_SECTIONS = ("", "model", "train", "optimizer")
_LEFT_OUT = {"optimizer.groups"}  # lists of mappings: through `config`
_OWN = {"config": None, "early_stopping": None, "validation_fraction": 0.1}


def _parameters():
    """Returns {parameter: (whole key, default, help)} of the schema: a key's last word, or section_word where two sections have
    it; `kind` is the section's own name."""
    found, taken = {}, {}
    keys = [(section["section"], key) for section in _settings.schema() if section["section"] in _SECTIONS
            for key in section["keys"]]
    for section, key in keys:
        name = section if key["key"] == "kind" else key["key"]
        taken[name] = taken.get(name, 0) + 1
    for section, key in keys:
        whole = f"{section}.{key['key']}".lstrip(".")
        name = section if key["key"] == "kind" else key["key"]
        if whole not in _LEFT_OUT:
            found[name if taken[name] == 1 else f"{section}_{name}"] = (whole, _settings.default_of(key), key["help"])
    return found


PARAMETERS = _parameters()


def _signature():
    names = {"self": inspect.Parameter.empty, **{name: default for name, (_, default, _) in PARAMETERS.items()}, **_OWN}
    kinds = itertools.chain([inspect.Parameter.POSITIONAL_OR_KEYWORD], itertools.repeat(inspect.Parameter.KEYWORD_ONLY))
    return inspect.Signature([inspect.Parameter(name, kind, default=default)
                              for (name, default), kind in zip(names.items(), kinds)])


class Classifier(sklearn.base.ClassifierMixin, sklearn.base.BaseEstimator):
    """Binary classifier over frames, dicts, CSR matrices and arrays. After fit: classes_, n_features_in_, feature_names_in_ (of
    frames), run_ (the phloem.Run).

    config
        More settings, as phloem.train takes them: {"data": {"fields": [...]}}
    early_stopping
        True: a validation_fraction of the rows decides when training stops. None: only where eval_set is given."""

    def __init__(self, **parameters):
        known = {**{name: default for name, (_, default, _) in PARAMETERS.items()}, **_OWN}
        for name in parameters:
            if name not in known:
                raise TypeError(f"Classifier has no parameter '{name}'; phloem.schema() lists the settings")
        for name, default in known.items():
            setattr(self, name, parameters.get(name, default))

    __init__.__signature__ = _signature()

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags

    # ---- rows ----

    def _columns(self, rows, is_fit):
        """Returns the rows as a pyarrow table: a frame's columns by their names, an array's as x0, x1, ..."""
        if hasattr(rows, "tocsr") or not (hasattr(rows, "__arrow_c_stream__") or hasattr(rows, "keys")):
            rows = sklearn.utils.validation.validate_data(
                self, rows, accept_sparse="csr", dtype="numeric", ensure_all_finite="allow-nan", reset=is_fit)
            rows = rows.toarray() if hasattr(rows, "toarray") else rows
            rows = {f"x{i}": numpy.ascontiguousarray(rows[:, i], numpy.float64) for i in range(rows.shape[1])}
        elif hasattr(rows, "columns") and hasattr(rows, "iloc"):
            sklearn.utils.validation._check_feature_names(self, rows, reset=is_fit)
            sklearn.utils.validation._check_n_features(self, rows, reset=is_fit)
        import pyarrow
        return pyarrow.table(_data.stream_of(rows))

    def _labelled(self, rows, y, sample_weight, is_fit):
        import pyarrow
        table, labels = self._columns(rows, is_fit), numpy.asarray(y)
        if table.num_rows != len(labels):
            raise DataError(f"X has {table.num_rows} rows, but y has {len(labels)}")
        table = table.append_column("label", pyarrow.array((labels == self.classes_[-1]).astype(numpy.int8)))
        if sample_weight is not None:
            weights = sklearn.utils.validation._check_sample_weight(sample_weight, table)
            table = table.append_column("sample_weight", pyarrow.array(weights))
        return table

    def fit(self, X, y, sample_weight=None, eval_set=None):
        """Trains on X and y. eval_set: (X, y) that decides which model is kept and when training stops."""
        if y is None:
            raise ValueError("Classifier requires y to be passed, but the target y is None")
        y = sklearn.utils.validation.column_or_1d(y, warn=True)
        sklearn.utils.multiclass.check_classification_targets(y)
        sklearn.utils.validation.assert_all_finite(y)
        self.classes_ = numpy.unique(y)
        if len(self.classes_) > 2:
            raise ValueError(f"Only binary classification is supported. The type of the target is multiclass: "
                             f"{len(self.classes_)} classes.")
        if len(self.classes_) < 2:
            raise ValueError("Classifier can't train when only one class is present: y has 1 class")
        table = self._labelled(X, y, sample_weight, True)
        valid = self._labelled(*eval_set, None, False) if eval_set is not None else None
        if valid is None and self.early_stopping:
            order = numpy.random.default_rng(self.seed).permutation(table.num_rows)
            cut = max(1, int(self.validation_fraction * table.num_rows))
            valid, table = table.take(order[:cut]), table.take(order[cut:])
        fields = None
        if sample_weight is not None:
            fields = _train.default_fields(table.drop_columns(["sample_weight"]))
            fields = fields.rstrip().removesuffix("]") + ' {name: "sample_weight", kind: weight},\n]'
            if valid is not None and "sample_weight" not in valid.column_names:
                import pyarrow
                valid = valid.append_column("sample_weight", pyarrow.array(numpy.ones(valid.num_rows)))
        settings = {whole: getattr(self, name) for name, (whole, default, _) in PARAMETERS.items()
                    if getattr(self, name) is not None and getattr(self, name) != default}
        self.run_ = _train.train(self.config, table, valid, set=settings, fields=fields, progress=False)
        return self

    def predict_proba(self, X):
        sklearn.utils.validation.check_is_fitted(self, "run_")
        scores = self.run_.predict(self._columns(X, False)).astype(numpy.float64)
        return numpy.stack([1 - scores, scores], 1)

    def decision_function(self, X):
        scores = numpy.clip(self.predict_proba(X)[:, 1], 1e-7, 1 - 1e-7)
        return numpy.log(scores / (1 - scores))

    def predict(self, X):
        positive = self.predict_proba(X)[:, 1] > 0.5
        return self.classes_[positive.astype(int)]


_indented = {"width": 116, "initial_indent": "    ", "subsequent_indent": "    "}
Classifier.__doc__ = "\n".join([inspect.cleandoc(Classifier.__doc__), *(f"{name}\n{textwrap.fill(help, **_indented)}"
                                                                       for name, (_, _, help) in PARAMETERS.items())])
