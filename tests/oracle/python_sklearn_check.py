#!/usr/bin/env python3
"""phloem.Classifier is an estimator as scikit-learn wants it: check_estimator, pipelines, searches, copies.

usage: python_sklearn_check.py SOURCE LIBPHLOEM PHLOEM

Skips (77) where pandas, pyarrow or scikit-learn is not importable.
"""
import importlib.util
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import warnings

try:
    import numpy as np
    import pandas
    import pyarrow  # noqa: F401
    import sklearn
    import sklearn.utils.estimator_checks
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

WEIGHTS_AND_ROWS = ("a weight of 2 is not a row twice: training takes batches of a number of rows in a seeded order, so the number "
                    "of rows decides which steps there are")
EXPECTED_FAILURES = {"check_sample_weight_equivalence_on_dense_data": WEIGHTS_AND_ROWS,
                     "check_sample_weight_equivalence_on_sparse_data": WEIGHTS_AND_ROWS}
SMALL = {"epochs": 2, "batch_size": 100, "model": "dnn", "hidden_units": (16,), "report": False, "tensorboard": False}


def check_estimator(phloem):
    """The tiny data of check_estimator, 20 rows and more, need small batches and many epochs to be learnt at all."""
    classifier = phloem.Classifier(**{**SMALL, "epochs": 30, "batch_size": 16, "learning_rate": 0.01})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = sklearn.utils.estimator_checks.check_estimator(classifier, expected_failed_checks=EXPECTED_FAILURES, on_fail=None)
    status = {name: [check["check_name"] for check in found if check["status"] == name]
              for name in ("passed", "xfail", "failed", "skipped")}
    assert not status["failed"], [(check["check_name"], check["exception"]) for check in found if check["status"] == "failed"]
    assert set(status["xfail"]) == set(EXPECTED_FAILURES), status["xfail"]
    assert len(status["passed"]) >= 50 and set(status["skipped"]) <= {"check_array_api_input"}, status
    return len(status["passed"])


def make_frame(rows=2000):
    rng = np.random.default_rng(5)
    frame = pandas.DataFrame({"city": pandas.Categorical.from_codes(rng.integers(0, 9, rows), [f"city {i}" for i in range(9)]),
                              "price": rng.normal(10, 3, rows), "age": rng.normal(40, 9, rows)})
    odds = (frame["price"] - 10) / 3 + frame["city"].cat.codes % 3 - 1
    return frame, np.where(rng.random(rows) < 1 / (1 + np.exp(-odds)), "yes", "no")


def check_pipelines(phloem, X, y):
    """A pipeline over a frame, whose columns keep their names and types, in cross-validation and searches."""
    from sklearn.compose import make_column_transformer
    from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    scale = make_column_transformer((StandardScaler(), ["price", "age"]), remainder="passthrough",
                                    verbose_feature_names_out=False).set_output(transform="pandas")
    pipeline = make_pipeline(scale, phloem.Classifier(**{**SMALL, "epochs": 6, "learning_rate": 0.01, "model": "deepfm",
                                                         "embedding_dim": 4}))
    scores = cross_val_score(pipeline, X, y, cv=3, scoring="roc_auc")
    assert scores.min() > 0.7, scores
    without_city = cross_val_score(pipeline, X.assign(city="one"), y, cv=3, scoring="roc_auc")
    assert scores.mean() > without_city.mean() + 0.02, (scores, without_city)  # ids are learnt as ids
    search = GridSearchCV(pipeline, {"classifier__learning_rate": [1e-6, 1e-2]}, cv=2, scoring="neg_log_loss").fit(X, y)
    assert search.best_params_ == {"classifier__learning_rate": 1e-2}
    assert search.predict(X[:5]).shape == (5,) and set(search.classes_) == {"no", "yes"}
    for backend in (1, 2):  # processes: the trained estimators come back pickled
        found = cross_validate(pipeline, X, y, cv=2, return_estimator=True, n_jobs=backend, scoring="roc_auc")
        alone = found["test_score"] if backend == 1 else alone
        assert np.array_equal(found["test_score"], alone)
        assert all(one.predict_proba(X).shape == (len(X), 2) for one in found["estimator"])


def check_parameters(phloem):
    classifier = phloem.Classifier(**SMALL)
    defaults, given = phloem.Classifier().get_params(), classifier.get_params()
    assert {name for name in given if given[name] != defaults[name]} == set(SMALL)
    assert sklearn.base.clone(classifier).get_params() == given
    assert classifier.set_params(epochs=3) is classifier and classifier.epochs == 3
    for name in given:
        assert f"\n{name}\n" in phloem.Classifier.__doc__ or name == "validation_fraction", name
    for wrong in (lambda: phloem.Classifier(epoch=3), lambda: classifier.set_params(epoch=3)):
        try:
            wrong()
        except (TypeError, ValueError) as problem:
            assert "epoch" in str(problem)
        else:
            raise AssertionError("an unknown parameter was accepted")
    keys = {key["key"]: key for section in phloem.schema() if section["section"] == "train" for key in section["keys"]}
    assert str(defaults["epochs"]) == keys["epochs"]["default"] and keys["patience"]["help"].split(",")[0] in \
        " ".join(phloem.Classifier.__doc__.split())


def check_fits(phloem, X, y):
    """eval_set keeps the best model and stops, weights count, fits of the same rows end in the same bits."""
    long = {**SMALL, "epochs": 50, "learning_rate": 0.1}
    classifier = phloem.Classifier(**long).fit(X, y, eval_set=(X[:500], y[:500]))
    assert classifier.run_.summary["epochs"] < 50
    kept = classifier.run_.evaluate(X[:500].assign(label=(y[:500] == "yes").astype(int)))
    assert kept["num_samples"] == 500 and kept["auc"] == classifier.run_.metrics["valid"]["auc"]
    stopped = phloem.Classifier(**long, early_stopping=True).fit(X, y)
    assert stopped.run_.summary["epochs"] < 50 and stopped.run_.metrics["valid"]
    twice = [phloem.Classifier(**SMALL).fit(X, y).predict_proba(X) for _ in range(2)]
    assert np.array_equal(*twice)
    weighted = phloem.Classifier(**SMALL).fit(X, y, sample_weight=np.where(y == "yes", 5.0, 1.0)).predict_proba(X)
    assert weighted[:, 1].mean() > twice[0][:, 1].mean() + 0.1
    if importlib.util.find_spec("scipy"):
        import scipy.sparse
        ids = scipy.sparse.random(len(X), 500, density=0.01, format="csr", random_state=3)
        wide = phloem.Classifier(**{**SMALL, "early_stopping": True}).fit({"ids": ids}, y, sample_weight=np.ones(len(y)))
        assert wide.run_.model.state_dict()["embedding.ids"].shape == (501, 16)
        assert wide.predict_proba({"ids": ids}).shape == (len(X), 2)
    return classifier


def check_copies(phloem, classifier, X, folder):
    """A fitted estimator is pickled with its model, also for another process, and after its own folder is gone."""
    wanted, packed = classifier.predict_proba(X), pickle.dumps(classifier)
    (folder / "classifier.pickle").write_bytes(packed)
    X.to_pickle(folder / "X.pickle")
    del classifier
    assert np.array_equal(pickle.loads(packed).predict_proba(X), wanted)
    script = """
import pathlib, pickle, numpy, sys
classifier, X = (pickle.loads(pathlib.Path(name).read_bytes()) for name in ("classifier.pickle", "X.pickle"))
numpy.save("scores.npy", pickle.loads(pickle.dumps(classifier)).predict_proba(X))
"""
    subprocess.run([sys.executable, "-c", script], check=True, cwd=folder)
    assert np.array_equal(np.load(folder / "scores.npy"), wanted)
    run = phloem.train({"model": {"kind": "lr"}}, X.assign(label=1).assign(label=lambda frame: frame.index % 2), out=folder / "run")
    assert len(pickle.dumps(run)) < 1000 and np.array_equal(pickle.loads(pickle.dumps(run)).predict(X), run.predict(X))
    assert np.array_equal(pickle.loads(pickle.dumps(run.model)).predict(X), run.predict(X))


def main():
    source, library, program = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])
    bindings = source / "bindings" / "python"
    os.environ.update(PYTHONPATH=str(bindings), PYTHONDONTWRITEBYTECODE="1", PHLOEM_LIBRARY=str(library),
                      PHLOEM_PROGRAM=str(program))
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(bindings))
    import phloem
    X, y = make_frame()
    check_parameters(phloem)
    passed = check_estimator(phloem)
    check_pipelines(phloem, X, y)
    with tempfile.TemporaryDirectory() as folder:
        check_copies(phloem, check_fits(phloem, X, y), X, pathlib.Path(folder))
    print(f"scikit-learn {sklearn.__version__}: {passed} checks passed, {len(EXPECTED_FAILURES)} are expected to fail; pipelines, "
          "searches and copies work")


if __name__ == "__main__":
    main()
