# ruff: noqa: B905
"""Right variants and misconceptions of ps5-normalization.

Each misconception carries the sentence that its author reads in the feedback.
"""

from typing import TYPE_CHECKING

import numpy as np

from autograder.catalogue import edited, right, survivor, wrong

if TYPE_CHECKING:  # the names of the notebook, which are there when this is read
    from the_notebook import layer_norm

# ----------------------------------------------------------------------------------- exercise 1: layer_norm


@wrong("layer_norm", says="Your variance is the unbiased one, divided by d - 1; layer norm divides by d.")
def layer_unbiased_variance(x, gamma, beta, eps=1e-5):
    deviation = x - x.mean(axis=-1, keepdims=True)
    with np.errstate(invalid="ignore"):
        variance = (deviation**2).sum(axis=-1, keepdims=True) / np.float64(x.shape[-1] - 1)
    return gamma * deviation / np.sqrt(variance + eps) + beta


edited(
    "layer_norm",
    "layer_eps_outside_the_root",
    "np.sqrt(variance + eps)",
    "(np.sqrt(variance) + eps)",
    says="Your eps is added to the root; it belongs inside, added to the variance.",
)
edited(
    "layer_norm",
    "layer_eps_ignored",
    "np.sqrt(variance + eps)",
    "np.sqrt(variance + 1e-5)",
    says="Your eps is always 1e-5; use the one that is given.",
)
edited(
    "layer_norm",
    "layer_eps_as_a_lower_bound",
    "np.sqrt(variance + eps)",
    "np.sqrt(np.maximum(variance, eps))",
    says="Your eps is a lower bound of the variance; it is added to the variance, however large that is.",
)
edited(
    "layer_norm",
    "layer_mean_absolute_deviation",
    "np.sqrt(variance + eps)",
    "(np.abs(deviation).mean(axis=-1, keepdims=True) + eps)",
    says="You divide by the mean of the absolute deviations; the root of the mean of their squares is needed.",
)
edited(
    "layer_norm",
    "layer_divided_by_the_variance",
    "np.sqrt(variance + eps)",
    "(variance + eps)",
    says="You divide by the variance; its root is needed, so that the variance becomes 1.",
)
edited(
    "layer_norm",
    "layer_without_gamma",
    "gamma * deviation",
    "deviation",
    says="gamma has no influence in your function; it multiplies the normalised entries.",
)
edited(
    "layer_norm",
    "layer_without_beta",
    " + beta",
    "",
    says="beta has no influence in your function; it is added at the end.",
)
edited(
    "layer_norm",
    "layer_beta_before_gamma",
    " + beta",
    " + gamma * beta",
    says="You add beta before you multiply by gamma; it is the other way round.",
)
edited(
    "layer_norm",
    "layer_gamma_and_beta_swapped",
    "gamma * deviation / np.sqrt(variance + eps) + beta",
    "beta * deviation / np.sqrt(variance + eps) + gamma",
    says="gamma and beta have changed places: gamma multiplies, beta is added.",
)
edited(
    "layer_norm",
    "layer_mean_not_subtracted",
    "gamma * deviation",
    "gamma * x",
    says="You divide by the deviation but do not subtract the mean from what is divided.",
)
edited(
    "layer_norm",
    "layer_square_instead_of_variance",
    "(deviation**2)",
    "(x**2)",
    says="You divide by the root of the mean square of x itself; the variance takes deviations from the mean.",
)


@wrong(
    "layer_norm",
    says="Your mean and variance are taken over the first axis (over the tokens or the batch); each token has its own, "
    "over its width.",
)
def layer_over_the_first_axis(x, gamma, beta, eps=1e-5):
    return gamma * (x - x.mean(axis=0)) / np.sqrt(x.var(axis=0) + eps) + beta


@wrong("layer_norm", says="You take one mean and variance for the whole array; each token has its own.")
def layer_over_everything(x, gamma, beta, eps=1e-5):
    return gamma * (x - x.mean()) / np.sqrt(x.var() + eps) + beta


@wrong("layer_norm", says="Your mean is taken over axis 1. That is the width of a table only; count from the end: -1.")
def layer_over_axis_one(x, gamma, beta, eps=1e-5):
    mean, variance = x.mean(axis=1, keepdims=True), x.var(axis=1, keepdims=True)
    return gamma * (x - mean) / np.sqrt(variance + eps) + beta


@wrong(
    "layer_norm",
    says="Your mean and variance are taken over tokens and width together (the last two axes); each token has its own.",
)
def layer_over_tokens_and_width(x, gamma, beta, eps=1e-5):
    axes = (-2, -1) if x.ndim > 1 else -1
    mean, variance = x.mean(axis=axes, keepdims=True), x.var(axis=axes, keepdims=True)
    return gamma * (x - mean) / np.sqrt(variance + eps) + beta


@wrong("layer_norm", says="There is no eps in your function, so a token whose entries are all equal becomes NaN.")
def layer_without_eps(x, gamma, beta, eps=1e-5):
    with np.errstate(divide="ignore", invalid="ignore"):
        return gamma * (x - x.mean(axis=-1, keepdims=True)) / x.std(axis=-1, keepdims=True) + beta


@wrong("layer_norm", says="Your function subtracts in place (-=), so the caller's array is changed; work on a new one.")
def layer_changes_its_input(x, gamma, beta, eps=1e-5):
    x -= x.mean(axis=-1, keepdims=True)
    return gamma * x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + eps) + beta


@wrong(
    "layer_norm",
    says="With a batch axis your mean and variance are taken over tokens and width together; each token has its "
    "own, however many axes there are.",
)
def layer_over_tokens_and_width_in_batches(x, gamma, beta, eps=1e-05):
    axes = (-2, -1) if x.ndim > 2 else (-1,)
    mu = x.mean(axis=axes, keepdims=True)
    var = ((x - mu) ** 2).mean(axis=axes, keepdims=True)
    return gamma * (x - mu) / np.sqrt(var + eps) + beta


@wrong(
    "layer_norm",
    says="A token of width 1 is not normalised in your function; its only number is its own mean, so it becomes beta.",
)
def layer_width_one_left_alone(x, gamma, beta, eps=1e-05):
    if x.shape[-1] == 1:
        return x * gamma + beta
    mu = np.mean(x, axis=-1, keepdims=True)
    var = np.var(x, axis=-1, keepdims=True)
    return (x - mu) / np.sqrt(var + eps) * gamma + beta


@wrong(
    "layer_norm",
    says="Tokens whose variance is below eps become beta in your function; eps is only added to the variance, and "
    "small differences stay.",
)
def layer_small_variance_is_none(x, gamma, beta, eps=1e-05):
    mu = x.mean(axis=-1, keepdims=True)
    var = x.var(axis=-1, keepdims=True)
    normalised = (x - mu) / np.sqrt(var + eps)
    normalised = np.where(var < eps, 0.0, normalised)
    return gamma * normalised + beta


@wrong("layer_norm", says="Your variance is the unbiased one, divided by d - 1; layer norm divides by d.")
def layer_unbiased_but_for_one(x, gamma, beta, eps=1e-05):
    mu = x.mean(axis=-1, keepdims=True)
    d = x.shape[-1]
    var = ((x - mu) ** 2).sum(axis=-1, keepdims=True) / max(d - 1, 1)
    return (x - mu) / np.sqrt(var + eps) * gamma + beta


@wrong(
    "layer_norm",
    says="Two things: you multiply by 1 + gamma, where it is gamma itself; and you add beta before you multiply.",
)
def layer_gamma_plus_one_and_beta_first(x, gamma, beta, eps=1e-05):
    mu = x.mean(axis=-1, keepdims=True)
    var = x.var(axis=-1, keepdims=True)
    return (1 + gamma) * ((x - mu) / np.sqrt(var + eps) + beta)


@right("layer_norm")
def layer_by_mean_of_squares(x, gamma, beta, eps=1e-5):
    mean = np.mean(x, -1)[..., None]
    variance = np.mean(x * x, -1)[..., None] - mean**2
    return (x - mean) * (gamma / np.sqrt(variance + eps)) + beta


@right("layer_norm")
def layer_by_loops(x, gamma, beta, eps=1e-5):
    rows = []
    for row in x.reshape(-1, x.shape[-1]):
        mean = sum(row) / len(row)
        variance = sum((entry - mean) ** 2 for entry in row) / len(row)
        rows.append([g * (entry - mean) / (variance + eps) ** 0.5 + b for entry, g, b in zip(row, gamma, beta)])
    return np.array(rows).reshape(x.shape)


@right("layer_norm")
def layer_by_torch(x, gamma, beta, eps=1e-5):
    import torch

    x, gamma, beta = (torch.tensor(np.ascontiguousarray(array)) for array in (x, gamma, beta))
    return torch.nn.functional.layer_norm(x, gamma.shape, gamma, beta, eps).numpy()


@right("layer_norm")
def layer_by_einsum(x, gamma, beta, eps=1e-5):
    d = x.shape[-1]
    centred = x - np.einsum("...i->...", x)[..., np.newaxis] / d
    variance = np.einsum("...i,...i->...", centred, centred) / d
    return np.einsum("...i,...,i->...i", centred, (variance + eps) ** -0.5, gamma) + beta


# ----------------------------------------------------------------------------------- exercise 2: batch_norm


@wrong(
    "batch_norm",
    says="You normalise the batch with the unbiased variance; that one goes into the running variance only.",
)
def batch_unbiased_normalisation(x, gamma, beta, running_mean, running_var, training, momentum=0.1, eps=1e-5):
    if training:
        mean, var = x.mean(axis=0), x.var(axis=0, ddof=1)
        running_mean = (1 - momentum) * running_mean + momentum * mean
        running_var = (1 - momentum) * running_var + momentum * x.var(axis=0, ddof=1)
    else:
        mean, var = running_mean, running_var
    return gamma * (x - mean) / np.sqrt(var + eps) + beta, running_mean, running_var


edited(
    "batch_norm",
    "batch_biased_running_variance",
    "x.var(axis=0, ddof=1)",
    "var",
    says="Your running variance takes the biased variance of the batch; it takes the unbiased one, divided by N - 1.",
)


@wrong(
    "batch_norm", says="Your momentum is the share of the old values; here it is the share of the batch, as in PyTorch."
)
def batch_momentum_the_other_way_round(x, gamma, beta, running_mean, running_var, training, momentum=0.1, eps=1e-5):
    if training:
        mean, var = x.mean(axis=0), x.var(axis=0)
        running_mean = momentum * running_mean + (1 - momentum) * mean
        running_var = momentum * running_var + (1 - momentum) * x.var(axis=0, ddof=1)
    else:
        mean, var = running_mean, running_var
    return gamma * (x - mean) / np.sqrt(var + eps) + beta, running_mean, running_var


@wrong("batch_norm", says="Your momentum is always 0.1; use the one that is given.")
def batch_momentum_ignored(x, gamma, beta, running_mean, running_var, training, momentum=0.1, eps=1e-5):
    momentum = 0.1
    if training:
        mean, var = x.mean(axis=0), x.var(axis=0)
        running_mean = (1 - momentum) * running_mean + momentum * mean
        running_var = (1 - momentum) * running_var + momentum * x.var(axis=0, ddof=1)
    else:
        mean, var = running_mean, running_var
    return gamma * (x - mean) / np.sqrt(var + eps) + beta, running_mean, running_var


@wrong(
    "batch_norm",
    says="In training you normalise with the running values; the batch is normalised with its own mean and variance.",
)
def batch_running_values_in_training(x, gamma, beta, running_mean, running_var, training, momentum=0.1, eps=1e-5):
    if training:
        mean, var = x.mean(axis=0), x.var(axis=0)
        running_mean = (1 - momentum) * running_mean + momentum * mean
        running_var = (1 - momentum) * running_var + momentum * x.var(axis=0, ddof=1)
    else:
        mean, var = running_mean, running_var
    mean, var = running_mean, running_var
    return gamma * (x - mean) / np.sqrt(var + eps) + beta, running_mean, running_var


edited(
    "batch_norm",
    "batch_own_values_in_evaluation",
    "mean, var = running_mean, running_var",
    "mean, var = x.mean(axis=0), x.var(axis=0)",
    says="In evaluation you still use the mean and variance of the batch; there the running values count.",
)


@wrong("batch_norm", says="Training and evaluation have changed places in your function.")
def batch_training_and_evaluation_swapped(x, gamma, beta, running_mean, running_var, training, momentum=0.1, eps=1e-5):
    if not training:
        mean, var = x.mean(axis=0), x.var(axis=0)
        running_mean = (1 - momentum) * running_mean + momentum * mean
        running_var = (1 - momentum) * running_var + momentum * x.var(axis=0, ddof=1)
    else:
        mean, var = running_mean, running_var
    return gamma * (x - mean) / np.sqrt(var + eps) + beta, running_mean, running_var


@wrong("batch_norm", says="You update the running values in evaluation as well; there they come back as they were.")
def batch_updates_in_evaluation(x, gamma, beta, running_mean, running_var, training, momentum=0.1, eps=1e-5):
    if training:
        mean, var = x.mean(axis=0), x.var(axis=0)
        running_mean = (1 - momentum) * running_mean + momentum * mean
        running_var = (1 - momentum) * running_var + momentum * x.var(axis=0, ddof=1)
    else:
        mean, var = running_mean, running_var
        running_mean = 0.9 * running_mean + 0.1 * x.mean(axis=0)
    return gamma * (x - mean) / np.sqrt(var + eps) + beta, running_mean, running_var


@wrong("batch_norm", says="You return the old running values after training; the batch should have its share in them.")
def batch_running_values_not_updated(x, gamma, beta, running_mean, running_var, training, momentum=0.1, eps=1e-5):
    if training:
        mean, var = x.mean(axis=0), x.var(axis=0)
    else:
        mean, var = running_mean, running_var
    return gamma * (x - mean) / np.sqrt(var + eps) + beta, running_mean, running_var


edited(
    "batch_norm",
    "batch_running_sum",
    "(1 - momentum) * running_mean + momentum * mean",
    "running_mean + momentum * mean",
    says="Your running mean grows with every batch: the old value should be reduced by the share that the batch gets.",
)
edited(
    "batch_norm",
    "batch_running_deviation",
    "x.var(axis=0, ddof=1)",
    "x.std(axis=0, ddof=1)",
    says="Your running variance collects standard deviations; it should collect variances.",
)
edited(
    "batch_norm",
    "batch_eps_outside_the_root",
    "np.sqrt(var + eps)",
    "(np.sqrt(var) + eps)",
    says="Your eps is added to the root; it belongs inside, added to the variance.",
)
edited(
    "batch_norm",
    "batch_eps_ignored",
    "np.sqrt(var + eps)",
    "np.sqrt(var + 1e-5)",
    says="Your eps is always 1e-5; use the one that is given.",
)
edited(
    "batch_norm",
    "batch_without_gamma_and_beta",
    "gamma * (x - mean) / np.sqrt(var + eps) + beta",
    "(x - mean) / np.sqrt(var + eps)",
    says="gamma and beta have no influence in your function; the first multiplies the "
    "normalised columns, the second is added.",
)
edited(
    "batch_norm",
    "batch_returns_y_alone",
    "+ beta, running_mean, running_var",
    "+ beta",
    says="You return y alone; the running values are asked for, too: three things in all.",
)
edited(
    "batch_norm",
    "batch_returns_the_values_of_the_batch",
    "+ beta, running_mean, running_var",
    "+ beta, mean, var",
    says="You return the mean and variance that were used; asked are the running values.",
)


@wrong(
    "batch_norm",
    says="Your mean and variance are taken over the features of each example, as in layer norm; batch norm takes "
    "them over the batch, for each column.",
)
def batch_over_the_features(x, gamma, beta, running_mean, running_var, training, momentum=0.1, eps=1e-5):
    if training:
        mean, var = x.mean(axis=1, keepdims=True), x.var(axis=1, keepdims=True)
        running_mean = (1 - momentum) * running_mean + momentum * x.mean(axis=0)
        running_var = (1 - momentum) * running_var + momentum * x.var(axis=0, ddof=1)
    else:
        mean, var = running_mean, running_var
    return gamma * (x - mean) / np.sqrt(var + eps) + beta, running_mean, running_var


@wrong(
    "batch_norm",
    says="Your function changes the running values that came in (*= or +=); make new arrays of them.",
)
def batch_changes_the_running_values(x, gamma, beta, running_mean, running_var, training, momentum=0.1, eps=1e-5):
    mean, var = running_mean, running_var
    if training:
        mean, var = x.mean(axis=0), x.var(axis=0)
        running_mean *= 1 - momentum
        running_mean += momentum * mean
        running_var *= 1 - momentum
        running_var += momentum * x.var(axis=0, ddof=1)
    return gamma * (x - mean) / np.sqrt(var + eps) + beta, running_mean, running_var


@wrong(
    "batch_norm",
    says="In evaluation there is no eps in your function, so a running variance of 0 divides by 0; it is added "
    "there, too.",
)
def batch_eps_in_training_only(x, gamma, beta, running_mean, running_var, training, momentum=0.1, eps=1e-05):
    if training:
        mean, var = (x.mean(axis=0), x.var(axis=0))
        y = gamma * (x - mean) / np.sqrt(var + eps) + beta
        new_mean = (1 - momentum) * running_mean + momentum * mean
        new_var = (1 - momentum) * running_var + momentum * x.var(axis=0, ddof=1)
        return (y, new_mean, new_var)
    y = gamma * (x - running_mean) / np.sqrt(running_var) + beta
    return (y, running_mean.copy(), running_var.copy())


@wrong(
    "batch_norm",
    says="In evaluation gamma and beta have no influence in your function; they stretch and move there as in training.",
)
def batch_evaluation_without_gamma_and_beta(
    x, gamma, beta, running_mean, running_var, training, momentum=0.1, eps=1e-05
):
    if not training:
        return ((x - running_mean) / np.sqrt(running_var + eps), running_mean.copy(), running_var.copy())
    mean = x.mean(axis=0)
    var = ((x - mean) ** 2).mean(axis=0)
    y = gamma * (x - mean) / np.sqrt(var + eps) + beta
    n = len(x)
    running_mean = (1 - momentum) * running_mean + momentum * mean
    running_var = (1 - momentum) * running_var + momentum * var * n / (n - 1)
    return (y, running_mean, running_var)


@wrong("batch_norm", says="You add beta before you multiply by gamma; it is the other way round.")
def batch_beta_before_gamma(x, gamma, beta, running_mean, running_var, training, momentum=0.1, eps=1e-05):
    if training:
        mean, var = (x.mean(0), x.var(0))
        running_mean = running_mean * (1 - momentum) + mean * momentum
        running_var = running_var * (1 - momentum) + x.var(0, ddof=1) * momentum
    else:
        mean, var = (running_mean, running_var)
    normalised = (x - mean) / np.sqrt(var + eps)
    return ((normalised + beta) * gamma, np.array(running_mean), np.array(running_var))


@wrong(
    "batch_norm",
    says="In evaluation a single example becomes beta in your function; it is normalised by the running values "
    "like any other.",
)
def batch_single_example_becomes_beta(x, gamma, beta, running_mean, running_var, training, momentum=0.1, eps=1e-05):
    if training:
        mean = x.mean(axis=0)
        var = x.var(axis=0)
        new_mean = (1 - momentum) * running_mean + momentum * mean
        new_var = (1 - momentum) * running_var + momentum * x.var(axis=0, ddof=1)
    else:
        mean, var = (running_mean, running_var)
        new_mean, new_var = (running_mean.copy(), running_var.copy())
        if len(x) == 1:
            return (np.zeros_like(x) * gamma + beta, new_mean, new_var)
    return (gamma * (x - mean) / np.sqrt(var + eps) + beta, new_mean, new_var)


@wrong(
    "batch_norm",
    says="Two things: your running variance takes the biased variance of the batch; and in evaluation you divide "
    "by the variance, not by its root.",
)
def batch_biased_and_divided_by_the_variance(
    x, gamma, beta, running_mean, running_var, training, momentum=0.1, eps=1e-05
):
    if training:
        mean, var = (x.mean(axis=0), x.var(axis=0))
        y = gamma * (x - mean) / np.sqrt(var + eps) + beta
        return (y, (1 - momentum) * running_mean + momentum * mean, (1 - momentum) * running_var + momentum * var)
    y = gamma * (x - running_mean) / (running_var + eps) + beta
    return (y, running_mean.copy(), running_var.copy())


@wrong("batch_norm", says="You update the running values in evaluation as well; there they come back as they were.")
def batch_updates_in_evaluation_for_one_example_too(
    x, gamma, beta, running_mean, running_var, training, momentum=0.1, eps=1e-05
):
    batch_mean, batch_var = (x.mean(axis=0), x.var(axis=0))
    unbiased = batch_var * len(x) / max(len(x) - 1, 1)
    mean, var = (batch_mean, batch_var) if training else (running_mean, running_var)
    y = gamma * (x - mean) / np.sqrt(var + eps) + beta
    new_mean = (1 - momentum) * running_mean + momentum * batch_mean
    new_var = (1 - momentum) * running_var + momentum * unbiased
    return (y, new_mean, new_var)


@right("batch_norm")
def batch_by_torch(x, gamma, beta, running_mean, running_var, training, momentum=0.1, eps=1e-5):
    import torch

    x, gamma, beta, mean, var = (torch.tensor(np.array(a)) for a in (x, gamma, beta, running_mean, running_var))
    y = torch.nn.functional.batch_norm(x, mean, var, gamma, beta, training, momentum, eps)
    return y, mean, var


@right("batch_norm")
def batch_by_columns(x, gamma, beta, running_mean, running_var, training, momentum=0.1, eps=1e-5):
    N, d = x.shape
    y, means, variances = np.zeros((N, d)), running_mean.copy(), running_var.copy()
    for j in range(d):
        mean, variance = running_mean[j], running_var[j]
        if training:
            mean = sum(x[:, j]) / N
            variance = sum((x[:, j] - mean) ** 2) / N
            means[j] += momentum * (mean - running_mean[j])
            variances[j] += momentum * (variance * N / (N - 1) - running_var[j])
        y[:, j] = (x[:, j] - mean) / (variance + eps) ** 0.5 * gamma[j] + beta[j]
    return [y, means.tolist(), variances]


@right("batch_norm")
def batch_as_scale_and_shift(x, gamma, beta, running_mean, running_var, training, momentum=0.1, eps=1e-5):
    x = np.array(x, dtype=np.float64)
    mean = np.mean(x, 0) if training else running_mean
    var = np.mean((x - mean) ** 2, 0) if training else running_var
    scale = gamma / np.sqrt(var + eps)
    x *= scale
    x += beta - mean * scale
    if training:
        unbiased = var * len(x) / (len(x) - 1)
        running_mean = running_mean - momentum * (running_mean - mean)
        running_var = running_var - momentum * (running_var - unbiased)
    return x, running_mean, running_var


# ------------------------------------------------------------------------------------- exercise 3: rms_norm

edited(
    "rms_norm",
    "rms_of_deviations",
    "gamma * x / np.sqrt((x**2)",
    "gamma * x / np.sqrt(((x - x.mean(axis=-1, keepdims=True)) ** 2)",
    says="You divide by the standard deviation; RMS norm takes the mean square of x itself.",
)
edited(
    "rms_norm",
    "rms_with_mean_subtracted",
    "gamma * x / np",
    "gamma * (x - x.mean(axis=-1, keepdims=True)) / np",
    says="You subtract the mean, as layer norm does; RMS norm leaves it where it is.",
)


@wrong(
    "rms_norm",
    says="You subtract the mean first, which makes it layer norm without beta; RMS norm leaves the mean where it is.",
)
def rms_of_centred_tokens(x, gamma, eps=1e-6):
    x = x - x.mean(axis=-1, keepdims=True)
    return gamma * x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + eps)


edited(
    "rms_norm",
    "rms_eps_outside_the_root",
    "np.sqrt((x**2).mean(axis=-1, keepdims=True) + eps)",
    "(np.sqrt((x**2).mean(axis=-1, keepdims=True)) + eps)",
    says="Your eps is added to the root; it belongs inside, added to the mean square.",
)
edited(
    "rms_norm",
    "rms_sum_instead_of_mean",
    "(x**2).mean(",
    "(x**2).sum(",
    says="You divide by the length of the vector (the root of the sum of squares); the mean of the squares is needed.",
)
edited(
    "rms_norm",
    "rms_without_root",
    "np.sqrt((x**2).mean(axis=-1, keepdims=True) + eps)",
    "((x**2).mean(axis=-1, keepdims=True) + eps)",
    says="You divide by the mean square; its root is needed.",
)
edited(
    "rms_norm",
    "rms_without_gamma",
    "gamma * x",
    "x",
    says="gamma has no influence in your function; it multiplies the normalised entries.",
)
edited(
    "rms_norm",
    "rms_gamma_plus_one",
    "gamma * x",
    "(1 + gamma) * x",
    says="You multiply by 1 + gamma, as some models do; here it is gamma itself.",
)
edited(
    "rms_norm",
    "rms_eps_ignored",
    "+ eps)",
    "+ 1e-6)",
    says="Your eps is always 1e-6; use the one that is given.",
)
edited(
    "rms_norm",
    "rms_default_eps_of_layer_norm",
    "eps=1e-6",
    "eps=1e-5",
    says="Your default eps is that of layer norm; here it is 1e-6.",
)


@wrong("rms_norm", says="Your mean square is taken over the first axis; each token has its own, over its width.")
def rms_over_the_first_axis(x, gamma, eps=1e-6):
    return gamma * x / np.sqrt((x**2).mean(axis=0) + eps)


@wrong("rms_norm", says="You take one mean square for the whole array; each token has its own.")
def rms_over_everything(x, gamma, eps=1e-6):
    return gamma * x / np.sqrt((x**2).mean() + eps)


@wrong("rms_norm", says="There is no eps in your function, so a token of zeros becomes NaN.")
def rms_without_eps(x, gamma, eps=1e-6):
    with np.errstate(divide="ignore", invalid="ignore"):
        return gamma * x / np.sqrt((x**2).mean(axis=-1, keepdims=True))


@wrong("rms_norm", says="You divide by the mean of the absolute values; the root of the mean square is another number.")
def rms_mean_of_absolute_values(x, gamma, eps=1e-6):
    return gamma * x / (np.abs(x).mean(axis=-1, keepdims=True) + eps)


@wrong(
    "rms_norm", says="Your mean square is taken over axis 1. That is the width of a table only; count from the end: -1."
)
def rms_over_axis_one(x, gamma, eps=1e-06):
    axis = 1 if x.ndim > 1 else 0
    mean_square = np.mean(x**2, axis=axis, keepdims=True)
    return gamma * x / np.sqrt(mean_square + eps)


@wrong(
    "rms_norm", says="You average over the entries that are not 0; zeros are numbers like others and count in the mean."
)
def rms_of_what_is_not_zero(x, gamma, eps=1e-06):
    present = np.maximum(np.count_nonzero(x, axis=-1, keepdims=True), 1)
    mean_square = (x**2).sum(axis=-1, keepdims=True) / present
    return gamma * x / np.sqrt(mean_square + eps)


@wrong("rms_norm", says="You add eps to the sum of the squares; it is added to their mean, so yours is divided by d.")
def rms_eps_before_the_mean(x, gamma, eps=1e-06):
    d = x.shape[-1]
    total = np.sum(np.square(x), axis=-1, keepdims=True) + eps
    return gamma * x * np.sqrt(d / total)


@wrong("rms_norm", says="You multiply by gamma first and normalise then; normalise x, and stretch it afterwards.")
def rms_after_gamma(x, gamma, eps=1e-06):
    z = gamma * x
    return z / np.sqrt(np.mean(z**2, axis=-1, keepdims=True) + eps)


@wrong(
    "rms_norm",
    says="In batches your mean square is taken over tokens and width together; each token has its own, however "
    "many axes there are.",
)
def rms_over_tokens_and_width_in_batches(x, gamma, eps=1e-06):
    ms = (x * x).mean(axis=-1, keepdims=True) if x.ndim <= 2 else (x * x).mean(axis=(-2, -1), keepdims=True)
    return x / np.sqrt(ms + eps) * gamma


@wrong(
    "rms_norm",
    says="Two things: you subtract the mean, which RMS norm leaves where it is; and your eps is added to the root,"
    " where it belongs inside.",
)
def rms_centred_with_eps_outside(x, gamma, eps=1e-06):
    centred = x - x.mean(axis=-1, keepdims=True)
    rms = np.sqrt((x**2).mean(axis=-1, keepdims=True))
    return gamma * centred / (rms + eps)


@right("rms_norm")
def rms_by_norm(x, gamma, eps=1e-6):
    square = np.linalg.norm(x, axis=-1, keepdims=True) ** 2 / x.shape[-1]
    return x * (square + eps) ** -0.5 * gamma


@right("rms_norm")
def rms_by_torch(x, gamma, eps=1e-6):
    import torch

    x, gamma = torch.tensor(np.ascontiguousarray(x)), torch.tensor(np.ascontiguousarray(gamma))
    return torch.nn.functional.rms_norm(x, gamma.shape, gamma, eps)


@right("rms_norm")
def rms_by_loops(x, gamma, eps=1e-6):
    result = np.zeros(x.shape)
    for place in np.ndindex(x.shape[:-1]):
        root = (sum(float(entry) ** 2 for entry in x[place]) / x.shape[-1] + eps) ** 0.5
        result[place] = [float(g) * float(entry) / root for g, entry in zip(gamma, x[place])]
    return result


# -------------------------------------------------------------------------- exercise 4: layer_norm_backward

edited(
    "layer_norm_backward",
    "backward_statistics_taken_as_constant",
    "(g - through_mean - through_variance) / root",
    "g / root",
    says="Your dx treats mean and variance as constants; but x acts on both, and so on all outputs of its token.",
)
edited(
    "layer_norm_backward",
    "backward_mean_forgotten",
    "(g - through_mean - through_variance) / root",
    "(g - through_variance) / root",
    says="The way through the mean is missing in your dx: its rows do not sum to 0.",
)
edited(
    "layer_norm_backward",
    "backward_variance_forgotten",
    "(g - through_mean - through_variance) / root",
    "(g - through_mean) / root",
    says="The way through the variance is missing in your dx: the part of g along the normalised token remains.",
)
edited(
    "layer_norm_backward",
    "backward_wrong_sign_of_the_variance",
    "through_mean - through_variance",
    "through_mean + through_variance",
    says="The way through the variance has the wrong sign in your dx.",
)
edited(
    "layer_norm_backward",
    "backward_with_the_deviation",
    "normalised * (g * normalised).mean(",
    "deviation * (g * normalised).mean(",
    says="The way through the variance goes along the deviation in your dx; it goes along the normalised token.",
)
edited(
    "layer_norm_backward",
    "backward_with_the_deviation_twice",
    "normalised * (g * normalised).mean(",
    "deviation * (g * deviation).mean(",
    says="On the way through the variance you take the deviation twice where the normalised token belongs in your dx.",
)
edited(
    "layer_norm_backward",
    "backward_gamma_forgotten",
    "g = dy * gamma",
    "g = dy",
    says="gamma has no influence on your dx; dy passes through the multiplication by gamma first.",
)


@wrong(
    "layer_norm_backward",
    says="You multiply by gamma at the end; it differs from column to column, so it belongs inside both means.",
)
def backward_gamma_at_the_end(dy, x, gamma, eps=1e-5):
    deviation = x - x.mean(axis=-1, keepdims=True)
    root = np.sqrt((deviation**2).mean(axis=-1, keepdims=True) + eps)
    normalised = deviation / root
    g = dy
    root = root / gamma
    through_mean = g.mean(axis=-1, keepdims=True)
    through_variance = normalised * (g * normalised).mean(axis=-1, keepdims=True)
    dx = (g - through_mean - through_variance) / root
    leading = tuple(range(x.ndim - 1))
    return dx, (dy * normalised).sum(axis=leading), dy.sum(axis=leading)


edited(
    "layer_norm_backward",
    "backward_not_divided_by_the_root",
    "(g - through_mean - through_variance) / root",
    "(g - through_mean - through_variance)",
    says="Your dx is not divided by the root, by which the forward pass divides.",
)
edited(
    "layer_norm_backward",
    "backward_divided_by_the_variance",
    "(g - through_mean - through_variance) / root",
    "(g - through_mean - through_variance) / root**2",
    says="Your dx is divided by the variance; it should be the root.",
)


@wrong(
    "layer_norm_backward",
    says="Your dx takes sums over the width where means are needed: the forward pass divides by d.",
)
def backward_sums_instead_of_means(dy, x, gamma, eps=1e-5):
    deviation = x - x.mean(axis=-1, keepdims=True)
    root = np.sqrt((deviation**2).mean(axis=-1, keepdims=True) + eps)
    normalised = deviation / root
    g = dy * gamma
    through_mean = g.sum(axis=-1, keepdims=True)
    through_variance = normalised * (g * normalised).sum(axis=-1, keepdims=True)
    dx = (g - through_mean - through_variance) / root
    leading = tuple(range(x.ndim - 1))
    return dx, (dy * normalised).sum(axis=leading), dy.sum(axis=leading)


edited(
    "layer_norm_backward",
    "backward_eps_ignored",
    "+ eps)",
    "+ 1e-5)",
    says="Your eps is always 1e-5; use the one that is given.",
)
edited(
    "layer_norm_backward",
    "backward_dgamma_with_x",
    "(dy * normalised).sum(axis=leading)",
    "(dy * x).sum(axis=leading)",
    says="Your dgamma multiplies dy by x; in the forward pass gamma multiplies the normalised token.",
)
edited(
    "layer_norm_backward",
    "backward_dgamma_with_deviation",
    "(dy * normalised).sum(axis=leading)",
    "(dy * deviation).sum(axis=leading)",
    says="Your dgamma multiplies dy by the deviations from the mean; they still have to be divided by the root.",
)
edited(
    "layer_norm_backward",
    "backward_dgamma_includes_gamma",
    "(dy * normalised).sum(axis=leading)",
    "(g * normalised).sum(axis=leading)",
    says="Your dgamma still holds gamma itself; the derivative of gamma * x_hat by gamma is x_hat.",
)
edited(
    "layer_norm_backward",
    "backward_dbeta_includes_gamma",
    "dy.sum(axis=leading)",
    "g.sum(axis=leading)",
    says="Your dbeta holds gamma; beta is added after the multiplication, so dy reaches it as it is.",
)
edited(
    "layer_norm_backward",
    "backward_means_over_the_tokens",
    "(dy * normalised).sum(axis=leading), dy.sum(axis=leading)",
    "(dy * normalised).mean(axis=leading), dy.mean(axis=leading)",
    says="Your dgamma and dbeta are means over the tokens; the tokens' shares of a gradient add up.",
)
edited(
    "layer_norm_backward",
    "backward_one_axis_summed",
    "leading = tuple(range(x.ndim - 1))",
    "leading = tuple(range(min(x.ndim - 1, 1)))",
    says="Your dgamma and dbeta sum over the first axis only; with several leading axes they sum over all of them.",
)
edited(
    "layer_norm_backward",
    "backward_summed_over_the_width",
    "leading = tuple(range(x.ndim - 1))",
    "leading = -1",
    says="Your dgamma and dbeta sum over the width; they keep the width and sum over the tokens.",
)
edited(
    "layer_norm_backward",
    "backward_not_summed",
    "(dy * normalised).sum(axis=leading), dy.sum(axis=leading)",
    "dy * normalised, dy",
    says="Your dgamma and dbeta are not summed over the tokens; there is one gamma and one beta for all of them.",
)
edited(
    "layer_norm_backward",
    "backward_dgamma_and_dbeta_swapped",
    "(dy * normalised).sum(axis=leading), dy.sum(axis=leading)",
    "dy.sum(axis=leading), (dy * normalised).sum(axis=leading)",
    says="dgamma and dbeta have changed places: the order is dx, dgamma, dbeta.",
)
edited(
    "layer_norm_backward",
    "backward_dx_alone",
    "return dx, (dy * normalised).sum(axis=leading), dy.sum(axis=leading)",
    "return dx",
    says="You return dx alone; dgamma and dbeta are asked for, too.",
)


@wrong(
    "layer_norm_backward",
    says="You take the part along the normalised token out exactly; with eps its squares sum to less than d, and "
    "the mean over d is needed.",
)
def backward_exact_projection(dy, x, gamma, eps=1e-05):
    mu = x.mean(axis=-1, keepdims=True)
    root = np.sqrt(x.var(axis=-1, keepdims=True) + eps)
    x_hat = (x - mu) / root
    g = gamma * dy
    g_centred = g - g.mean(axis=-1, keepdims=True)
    squares = (x_hat**2).sum(axis=-1, keepdims=True)
    share = (g_centred * x_hat).sum(axis=-1, keepdims=True) / np.where(squares == 0, 1, squares)
    dx = (g_centred - share * x_hat) / root
    lead = tuple(range(x.ndim - 1))
    return (dx, (dy * x_hat).sum(axis=lead), dy.sum(axis=lead))


@wrong(
    "layer_norm_backward", says="Your dgamma and dbeta are means over the batch axes; the shares of all tokens add up."
)
def backward_averaged_over_batches(dy, x, gamma, eps=1e-05):
    mu = x.mean(axis=-1, keepdims=True)
    root = np.sqrt(x.var(axis=-1, keepdims=True) + eps)
    x_hat = (x - mu) / root
    g = gamma * dy
    dx = (g - g.mean(axis=-1, keepdims=True) - x_hat * (g * x_hat).mean(axis=-1, keepdims=True)) / root
    dgamma, dbeta = (dy * x_hat, np.array(dy))
    if x.ndim > 1:
        dgamma, dbeta = (dgamma.sum(axis=-2), dbeta.sum(axis=-2))
    while dgamma.ndim > 1:
        dgamma, dbeta = (dgamma.mean(axis=0), dbeta.mean(axis=0))
    return (dx, dgamma, dbeta)


@wrong(
    "layer_norm_backward",
    says="Your dgamma and dbeta sum over axis 0 alone; they sum over all axes but the last, which may be none, one"
    " or several.",
)
def backward_summed_over_axis_zero(dy, x, gamma, eps=1e-05):
    mu = np.mean(x, axis=-1, keepdims=True)
    root = np.sqrt(np.var(x, axis=-1, keepdims=True) + eps)
    x_hat = (x - mu) / root
    g = dy * gamma
    dx = (g - np.mean(g, axis=-1, keepdims=True) - x_hat * np.mean(g * x_hat, axis=-1, keepdims=True)) / root
    dgamma = (dy * x_hat).sum(axis=0)
    dbeta = dy.sum(axis=0)
    return (dx, dgamma, dbeta)


@wrong(
    "layer_norm_backward",
    says="Two things: gamma has no influence on your dx; and your dgamma multiplies dy by x, where in the forward "
    "pass gamma multiplies the normalised token.",
)
def backward_gamma_forgotten_and_dgamma_with_x(dy, x, gamma, eps=1e-05):
    mu = x.mean(axis=-1, keepdims=True)
    root = np.sqrt(x.var(axis=-1, keepdims=True) + eps)
    x_hat = (x - mu) / root
    dx = (dy - dy.mean(axis=-1, keepdims=True) - x_hat * (dy * x_hat).mean(axis=-1, keepdims=True)) / root
    axes = tuple(range(x.ndim - 1))
    dgamma = (dy * x).sum(axis=axes)
    return (dx, dgamma, dy.sum(axis=axes))


@right("layer_norm_backward")
def backward_step_by_step(dy, x, gamma, eps=1e-5):
    d = x.shape[-1]
    centred = x - x.mean(-1, keepdims=True)
    inverse = 1 / np.sqrt((centred**2).mean(-1, keepdims=True) + eps)
    dnormalised = dy * gamma
    dvariance = np.sum(dnormalised * centred, -1, keepdims=True) * -0.5 * inverse**3
    dmean = -np.sum(dnormalised * inverse, -1, keepdims=True) + dvariance * np.mean(-2 * centred, -1, keepdims=True)
    dx = dnormalised * inverse + dvariance * 2 * centred / d + dmean / d
    dgamma = (dy * centred * inverse).reshape(-1, d).sum(0)
    return dx, dgamma, dy.reshape(-1, d).sum(0)


@right("layer_norm_backward")
def backward_by_jacobians(dy, x, gamma, eps=1e-5):
    d = x.shape[-1]
    centring = np.eye(d) - np.ones((d, d)) / d
    rows, dgamma, dbeta = [], np.zeros(d), np.zeros(d)
    for up, token in zip(dy.reshape(-1, d), x.reshape(-1, d)):
        centred = centring @ token
        root = np.sqrt(centred @ centred / d + eps)
        jacobian = centring / root - np.outer(centred, centred) / (d * root**3)
        rows.append(jacobian @ (gamma * up))
        dgamma += up * centred / root
        dbeta += up
    return [np.array(rows).reshape(x.shape), dgamma, dbeta]


@right("layer_norm_backward")
def backward_by_torch(dy, x, gamma, eps=1e-5):
    import torch

    dy, x, gamma = (torch.tensor(np.ascontiguousarray(array)) for array in (dy, x, gamma))
    beta = torch.zeros_like(gamma)
    for tensor in (x, gamma, beta):
        tensor.requires_grad_(True)
    torch.nn.functional.layer_norm(x, gamma.shape, gamma, beta, eps).backward(dy)
    return x.grad, gamma.grad, beta.grad


@right("layer_norm_backward")
def backward_using_the_forward_pass(dy, x, gamma, eps=1e-5):
    d = x.shape[-1]
    normalised = np.asarray(layer_norm(x, np.ones(d), np.zeros(d), eps))
    inverse = (x.var(axis=-1, keepdims=True) + eps) ** -0.5
    g = dy * gamma
    dx = (
        inverse
        / d
        * (d * g - np.sum(g, axis=-1, keepdims=True) - normalised * np.sum(g * normalised, axis=-1, keepdims=True))
    )
    return dx, (dy * normalised).reshape(-1, d).sum(axis=0), dy.reshape(-1, d).sum(axis=0)


# ------------------------------------------------------------------------------- exercise 5: residual_block

edited(
    "residual_block",
    "residual_orders_swapped",
    'order == "pre"',
    'order == "post"',
    says='"pre" and "post" have changed places: the norm comes before the sublayer or after the sum.',
)
edited(
    "residual_block",
    "residual_always_pre",
    'order == "pre"',
    "True",
    says='Your block is always pre-norm; see what "post" asks for.',
)
edited(
    "residual_block",
    "residual_always_post",
    'order == "pre"',
    "False",
    says='Your block is always post-norm; see what "pre" asks for.',
)
edited(
    "residual_block",
    "residual_pre_adds_the_norm",
    "x + sublayer(layer_norm(x, gamma, beta))",
    "layer_norm(x, gamma, beta) + sublayer(layer_norm(x, gamma, beta))",
    says="In pre-norm you add the normalised x to what the sublayer says; what is added is x as it came.",
)
edited(
    "residual_block",
    "residual_pre_norm_on_the_wrong_path",
    "x + sublayer(layer_norm(x, gamma, beta))",
    "layer_norm(x, gamma, beta) + sublayer(x)",
    says="In pre-norm your sublayer gets x and the normalised x is added; it is the other way round.",
)
edited(
    "residual_block",
    "residual_pre_without_the_sum",
    "return x + sublayer(layer_norm(x, gamma, beta))",
    "return sublayer(layer_norm(x, gamma, beta))",
    says="In pre-norm x is not added to what the sublayer says; that is the residual connection.",
)
edited(
    "residual_block",
    "residual_pre_norm_of_the_sublayer",
    "x + sublayer(layer_norm(x, gamma, beta))",
    "x + layer_norm(sublayer(x), gamma, beta)",
    says="In pre-norm you normalise what comes out of the sublayer; the norm stands before it.",
)
edited(
    "residual_block",
    "residual_pre_without_a_norm",
    "x + sublayer(layer_norm(x, gamma, beta))",
    "x + sublayer(x)",
    says="In pre-norm there is no norm in your block; the sublayer should get the normalised x.",
)
edited(
    "residual_block",
    "residual_pre_normalised_again",
    "x + sublayer(layer_norm(x, gamma, beta))",
    "layer_norm(x + sublayer(layer_norm(x, gamma, beta)), gamma, beta)",
    says="In pre-norm you normalise the sum once more; it stays as it is.",
)
edited(
    "residual_block",
    "residual_post_norm_inside",
    "layer_norm(x + sublayer(x), gamma, beta)",
    "x + layer_norm(sublayer(x), gamma, beta)",
    says="In post-norm you normalise what the sublayer says and then add x; the norm is taken of the sum.",
)
edited(
    "residual_block",
    "residual_post_without_the_sum",
    "layer_norm(x + sublayer(x), gamma, beta)",
    "layer_norm(sublayer(x), gamma, beta)",
    says="In post-norm x is not added to what the sublayer says; that is the residual connection.",
)
edited(
    "residual_block",
    "residual_post_sublayer_sees_the_norm",
    "layer_norm(x + sublayer(x), gamma, beta)",
    "layer_norm(x + sublayer(layer_norm(x, gamma, beta)), gamma, beta)",
    says="In post-norm your sublayer gets the normalised x; there it gets x as it is.",
)
edited(
    "residual_block",
    "residual_post_adds_afterwards",
    "layer_norm(x + sublayer(x), gamma, beta)",
    "layer_norm(x, gamma, beta) + sublayer(x)",
    says="In post-norm you normalise x alone and add the sublayer afterwards; the norm is taken of the sum.",
)


@wrong(
    "residual_block",
    says="gamma and beta have no influence in your block; they belong to its layer norm.",
)
def residual_without_gamma_and_beta(x, sublayer, gamma, beta, order):
    def norm(z):
        return (z - z.mean(axis=-1, keepdims=True)) / np.sqrt(z.var(axis=-1, keepdims=True) + 1e-5)

    return x + sublayer(norm(x)) if order == "pre" else norm(x + sublayer(x))


@wrong(
    "residual_block",
    says="Your sublayer is called for both orders, of which one is thrown away; call it for the one asked.",
)
def residual_called_for_both(x, sublayer, gamma, beta, order):
    pre = x + sublayer(layer_norm(x, gamma, beta))
    post = layer_norm(x + sublayer(x), gamma, beta)
    return pre if order == "pre" else post


@wrong("residual_block", says="Your function adds in place (+=), so the caller's array is changed; make a new one.")
def residual_changes_its_input(x, sublayer, gamma, beta, order):
    if order == "pre":
        x += np.asarray(sublayer(layer_norm(x, gamma, beta))).astype(x.dtype)
        return x
    x += np.asarray(sublayer(x)).astype(x.dtype)
    return layer_norm(x, gamma, beta)


@wrong(
    "residual_block",
    says="In post-norm gamma and beta have no influence in your block; they belong to its layer norm, wherever "
    "that stands.",
)
def residual_post_without_gamma_and_beta(x, sublayer, gamma, beta, order):
    if order == "pre":
        return x + sublayer(layer_norm(x, gamma, beta))
    z = x + sublayer(x)
    return layer_norm(z, np.ones_like(gamma), np.zeros_like(beta))


@wrong("residual_block", says="In pre-norm you normalise the sum once more, without gamma and beta; it stays as it is.")
def residual_pre_normalised_again_plainly(x, sublayer, gamma, beta, order):
    if order == "pre":
        out = x + sublayer(layer_norm(x, gamma, beta))
        return layer_norm(out, np.ones_like(gamma), np.zeros_like(beta))
    return layer_norm(x + sublayer(x), gamma, beta)


@wrong(
    "residual_block",
    says="In post-norm you normalise both parts by themselves and average them; the norm is taken of their sum.",
)
def residual_post_normalises_the_parts(x, sublayer, gamma, beta, order):
    if order == "pre":
        return x + sublayer(layer_norm(x, gamma, beta))
    return (layer_norm(x, gamma, beta) + layer_norm(sublayer(x), gamma, beta)) / 2


@wrong(
    "residual_block",
    says='Two things: "pre" and "post" have changed places; and gamma and beta act on the sum, where they belong '
    "to the norm before the sublayer.",
)
def residual_swapped_with_gamma_outside(x, sublayer, gamma, beta, order):
    ones, zeros = (np.ones_like(gamma), np.zeros_like(beta))
    if order == "post":
        return gamma * (x + sublayer(layer_norm(x, ones, zeros))) + beta
    return layer_norm(x + sublayer(x), gamma, beta)


survivor(
    "residual_block",
    'order == "pre"',
    'order >= "pre"',
    'Only "pre" and "post" come in, and "post" < "pre" in the order of letters: the comparison decides the same.',
)


@right("residual_block")
def residual_with_a_table(x, sublayer, gamma, beta, order):
    def pre():
        return np.add(sublayer(layer_norm(x, gamma, beta)), x)

    def post():
        return layer_norm(np.add(sublayer(x), x), gamma, beta)

    return {"pre": pre, "post": post}[order]()


@right("residual_block")
def residual_with_an_own_norm(x, sublayer, gamma, beta, order):
    def norm(z):
        z = np.array(z, dtype=np.float64)
        z -= z.mean(axis=-1, keepdims=True)
        z /= np.sqrt(np.mean(z * z, axis=-1, keepdims=True) + 1e-5)
        return z * gamma + beta

    if order not in ("pre", "post"):
        raise ValueError(f'order should be "pre" or "post", not {order!r}')
    inside = norm(x) if order == "pre" else x.copy()
    total = x + sublayer(inside)
    return total.tolist() if order == "pre" else norm(total)


@right("residual_block")
def residual_in_one_flow(x, sublayer, gamma, beta, order):
    y = x
    if order == "pre":
        y = layer_norm(y, gamma, beta, eps=1e-5)
    y = x + np.asarray(sublayer(y))
    if order == "post":
        y = layer_norm(y, gamma, beta, eps=1e-5)
    return y


# --------------------------------------------------------------------------- exercise 6: statistics_answers

edited(
    "statistics_answers",
    "statistics_ended_one_step_early",
    "[5, 5, 4, 3, 3, 3, 1, 1]",
    "[5, 4, 3, 3, 3, 1, 1, 0]",
    says="Your sequences end one step too early: a sequence of two tokens still has one at step 2.",
)
edited(
    "statistics_answers",
    "statistics_padding_counted",
    "[5, 5, 4, 3, 3, 3, 1, 1]",
    "[5, 5, 5, 5, 5, 5, 5, 5]",
    says="You count the padding as well; a sequence that has ended takes no part any more.",
)
edited(
    "statistics_answers",
    "statistics_until_the_longest",
    '"batch_until": 6',
    '"batch_until": 8',
    says="At step 8 one sequence is left; a variance over the batch takes at least two.",
)
edited(
    "statistics_answers",
    "statistics_batch_one_step_early",
    '"batch_until": 6',
    '"batch_until": 5',
    says='At the step after your "batch_until" several sequences still have a token. (The first step is step 1.)',
)
edited(
    "statistics_answers",
    "statistics_until_the_shortest",
    '"batch_until": 6',
    '"batch_until": 2',
    says="You stop where the first sequence ends; the remaining ones still have a mean and a variance.",
)
edited(
    "statistics_answers",
    "statistics_layer_needs_others",
    '"layer_until": 8',
    '"layer_until": 6',
    says="Your layer norm stops where one sequence is left; it needs the features of one token and no other sequence.",
)
edited(
    "statistics_answers",
    "statistics_both_at_step_nine",
    '"step_9": "layer"',
    '"step_9": "both"',
    says="At step 9 you expect running values, but no batch in training had a ninth step to collect them from.",
)
edited(
    "statistics_answers",
    "statistics_neither_at_step_nine",
    '"step_9": "layer"',
    '"step_9": "neither"',
    says="You let layer norm fail at step 9; it needs nothing but the token that stands there.",
)


@wrong(
    "statistics_answers",
    says='Your steps are counted from 0 in "batch_until" and "layer_until"; the first step is step 1.',
)
def statistics_steps_from_zero(student_id):
    statistics_answers = {"sequences": [5, 5, 4, 3, 3, 3, 1, 1], "batch_until": 5, "layer_until": 7, "step_9": "both"}
    return statistics_answers


@right("statistics_answers")
def statistics_counted(student_id):
    lengths = np.array([8, 6, 6, 3, 2])
    there = (lengths > np.arange(8)[:, None]).sum(axis=1)
    until = np.flatnonzero(there >= 2).max() + 1
    return {"sequences": there, "batch_until": until, "layer_until": float(lengths.max()), "step_9": " Layer"}


# -------------------------------------------- mistakes that a second collection of answers brought


@wrong("layer_norm", says="You melt the leading axes into one and leave it so; the result has the shape of the input.")
def axes_melted(x, gamma, beta, eps=1e-5):
    d = x.shape[-1]
    tokens = x.reshape(-1, d)
    rows = []
    for token in tokens:
        mu = token.sum() / d
        var = ((token - mu) ** 2).sum() / d
        rows.append(gamma * (token - mu) / np.sqrt(var + eps) + beta)
    return np.stack(rows)


@wrong(
    "layer_norm",
    says="You return 0 where a token has no deviation; there the token becomes beta, and eps already keeps the "
    "division possible.",
)
def no_deviation_gives_zero(x, gamma, beta, eps=1e-5):
    mu = x.mean(axis=-1, keepdims=True)
    var = x.var(axis=-1, keepdims=True)
    y = gamma * (x - mu) / np.sqrt(var + eps) + beta
    return np.where(var < 1e-12, 0.0, y)


@wrong("batch_norm", says="Your running variance holds eps as well; eps belongs under the root only.")
def running_variance_with_eps(x, gamma, beta, running_mean, running_var, training, momentum=0.1, eps=1e-5):
    if training:
        n = x.shape[0]
        mu = x.mean(axis=0)
        var = ((x - mu) ** 2).mean(axis=0) + eps
        y = gamma * (x - mu) / np.sqrt(var) + beta
        new_mu = (1 - momentum) * running_mean + momentum * mu
        new_var = (1 - momentum) * running_var + momentum * (n / (n - 1)) * var
        return y, new_mu, new_var
    y = gamma * (x - running_mean) / np.sqrt(running_var + eps) + beta
    return y, running_mean, running_var


@wrong(
    "layer_norm_backward",
    says="The leading factor of your derivative does without eps; it is under the same root as in the forward pass.",
)
def eps_left_out_of_the_derivative(dy, x, gamma, eps=1e-5):
    mu = x.mean(-1, keepdims=True)
    sigma = x.std(-1, keepdims=True)
    x_hat = (x - mu) / np.sqrt(sigma**2 + eps)
    g = gamma * dy
    dx = (g - g.mean(-1, keepdims=True) - x_hat * (g * x_hat).mean(-1, keepdims=True)) / sigma
    flat = (-1, x.shape[-1])
    return dx, (dy * x_hat).reshape(flat).sum(0), dy.reshape(flat).sum(0)


@wrong("residual_block", says="Your norm takes mean and variance over the whole array; each token has its own.")
def norm_over_everything(x, sublayer, gamma, beta, order):
    def LN(z):
        return gamma * (z - np.mean(z)) / np.sqrt(np.var(z) + 1e-5) + beta

    return x + sublayer(LN(x)) if order == "pre" else LN(x + sublayer(x))


@wrong(
    "residual_block",
    says="You call the sublayer for each token by itself; it may look at all of them, so give it the whole array.",
)
def sublayer_for_each_token(x, sublayer, gamma, beta, order):
    d = x.shape[-1]
    out = []
    for token in x.reshape(-1, d):
        token = token[None]
        if order == "pre":
            out.append(token + sublayer(layer_norm(token, gamma, beta)))
        else:
            out.append(layer_norm(token + sublayer(token), gamma, beta))
    return np.concatenate(out).reshape(x.shape)


@wrong("residual_block", says="gamma and beta come after your sublayer; they belong to the norm before it.")
def affine_after_the_sublayer(x, sublayer, gamma, beta, order):
    eps = 1e-5

    def norm(z):
        return (z - z.mean(-1, keepdims=True)) / np.sqrt(z.var(-1, keepdims=True) + eps)

    if order == "pre":
        return x + (gamma * sublayer(norm(x)) + beta)
    return gamma * norm(x + sublayer(x)) + beta
