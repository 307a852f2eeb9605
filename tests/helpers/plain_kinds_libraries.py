"""Exercises of sets for nbgrader alone that are about libraries: figures, tables, models."""

from __future__ import annotations

from plain_kinds import ALL, HIDDEN, NONE, Kind

PLOT = (
    "def plot(xs, ys):\n    fig, ax = plt.subplots()\n    ax.plot(xs, ys, 'r-', label='height')\n    ax.set_xlabel('time')\n"
    "    ax.set_title('growth')\n    ax.legend()\n    return ax"
)
FIGURES = {
    "figure": Kind(
        PLOT,
        PLOT.replace("'time'", "'height'"),
        "ax = plot([0, 1], [2, 4])\nassert ax.get_xlabel() == 'time'",
        before="import matplotlib.pyplot as plt",
        also=(
            ("ax = plot([0, 1], [2, 4])\nassert ax.get_title() == 'growth' and ax.get_legend() is not None", ALL),
            (
                "line = plot([0, 1], [2, 4]).lines[0]\nassert list(line.get_ydata()) == [2, 4] and line.get_color() == 'r'",
                ALL,
            ),
            ("import matplotlib\nassert isinstance(plot([0], [1]), matplotlib.axes.Axes)", ALL),
            (
                "fig = plot([0], [1]).figure\nassert len(fig.axes) == 1 and fig.axes[0].get_legend_handles_labels()[1] == ['height']",
                ALL,
            ),
        ),
    ),
    "figure-of-bars": Kind(
        "figure, axes = plt.subplots(1, 2)\nbars = axes[0].bar(['a', 'b'], [1, 3])\naxes[1].hist([1, 1, 2], bins=2)",
        "figure, axes = plt.subplots(1, 2)\nbars = axes[0].bar(['a', 'b'], [1, 2])\naxes[1].hist([1, 1, 2], bins=2)",
        "assert [b.get_height() for b in bars] == [1, 3]",
        also=(("assert len(axes) == 2 and len(axes[1].patches) == 2", ALL),),
    ),
    "current-figure": Kind(
        "plt.figure()\nplt.plot([1, 2])\nplt.ylabel('height')\ndrawn = plt.gca()",
        "plt.figure()\nplt.plot([1, 2])\ndrawn = plt.gca()",
        "assert drawn.get_ylabel() == 'height'",
    ),
}
FRAME = (
    "import pandas as pd\nsales = pd.DataFrame({'shop': ['a', 'b', 'a'], 'sold': [1, 5, 2], 'price': [2.0, 1.5, 3.0]})"
)
TABLES = {
    "table-column": Kind(
        "sales['total'] = sales['sold'] * sales['price']",
        "sales['total'] = sales['sold'] + sales['price']",
        "assert sales['total'].tolist() == [2.0, 7.5, 6.0]",
        before=FRAME,
        also=(
            ("assert list(sales.columns) == ['shop', 'sold', 'price', 'total'] and sales.shape == (3, 4)", ALL),
            ("assert isinstance(sales, pd.DataFrame) and sales['total'].dtype == float", ALL),
            (HIDDEN.format("assert abs(sales.total.mean() - 15.5 / 3) < 1e-9"), NONE),
        ),
    ),
    "table-group": Kind(
        "def by_shop(frame):\n    return frame.groupby('shop')['sold'].sum()",
        "def by_shop(frame):\n    return frame.groupby('shop')['sold'].mean()",
        "found = by_shop(pd.DataFrame({'shop': ['x', 'y', 'x'], 'sold': [1, 2, 4]}))\nassert found['x'] == 5 and found.loc['y'] == 2",
        also=(
            (
                "given = pd.DataFrame({'shop': ['x', 'x'], 'sold': [1, 3]})\nwanted = pd.Series([4], index=pd.Index(['x'], name='shop'), name='sold')\n"
                "pd.testing.assert_series_equal(by_shop(given), wanted)",
                NONE,
            ),
            ("assert by_shop(pd.DataFrame({'shop': ['q'], 'sold': [1]})).index.tolist() == ['q']", ALL),
        ),
    ),
    "table-filter": Kind(
        "def cheap(frame, limit):\n    return frame[frame.price < limit].reset_index(drop=True)",
        "def cheap(frame, limit):\n    return frame[frame.price < limit]",
        "wanted = pd.DataFrame({'name': ['c'], 'price': [1.0]})\n"
        "pd.testing.assert_frame_equal(cheap(pd.DataFrame({'name': ['b', 'c'], 'price': [3.0, 1.0]}), 2), wanted)",
        also=(
            ("assert len(cheap(pd.DataFrame({'name': ['b'], 'price': [3.0]}), 2)) == 0", ALL),
            (
                "assert cheap(pd.DataFrame({'name': ['b'], 'price': [1.0]}), 2).equals(pd.DataFrame({'name': ['b'], 'price': [1.0]}))",
                ALL,
            ),
        ),
    ),
    "table-of-a-file": Kind(
        "measures = pd.read_csv('measures.csv', index_col='name')",
        "measures = pd.read_csv('measures.csv')",
        "assert measures.loc['bee', 'length'] == 4",
        also=(
            ("assert measures['length'].max() == 30", ALL),
            ("assert measures.equals(pd.read_csv('measures.csv').set_index('name'))", NONE),
        ),
    ),
    "table-changed-in-place": Kind(
        "def tidy(frame):\n    frame.columns = [c.lower() for c in frame.columns]\n    frame['twice'] = 2 * frame['a']",
        "def tidy(frame):\n    frame = frame.rename(columns=str.lower)\n    frame['twice'] = 2 * frame['a']",
        "given = pd.DataFrame({'A': [1.0, 2.0]})\ntidy(given)\n"
        "assert list(given.columns) == ['a', 'twice'] and given['twice'].tolist() == [2.0, 4.0]",
    ),
    "table-missing": Kind(
        "def filled(series):\n    return series.fillna(series.median())",
        "def filled(series):\n    return series.fillna(0)",
        "import numpy as np\nassert filled(pd.Series([1.0, np.nan, 3.0])).tolist() == [1.0, 2.0, 3.0]",
        also=(("assert filled(pd.Series([1.0, 2.0])).isna().sum() == 0", ALL),),
    ),
}
POINTS = "import numpy as np\nX = np.arange(12.0).reshape(6, 2)\ny = 3 * X[:, 0] + 1"
MODELS = {
    "model-linear": Kind(
        "from sklearn.linear_model import LinearRegression\nmodel = LinearRegression().fit(X, y)",
        "from sklearn.linear_model import LinearRegression\nmodel = LinearRegression(fit_intercept=False).fit(X[:, :1], y)",
        "assert abs(model.predict(np.array([[20.0, 21.0]]))[0] - 61) < 1e-6",
        before=POINTS,
        also=(
            ("from sklearn.linear_model import LinearRegression\nassert isinstance(model, LinearRegression)", ALL),
            ("assert hasattr(model, 'coef_') and model.n_features_in_ == 2", NONE),
            ("assert model.score(X, y) > 0.99", NONE),
        ),
    ),
    "model-split": Kind(
        "from sklearn.model_selection import train_test_split\n\ndef split(a, b):\n    return train_test_split(a, b, test_size=0.5, random_state=0)",
        "def split(a, b):\n    return a[:3], a[3:], b[:3], b[3:]",
        "parts = split(X, y)\nassert [p.shape for p in parts] == [(3, 2), (3, 2), (3,), (3,)]",
        points=(4, 4, 0),
        also=(
            (
                "from sklearn.model_selection import train_test_split\n"
                "assert np.array_equal(split(X, y)[0], train_test_split(X, y, test_size=0.5, random_state=0)[0])",
                NONE,
            ),
        ),
    ),
    "model-pipeline": Kind(
        "from sklearn.pipeline import make_pipeline\nfrom sklearn.preprocessing import StandardScaler\nfrom sklearn.neighbors import KNeighborsClassifier\n"
        "pipe = make_pipeline(StandardScaler(), KNeighborsClassifier(1)).fit(X, y > 10)",
        "from sklearn.pipeline import make_pipeline\nfrom sklearn.preprocessing import StandardScaler\nfrom sklearn.neighbors import KNeighborsClassifier\n"
        "pipe = make_pipeline(StandardScaler(), KNeighborsClassifier(6)).fit(X, y > 10)",
        "assert (pipe.predict(X) == (y > 10)).all()",
        also=(
            ("assert [name for name, _ in pipe.steps] == ['standardscaler', 'kneighborsclassifier']", ALL),
            ("assert pipe.steps[-1][1].get_params()['n_neighbors'] == 1", NONE),
            ("from sklearn.metrics import accuracy_score\nassert accuracy_score(y > 10, pipe.predict(X)) == 1", NONE),
        ),
    ),
    "model-scaled": Kind(
        "def scaled(values):\n    return (values - values.mean(axis=0)) / values.std(axis=0)",
        "def scaled(values):\n    return values - values.mean(axis=0)",
        "from sklearn.preprocessing import StandardScaler\nassert np.allclose(scaled(X), StandardScaler().fit_transform(X))",
    ),
}
