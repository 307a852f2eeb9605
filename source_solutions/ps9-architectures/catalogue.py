# ruff: noqa: F821
"""Right variants and misconceptions of ps9-architectures.

Each misconception carries the sentence that its author reads in the feedback.
"""

from autograder.catalogue import edited, right, survivor, wrong

# --------------------------------------------------------------------------- exercise 1: conv_output_size

edited(
    "conv_output_size",
    "size_without_the_first_place",
    "// stride + 1",
    "// stride",
    says="You count the moves; there is one place more than moves, the one at which the kernel starts.",
)
edited(
    "conv_output_size",
    "size_with_padding_once",
    "2 * padding",
    "padding",
    says="Your padding lies on one side only; it is added on each side, so it counts twice.",
)
edited(
    "conv_output_size",
    "size_without_padding",
    " + 2 * padding",
    "",
    says="Your size does not depend on the padding, which makes the line of pixels longer.",
)
edited(
    "conv_output_size",
    "size_without_stride",
    " // stride",
    "",
    says="Your size does not depend on the stride; with stride 2 the kernel visits only every second place.",
)
edited(
    "conv_output_size",
    "size_not_rounded",
    "// stride",
    "/ stride",
    says="Your sizes are not whole numbers where pixels are left over; the last move that does not fit is not made.",
)
edited(
    "conv_output_size",
    "size_one_added_too_early",
    "- kernel) // stride + 1",
    "- kernel + 1) // stride",
    says="You add the 1 before the division by the stride. The first place is visited whatever the stride is, so it "
    "is added at the end.",
)
edited(
    "conv_output_size",
    "size_of_the_transposed_convolution",
    "(n + 2 * padding - kernel) // stride + 1",
    "(n - 1) * stride - 2 * padding + kernel",
    says="This is the formula of the transposed convolution, which makes images larger.",
)
edited(
    "conv_output_size",
    "size_by_stride_alone",
    "(n + 2 * padding - kernel) // stride + 1",
    "-(-n // stride)",
    says="You divide by the stride alone. That holds with padding 'same'; here kernel and padding count.",
)
edited(
    "conv_output_size",
    "size_kernel_not_subtracted",
    "(n + 2 * padding - kernel) // stride + 1",
    "(n + 2 * padding) // stride + 1",
    says="Your kernel runs over the right end; its own size has to be subtracted before you divide.",
)
edited(
    "conv_output_size",
    "size_divided_piece_by_piece",
    "(n + 2 * padding - kernel) // stride + 1",
    "n // stride + 2 * padding // stride - kernel // stride + 1",
    says="You divide pixels, padding and kernel one by one and round each; subtract first and divide once.",
)
edited(
    "conv_output_size",
    "size_padded_by_half_the_kernel",
    "(n + 2 * padding - kernel) // stride + 1",
    "(n + 2 * padding - kernel // 2) // stride + 1",
    says="You subtract half a kernel; the whole kernel has to lie inside, so its whole size is subtracted.",
)


@wrong(
    "conv_output_size",
    says="You round up where pixels are left over; a kernel that would stick out at the end is not placed.",
)
def size_rounded_up(n, kernel, stride=1, padding=0):
    return math.ceil((n + 2 * padding - kernel) / stride) + 1


@wrong(
    "conv_output_size",
    says="You round to the nearest whole number; what is left over at the end is dropped, however much it is.",
)
def size_rounded_to_the_nearest(n, kernel, stride=1, padding=0):
    return round((n + 2 * padding - kernel) / stride + 1)


@wrong(
    "conv_output_size",
    says="You round the number of moves to the nearest; what is left over at the end is dropped, however much it is.",
)
def size_moves_rounded_to_the_nearest(n, kernel, stride=1, padding=0):
    return round((n + 2 * padding - kernel) / stride) + 1


@wrong(
    "conv_output_size",
    says="With any padding you return n / stride, as padding 'same' does; here padding is a number of zeros on "
    "each side, and the kernel counts, too.",
)
def size_of_same_padding(n, kernel, stride=1, padding=0):
    if padding > 0:
        return math.ceil(n / stride)
    return (n - kernel) // stride + 1


@wrong(
    "conv_output_size",
    says="You make the stride at most as large as the kernel; it may be larger, and then pixels are skipped.",
)
def size_stride_at_most_the_kernel(n, kernel, stride=1, padding=0):
    stride = min(stride, kernel)
    return (n + 2 * padding - kernel) // stride + 1


@wrong(
    "conv_output_size", says="Your size is never larger than n; with enough padding there are more places than pixels."
)
def size_at_most_n(n, kernel, stride=1, padding=0):
    places = (n + 2 * padding - kernel) // stride + 1
    return min(n, places)


@wrong(
    "conv_output_size",
    says="You add the padding to the number of places; it makes the line longer, so it is added before you divide "
    "by the stride.",
)
def size_padding_added_at_the_end(n, kernel, stride=1, padding=0):
    return (n - kernel) // stride + 1 + 2 * padding


@wrong("conv_output_size", says="With padding you round up; what is left over is dropped, with padding and without.")
def size_rounded_up_with_padding(n, kernel, stride=1, padding=0):
    free = n + 2 * padding - kernel
    if padding:
        return math.ceil(free / stride) + 1
    return free // stride + 1


@wrong(
    "conv_output_size",
    says="With a stride you count places where the kernel sticks out on the right; the whole kernel has to lie inside.",
)
def size_of_kernels_that_stick_out(n, kernel, stride=1, padding=0):
    if stride == 1:
        return n + 2 * padding - kernel + 1
    return math.ceil((n + 2 * padding) / stride)


@wrong(
    "conv_output_size",
    says="Two things: your size is never larger than n; and you round to the nearest whole number, where what is "
    "left over is dropped.",
)
def size_at_most_n_and_rounded(n, kernel, stride=1, padding=0):
    return min(n, round((n - kernel + 2 * padding) / stride) + 1)


@right("conv_output_size")
def size_by_rounding_up(n, kernel, stride=1, padding=0):
    return math.ceil((n + 2 * padding - (kernel - 1)) / stride)


@right("conv_output_size")
def size_by_walking(n, kernel, stride=1, padding=0):
    start, places = -padding, 0
    while start + kernel <= n + padding:
        places += 1
        start += stride
    return places


@right("conv_output_size")
def size_of_a_range(n, kernel, stride=1, padding=0):
    return len(range(0, n + 2 * padding - kernel + 1, stride))


@right("conv_output_size")
def size_as_a_float(n, kernel, stride=1, padding=0):
    return np.floor((n - kernel + 2 * padding) / stride + 1)


@right("conv_output_size")
def size_by_torch(n, kernel, stride=1, padding=0):
    line, weights = torch.zeros(1, 1, n), torch.zeros(1, 1, kernel)
    return torch.tensor(F.conv1d(line, weights, stride=stride, padding=padding).shape[-1])


# ---------------------------------------------------------------------------- exercise 2: parameter_count

edited(
    "parameter_count",
    "count_kernels_not_square",
    "c_in * k * k + 1",
    "c_in * k + 1",
    says="Your kernels are k numbers long; they are squares of k × k numbers.",
)
edited(
    "parameter_count",
    "count_without_biases_of_convolutions",
    "c_in * k * k + 1",
    "c_in * k * k",
    says="The biases of the convolutions are missing: one for each output channel.",
)
edited(
    "parameter_count",
    "count_without_biases_of_linear_layers",
    "n_in + 1",
    "n_in",
    says="The biases of the linear layers are missing: one for each output.",
)
edited(
    "parameter_count",
    "count_one_kernel_per_output",
    "c_in * k * k + 1",
    "k * k + 1",
    says="You count one kernel for each output channel; it has one for each pair of an input and an output channel.",
)
edited(
    "parameter_count",
    "count_biases_of_the_inputs",
    "c_out * (c_in * k * k + 1)",
    "c_in * (c_out * k * k + 1)",
    says="Your convolutions have a bias for each input channel; biases belong to the output channels.",
)
edited(
    "parameter_count",
    "count_biases_of_the_linear_inputs",
    "n_out * (n_in + 1)",
    "n_in * (n_out + 1)",
    says="Your linear layers have a bias for each input; biases belong to the outputs.",
)
edited(
    "parameter_count",
    "count_a_bias_for_each_kernel",
    "c_out * (c_in * k * k + 1)",
    "c_out * c_in * (k * k + 1)",
    says="You count a bias for each kernel; all kernels of an output channel are summed and share one bias.",
)
edited(
    "parameter_count",
    "count_last_layer_only",
    "total += n_out",
    "total = n_out",
    says="A linear layer overwrites what you counted before it; add to the total.",
)
edited(
    "parameter_count",
    "count_last_convolution_only",
    "total += c_out",
    "total = c_out",
    says="A convolution overwrites what you counted before it; add to the total.",
)


@wrong("parameter_count", says="You return after the first layer, inside the loop; the return belongs behind it.")
def count_first_layer_only(layers):
    total = 0
    for kind, *sizes in layers:
        if kind == "conv":
            c_in, c_out, k = sizes
            total += c_out * (c_in * k * k + 1)  # every output channel: a kernel for each input channel, and a bias
        elif kind == "linear":
            n_in, n_out = sizes
            total += n_out * (n_in + 1)
        return total
    return 0


@wrong("parameter_count", says="Your biases are missing: each output channel and each output of a layer has one.")
def count_without_biases(layers):
    total = 0
    for kind, *sizes in layers:
        if kind == "conv":
            total += sizes[0] * sizes[1] * sizes[2] ** 2
        elif kind == "linear":
            total += sizes[0] * sizes[1]
    return total


@wrong("parameter_count", says="You count one bias for each layer; each output (channel) has its own.")
def count_one_bias_per_layer(layers):
    total = 0
    for kind, *sizes in layers:
        if kind == "conv":
            total += sizes[0] * sizes[1] * sizes[2] ** 2 + 1
        elif kind == "linear":
            total += sizes[0] * sizes[1] + 1
    return total


@wrong("parameter_count", says="Your pooling has parameters; it takes the largest number and has nothing to learn.")
def count_windows_of_pooling(layers):
    total = 0
    for kind, *sizes in layers:
        if kind == "conv":
            total += sizes[1] * (sizes[0] * sizes[2] ** 2 + 1)
        elif kind == "linear":
            total += sizes[1] * (sizes[0] + 1)
        else:
            total += sizes[0] ** 2
    return total


@wrong(
    "parameter_count",
    says="You count equal layers once. Each layer of a network has parameters of its own, so count it as often as it "
    "stands in the list.",
)
def count_equal_layers_once(layers):
    total = 0
    for kind, *sizes in set(layers):
        if kind == "conv":
            total += sizes[1] * (sizes[0] * sizes[2] ** 2 + 1)
        elif kind == "linear":
            total += sizes[1] * (sizes[0] + 1)
    return total


@wrong("parameter_count", says="You give one number for each layer; their sum is asked for.")
def count_layer_by_layer(layers):
    counts = []
    for kind, *sizes in layers:
        if kind == "conv":
            counts.append(sizes[1] * (sizes[0] * sizes[2] ** 2 + 1))
        elif kind == "linear":
            counts.append(sizes[1] * (sizes[0] + 1))
        else:
            counts.append(0)
    return counts


@wrong(
    "parameter_count",
    says="You take the layers out of the list that you were given, so that it is empty afterwards. Walk through it "
    "instead.",
)
def count_and_empty_the_list(layers):
    total = 0
    while layers:
        kind, *sizes = layers.pop()
        if kind == "conv":
            total += sizes[1] * (sizes[0] * sizes[2] ** 2 + 1)
        elif kind == "linear":
            total += sizes[1] * (sizes[0] + 1)
    return total


@wrong(
    "parameter_count",
    says="You divide the inputs of a linear layer by what was pooled before it; its tuple gives the number of "
    "inputs as it is.",
)
def count_fewer_inputs_after_pooling(layers):
    total = 0
    shrink = 1
    for layer in layers:
        if layer[0] == "pool":
            shrink *= layer[1] ** 2
        elif layer[0] == "conv":
            _, c_in, c_out, k = layer
            total += c_in * c_out * k * k + c_out
        else:
            _, n_in, n_out = layer
            total += n_in // shrink * n_out + n_out
            shrink = 1
    return total


@wrong(
    "parameter_count",
    says="Where a convolution has as many output as input channels you count one kernel for each; it has one for "
    "each pair, as every convolution.",
)
def count_one_kernel_where_channels_are_equal(layers):
    total = 0
    for layer in layers:
        if layer[0] == "linear":
            total += (layer[1] + 1) * layer[2]
        elif layer[0] == "conv":
            c_in, c_out, k = layer[1:]
            if c_in == c_out:
                total += c_out * k * k + c_out
            else:
                total += c_in * c_out * k * k + c_out
    return total


@wrong(
    "parameter_count",
    says="For kernels of 1 × 1 you count one weight for each output channel; there is one for each pair of an "
    "input and an output channel.",
)
def count_one_weight_for_kernels_of_one(layers):
    total = 0
    for name, *size in layers:
        if name == "conv":
            c_in, c_out, k = size
            weights = c_out if k == 1 else c_in * c_out * k * k
            total += weights + c_out
        if name == "linear":
            n_in, n_out = size
            total += n_in * n_out + n_out
    return total


@wrong(
    "parameter_count",
    says="You leave out the bias of a convolution that is followed by pooling; it is a parameter all the same.",
)
def count_no_bias_before_pooling(layers):
    total = 0
    for i, layer in enumerate(layers):
        if layer[0] == "conv":
            total += layer[1] * layer[2] * layer[3] ** 2
            pooled = i + 1 < len(layers) and layers[i + 1][0] == "pool"
            if not pooled:
                total += layer[2]
        elif layer[0] == "linear":
            total += layer[1] * layer[2] + layer[2]
    return total


@wrong(
    "parameter_count",
    says="Two things: you count equal layers once, though each has parameters of its own; and you divide the "
    "inputs of a linear layer by what was pooled before.",
)
def count_equal_layers_once_and_fewer_inputs(layers):
    seen, total, window = (set(), 0, 1)
    for layer in layers:
        if layer[0] == "pool":
            window = layer[1] ** 2
            continue
        if layer in seen:
            continue
        seen.add(layer)
        if layer[0] == "conv":
            total += layer[1] * layer[2] * layer[3] ** 2 + layer[2]
        else:
            total += layer[1] // window * layer[2] + layer[2]
            window = 1
    return total


@right("parameter_count")
def count_by_match(layers):
    def of(layer):
        match layer:
            case ("conv", c_in, c_out, k):
                return c_in * c_out * k**2 + c_out
            case ("linear", n_in, n_out):
                return n_in * n_out + n_out
        return 0

    return sum(map(of, layers))


@right("parameter_count")
def count_by_length_of_the_tuple(layers):
    total = np.float64(0)
    for _, *sizes in layers:
        if len(sizes) > 1:
            total = total + np.prod(sizes) * (sizes[2] if len(sizes) == 3 else 1) + sizes[1]
    return total


@right("parameter_count")
def count_with_modules(layers):
    make = {
        "conv": nn.Conv2d,
        "linear": nn.Linear,
        "pool": nn.MaxPool2d,
    }
    network = nn.Sequential(*(make[kind](*sizes) for kind, *sizes in layers))
    return sum(p.numel() for p in network.parameters())


@right("parameter_count")
def count_by_recursion(layers):
    if not layers:
        return 0
    first, rest = layers[0], layers[1:]
    if first[0] == "pool":
        return count_by_recursion(rest)
    area = first[3] ** 2 if first[0] == "conv" else 1
    return (first[1] * area + 1) * first[2] + count_by_recursion(rest)


for kind in ("conv", "linear"):
    survivor(
        "parameter_count",
        f'if kind == "{kind}"',
        f'if kind <= "{kind}"',
        "The kinds are conv, linear and pool, in the order of the alphabet, and earlier ones are dealt with.",
    )

# ----------------------------------------------------------------------- exercises 3 and 4: the two networks

LAST = "nn.Linear(120, 4),"


def in_both(name, old, new, says):
    """The same slip in either network."""
    for network in ("pooled", "strided"):
        edited(f"{network}_cnn", f"{network}_{name}", old, new, says=says)


in_both(
    "relu_on_the_logits",
    LAST,
    "nn.Linear(120, 4), nn.ReLU(),",
    says="A ReLU stands behind the last layer, so that no logit is ever negative; nothing comes after it.",
)
in_both(
    "softmax_on_the_logits",
    LAST,
    "nn.Linear(120, 4), nn.Softmax(dim=1),",
    says="Your network ends in a softmax. Logits are asked for; PyTorch's cross_entropy applies the softmax itself.",
)
in_both(
    "log_softmax_on_the_logits",
    LAST,
    "nn.Linear(120, 4), nn.LogSoftmax(dim=1),",
    says="Your network ends in a log-softmax. Logits are asked for; PyTorch's cross_entropy applies it itself.",
)


@wrong(
    "pooled_cnn",
    says="There is no ReLU between the last two linear layers, so that together they are no more than one.",
)
def pooled_no_relu_between_the_last_layers():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),  # (B, 8, 28, 28)
        nn.ReLU(),
        nn.MaxPool2d(2),  # (B, 8, 14, 14)
        nn.Conv2d(8, 16, 3),  # (B, 16, 12, 12)
        nn.ReLU(),
        nn.MaxPool2d(2),  # (B, 16, 6, 6)
        nn.Flatten(),
        nn.Linear(576, 320),
        nn.ReLU(),
        nn.Linear(320, 120),
        nn.Linear(120, 4),
    )


@wrong(
    "strided_cnn",
    says="There is no ReLU between the last two linear layers, so that together they are no more than one.",
)
def strided_no_relu_between_the_last_layers():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1, stride=2),  # (B, 8, 14, 14)
        nn.ReLU(),
        nn.Conv2d(8, 16, 3, stride=2),  # (B, 16, 6, 6)
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(576, 320),
        nn.ReLU(),
        nn.Linear(320, 120),
        nn.Linear(120, 4),
    )


@wrong(
    "pooled_cnn",
    says="There is no ReLU between the first two linear layers, so that together they are no more than one.",
)
def pooled_no_relu_between_the_first_linear_layers():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),  # (B, 8, 28, 28)
        nn.ReLU(),
        nn.MaxPool2d(2),  # (B, 8, 14, 14)
        nn.Conv2d(8, 16, 3),  # (B, 16, 12, 12)
        nn.ReLU(),
        nn.MaxPool2d(2),  # (B, 16, 6, 6)
        nn.Flatten(),
        nn.Linear(576, 320),
        nn.Linear(320, 120),
        nn.ReLU(),
        nn.Linear(120, 4),
    )


@wrong(
    "strided_cnn",
    says="There is no ReLU between the first two linear layers, so that together they are no more than one.",
)
def strided_no_relu_between_the_first_linear_layers():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1, stride=2),  # (B, 8, 14, 14)
        nn.ReLU(),
        nn.Conv2d(8, 16, 3, stride=2),  # (B, 16, 6, 6)
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(576, 320),
        nn.Linear(320, 120),
        nn.ReLU(),
        nn.Linear(120, 4),
    )


@wrong(
    "pooled_cnn", says="There is no ReLU behind your linear layers, so that the three together are no more than one."
)
def pooled_no_relu_after_linear_layers():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),  # (B, 8, 28, 28)
        nn.ReLU(),
        nn.MaxPool2d(2),  # (B, 8, 14, 14)
        nn.Conv2d(8, 16, 3),  # (B, 16, 12, 12)
        nn.ReLU(),
        nn.MaxPool2d(2),  # (B, 16, 6, 6)
        nn.Flatten(),
        nn.Linear(576, 320),
        nn.Linear(320, 120),
        nn.Linear(120, 4),
    )


@wrong(
    "strided_cnn", says="There is no ReLU behind your linear layers, so that the three together are no more than one."
)
def strided_no_relu_after_linear_layers():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1, stride=2),  # (B, 8, 14, 14)
        nn.ReLU(),
        nn.Conv2d(8, 16, 3, stride=2),  # (B, 16, 6, 6)
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(576, 320),
        nn.Linear(320, 120),
        nn.Linear(120, 4),
    )


@wrong("pooled_cnn", says="The last bend of your network is a sigmoid; a ReLU is asked for.")
def pooled_sigmoid_for_relu():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),  # (B, 8, 28, 28)
        nn.ReLU(),
        nn.MaxPool2d(2),  # (B, 8, 14, 14)
        nn.Conv2d(8, 16, 3),  # (B, 16, 12, 12)
        nn.ReLU(),
        nn.MaxPool2d(2),  # (B, 16, 6, 6)
        nn.Flatten(),
        nn.Linear(576, 320),
        nn.ReLU(),
        nn.Linear(320, 120),
        nn.Sigmoid(),
        nn.Linear(120, 4),
    )


@wrong("strided_cnn", says="The last bend of your network is a sigmoid; a ReLU is asked for.")
def strided_sigmoid_for_relu():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1, stride=2),  # (B, 8, 14, 14)
        nn.ReLU(),
        nn.Conv2d(8, 16, 3, stride=2),  # (B, 16, 6, 6)
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(576, 320),
        nn.ReLU(),
        nn.Linear(320, 120),
        nn.Sigmoid(),
        nn.Linear(120, 4),
    )


@wrong(
    "pooled_cnn",
    says="Your network has dropout, which sets numbers to zero at random in training mode; here nothing is dropped.",
)
def pooled_dropout():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),  # (B, 8, 28, 28)
        nn.ReLU(),
        nn.MaxPool2d(2),  # (B, 8, 14, 14)
        nn.Conv2d(8, 16, 3),  # (B, 16, 12, 12)
        nn.ReLU(),
        nn.MaxPool2d(2),  # (B, 16, 6, 6)
        nn.Flatten(),
        nn.Linear(576, 320),
        nn.ReLU(),
        nn.Linear(320, 120),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Linear(120, 4),
    )


@wrong(
    "strided_cnn",
    says="Your network has dropout, which sets numbers to zero at random in training mode; here nothing is dropped.",
)
def strided_dropout():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1, stride=2),  # (B, 8, 14, 14)
        nn.ReLU(),
        nn.Conv2d(8, 16, 3, stride=2),  # (B, 16, 6, 6)
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(576, 320),
        nn.ReLU(),
        nn.Linear(320, 120),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Linear(120, 4),
    )


@wrong("pooled_cnn", says="A linear layer is missing: the widths are 576, 320, 120 and 4.")
def pooled_without_the_middle_linear_layer():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),  # (B, 8, 28, 28)
        nn.ReLU(),
        nn.MaxPool2d(2),  # (B, 8, 14, 14)
        nn.Conv2d(8, 16, 3),  # (B, 16, 12, 12)
        nn.ReLU(),
        nn.MaxPool2d(2),  # (B, 16, 6, 6)
        nn.Flatten(),
        nn.Linear(576, 320),
        nn.ReLU(),
        nn.Linear(320, 4),
    )


@wrong("strided_cnn", says="A linear layer is missing: the widths are 576, 320, 120 and 4.")
def strided_without_the_middle_linear_layer():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1, stride=2),  # (B, 8, 14, 14)
        nn.ReLU(),
        nn.Conv2d(8, 16, 3, stride=2),  # (B, 16, 6, 6)
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(576, 320),
        nn.ReLU(),
        nn.Linear(320, 4),
    )


in_both(
    "convolutions_without_bias",
    "nn.Conv2d(1, 8, 3,",
    "nn.Conv2d(1, 8, 3, bias=False,",
    says="Your first convolution has no bias; each of the five layers has one.",
)


@wrong("pooled_cnn", says="Your second pooling takes the mean of four numbers; the largest is asked for.")
def pooled_by_the_mean():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),  # (B, 8, 28, 28)
        nn.ReLU(),
        nn.MaxPool2d(2),  # (B, 8, 14, 14)
        nn.Conv2d(8, 16, 3),  # (B, 16, 12, 12)
        nn.ReLU(),
        nn.AvgPool2d(2),  # (B, 16, 6, 6)
        nn.Flatten(),
        nn.Linear(576, 320),
        nn.ReLU(),
        nn.Linear(320, 120),
        nn.ReLU(),
        nn.Linear(120, 4),
    )


@wrong("pooled_cnn", says="Your first pooling takes the mean of four numbers; the largest is asked for.")
def pooled_by_the_mean_first():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),  # (B, 8, 28, 28)
        nn.ReLU(),
        nn.AvgPool2d(2),  # (B, 8, 14, 14)
        nn.Conv2d(8, 16, 3),  # (B, 16, 12, 12)
        nn.ReLU(),
        nn.MaxPool2d(2),  # (B, 16, 6, 6)
        nn.Flatten(),
        nn.Linear(576, 320),
        nn.ReLU(),
        nn.Linear(320, 120),
        nn.ReLU(),
        nn.Linear(120, 4),
    )


@wrong(
    "pooled_cnn",
    says="The padding stands in the second convolution; it belongs to the first. (28, 26, 13, 13, 6 also ends in 6.)",
)
def pooled_with_padding_in_the_second_convolution():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3),  # (B, 8, 28, 28)
        nn.ReLU(),
        nn.MaxPool2d(2),  # (B, 8, 13, 13)
        nn.Conv2d(8, 16, 3, padding=1),  # (B, 16, 12, 12)
        nn.ReLU(),
        nn.MaxPool2d(2),  # (B, 16, 6, 6)
        nn.Flatten(),
        nn.Linear(576, 320),
        nn.ReLU(),
        nn.Linear(320, 120),
        nn.ReLU(),
        nn.Linear(120, 4),
    )


@wrong("pooled_cnn", says="Your second pooling looks at windows of 3 × 3, which overlap; they should be 2 × 2.")
def pooled_in_windows_of_three():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),  # (B, 8, 28, 28)
        nn.ReLU(),
        nn.MaxPool2d(2),  # (B, 8, 14, 14)
        nn.Conv2d(8, 16, 3),  # (B, 16, 12, 12)
        nn.ReLU(),
        nn.MaxPool2d(3, stride=2, padding=1),  # (B, 16, 6, 6)
        nn.Flatten(),
        nn.Linear(576, 320),
        nn.ReLU(),
        nn.Linear(320, 120),
        nn.ReLU(),
        nn.Linear(120, 4),
    )


@wrong(
    "pooled_cnn",
    says="Your second convolution moves by 2 pixels in place of pooling; that is the network of exercise 4.",
)
def pooled_once_and_strided_once():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),  # (B, 8, 28, 28)
        nn.ReLU(),
        nn.MaxPool2d(2),  # (B, 8, 14, 14)
        nn.Conv2d(8, 16, 3, stride=2),
        nn.ReLU(),  # (B, 16, 6, 6)
        nn.Flatten(),
        nn.Linear(576, 320),
        nn.ReLU(),
        nn.Linear(320, 120),
        nn.ReLU(),
        nn.Linear(120, 4),
    )


@wrong("pooled_cnn", says="There is no ReLU behind your first convolution; pooling does not take its place.")
def pooled_without_relu_after_the_first_convolution():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),  # (B, 8, 28, 28)
        nn.MaxPool2d(2),  # (B, 8, 14, 14)
        nn.Conv2d(8, 16, 3),  # (B, 16, 12, 12)
        nn.ReLU(),
        nn.MaxPool2d(2),  # (B, 16, 6, 6)
        nn.Flatten(),
        nn.Linear(576, 320),
        nn.ReLU(),
        nn.Linear(320, 120),
        nn.ReLU(),
        nn.Linear(120, 4),
    )


@wrong("pooled_cnn", says="There is no ReLU behind your second convolution; pooling does not take its place.")
def pooled_without_relu_after_the_second_convolution():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),  # (B, 8, 28, 28)
        nn.ReLU(),
        nn.MaxPool2d(2),  # (B, 8, 14, 14)
        nn.Conv2d(8, 16, 3),  # (B, 16, 12, 12)
        nn.MaxPool2d(2),  # (B, 16, 6, 6)
        nn.Flatten(),
        nn.Linear(576, 320),
        nn.ReLU(),
        nn.Linear(320, 120),
        nn.ReLU(),
        nn.Linear(120, 4),
    )


edited(
    "pooled_cnn",
    "pooled_with_padding_everywhere",
    "nn.Conv2d(8, 16, 3),  # (B, 16, 12, 12)",
    "nn.Conv2d(8, 16, 3, padding=1),",
    says="Both of your convolutions are padded, which makes 28, 14, 14, 7; the second has no padding.",
)
edited(
    "pooled_cnn",
    "pooled_with_reflections",
    "nn.Conv2d(1, 8, 3, padding=1)",
    "nn.Conv2d(1, 8, 3, padding=1, padding_mode='reflect')",
    says="You pad with the image's own pixels; padding is with zeros.",
)
edited(
    "strided_cnn",
    "strided_and_padded_with_copies",
    "nn.Conv2d(1, 8, 3, padding=1, stride=2)",
    "nn.Conv2d(1, 8, 3, padding=1, stride=2, padding_mode='replicate')",
    says="You pad with the image's own pixels; padding is with zeros.",
)


@wrong("pooled_cnn", says="Your poolings take the mean of four numbers; the largest is asked for.")
def pooled_by_means():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.ReLU(),
        nn.AvgPool2d(2),
        nn.Conv2d(8, 16, 3),
        nn.ReLU(),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(576, 320),
        nn.ReLU(),
        nn.Linear(320, 120),
        nn.ReLU(),
        nn.Linear(120, 4),
    )


@wrong(
    "pooled_cnn", says="Your convolutions move by 2 pixels and nothing is pooled; that is the network of exercise 4."
)
def pooled_not_at_all():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, 2, 1),
        nn.ReLU(),
        nn.Conv2d(8, 16, 3, 2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(576, 320),
        nn.ReLU(),
        nn.Linear(320, 120),
        nn.ReLU(),
        nn.Linear(120, 4),
    )


@wrong("pooled_cnn", says="Your poolings look at windows of 3 × 3, which overlap; they should be 2 × 2.")
def pooled_in_overlapping_windows():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
        nn.Conv2d(8, 16, 3),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
        nn.Flatten(),
        nn.Linear(576, 320),
        nn.ReLU(),
        nn.Linear(320, 120),
        nn.ReLU(),
        nn.Linear(120, 4),
    )


@wrong(
    "pooled_cnn",
    says="Your activations are tanh; a ReLU is asked for, which cuts off what is negative and leaves the rest as it "
    "is.",
)
def pooled_with_tanh():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.Tanh(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3),
        nn.Tanh(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(576, 320),
        nn.Tanh(),
        nn.Linear(320, 120),
        nn.Tanh(),
        nn.Linear(120, 4),
    )


@wrong(
    "pooled_cnn",
    says="Your activations are leaky: they let a hundredth of what is negative pass. A plain ReLU is asked for.",
)
def pooled_with_leaky_relu():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.LeakyReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3),
        nn.LeakyReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(576, 320),
        nn.LeakyReLU(),
        nn.Linear(320, 120),
        nn.LeakyReLU(),
        nn.Linear(120, 4),
    )


@wrong("pooled_cnn", says="Your activations are GELU, a soft relative; a plain ReLU is asked for.")
def pooled_with_gelu():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.GELU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3),
        nn.GELU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(576, 320),
        nn.GELU(),
        nn.Linear(320, 120),
        nn.GELU(),
        nn.Linear(120, 4),
    )


@wrong("pooled_cnn", says="Your activations cut off what is above 6 as well (ReLU6); a plain ReLU is asked for.")
def pooled_with_relu6():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.ReLU6(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3),
        nn.ReLU6(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(576, 320),
        nn.ReLU6(),
        nn.Linear(320, 120),
        nn.ReLU6(),
        nn.Linear(120, 4),
    )


@wrong("pooled_cnn", says="There is no ReLU in your network, so that apart from pooling it is one linear map.")
def pooled_without_any_relu():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(576, 320),
        nn.Linear(320, 120),
        nn.Linear(120, 4),
    )


@wrong("pooled_cnn", says="There is no ReLU behind your convolutions; it stands behind every layer but the last.")
def pooled_without_relu_after_convolutions():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(576, 320),
        nn.ReLU(),
        nn.Linear(320, 120),
        nn.ReLU(),
        nn.Linear(120, 4),
    )


@wrong(
    "strided_cnn",
    says="Your activations are tanh; a ReLU is asked for, which cuts off what is negative and leaves the rest as it "
    "is.",
)
def strided_with_tanh():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, 2, 1),
        nn.Tanh(),
        nn.Conv2d(8, 16, 3, 2),
        nn.Tanh(),
        nn.Flatten(),
        nn.Linear(576, 320),
        nn.Tanh(),
        nn.Linear(320, 120),
        nn.Tanh(),
        nn.Linear(120, 4),
    )


@wrong(
    "strided_cnn",
    says="Your activations are leaky: they let a hundredth of what is negative pass. A plain ReLU is asked for.",
)
def strided_with_leaky_relu():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, 2, 1),
        nn.LeakyReLU(),
        nn.Conv2d(8, 16, 3, 2),
        nn.LeakyReLU(),
        nn.Flatten(),
        nn.Linear(576, 320),
        nn.LeakyReLU(),
        nn.Linear(320, 120),
        nn.LeakyReLU(),
        nn.Linear(120, 4),
    )


@wrong("strided_cnn", says="Your activations are GELU, a soft relative; a plain ReLU is asked for.")
def strided_with_gelu():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, 2, 1),
        nn.GELU(),
        nn.Conv2d(8, 16, 3, 2),
        nn.GELU(),
        nn.Flatten(),
        nn.Linear(576, 320),
        nn.GELU(),
        nn.Linear(320, 120),
        nn.GELU(),
        nn.Linear(120, 4),
    )


@wrong("strided_cnn", says="Your activations cut off what is above 6 as well (ReLU6); a plain ReLU is asked for.")
def strided_with_relu6():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, 2, 1),
        nn.ReLU6(),
        nn.Conv2d(8, 16, 3, 2),
        nn.ReLU6(),
        nn.Flatten(),
        nn.Linear(576, 320),
        nn.ReLU6(),
        nn.Linear(320, 120),
        nn.ReLU6(),
        nn.Linear(120, 4),
    )


@wrong("strided_cnn", says="There is no ReLU in your network, so that all its layers together are one linear map.")
def strided_without_any_relu():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, 2, 1),
        nn.Conv2d(8, 16, 3, 2),
        nn.Flatten(),
        nn.Linear(576, 320),
        nn.Linear(320, 120),
        nn.Linear(120, 4),
    )


@wrong("strided_cnn", says="There is no ReLU behind your convolutions; it stands behind every layer but the last.")
def strided_without_relu_after_convolutions():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, 2, 1),
        nn.Conv2d(8, 16, 3, 2),
        nn.Flatten(),
        nn.Linear(576, 320),
        nn.ReLU(),
        nn.Linear(320, 120),
        nn.ReLU(),
        nn.Linear(120, 4),
    )


@wrong(
    "strided_cnn",
    says="Your network pools as in exercise 3; here the convolutions move by 2 pixels and nothing is pooled.",
)
def strided_and_not_at_all():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(576, 320),
        nn.ReLU(),
        nn.Linear(320, 120),
        nn.ReLU(),
        nn.Linear(120, 4),
    )


@wrong(
    "strided_cnn",
    says="Your network takes means of four numbers. That is pooling, too; let the convolutions move by 2 instead.",
)
def strided_and_averaged():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.ReLU(),
        nn.AvgPool2d(2),
        nn.Conv2d(8, 16, 3),
        nn.ReLU(),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(576, 320),
        nn.ReLU(),
        nn.Linear(320, 120),
        nn.ReLU(),
        nn.Linear(120, 4),
    )


@wrong(
    "strided_cnn",
    says="Only your first convolution moves by 2 pixels; pooling stands behind the second. Both should have stride 2.",
)
def strided_once_and_pooled_once():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, 2, 1),
        nn.ReLU(),
        nn.Conv2d(8, 16, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(576, 320),
        nn.ReLU(),
        nn.Linear(320, 120),
        nn.ReLU(),
        nn.Linear(120, 4),
    )


@wrong(
    "strided_cnn",
    says="Only your second convolution moves by 2 pixels; pooling stands behind the first. Both should have stride 2.",
)
def pooled_once_and_strided_then():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, 2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(576, 320),
        nn.ReLU(),
        nn.Linear(320, 120),
        nn.ReLU(),
        nn.Linear(120, 4),
    )


edited(
    "strided_cnn",
    "strided_with_padding_everywhere",
    "nn.Conv2d(8, 16, 3, stride=2)",
    "nn.Conv2d(8, 16, 3, stride=2, padding=1)",
    says="Both of your convolutions are padded, which makes 28, 14, 7; the second has no padding.",
)
edited(
    "strided_cnn",
    "strided_in_the_first_convolution_only",
    "nn.Conv2d(8, 16, 3, stride=2)",
    "nn.Conv2d(8, 16, 3)",
    says="Your second convolution moves by 1 pixel and makes 12 of 14; both move by 2.",
)


@wrong(
    "strided_cnn", says="There is no ReLU behind your first convolution, so that the two together are no more than one."
)
def strided_without_relu_after_the_first_convolution():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1, stride=2),  # (B, 8, 14, 14)
        nn.Conv2d(8, 16, 3, stride=2),  # (B, 16, 6, 6)
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(576, 320),
        nn.ReLU(),
        nn.Linear(320, 120),
        nn.ReLU(),
        nn.Linear(120, 4),
    )


@wrong(
    "strided_cnn", says="There is no ReLU behind your second convolution; it stands behind every layer but the last."
)
def strided_without_relu_after_the_second_convolution():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1, stride=2),  # (B, 8, 14, 14)
        nn.ReLU(),
        nn.Conv2d(8, 16, 3, stride=2),  # (B, 16, 6, 6)
        nn.Flatten(),
        nn.Linear(576, 320),
        nn.ReLU(),
        nn.Linear(320, 120),
        nn.ReLU(),
        nn.Linear(120, 4),
    )


@wrong(
    "pooled_cnn", says="Your forward pass is cut off from the gradient (no_grad, detach or .data), so it cannot learn."
)
class PooledWithoutGradient(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 8, 3, padding=1), nn.Conv2d(8, 16, 3)
        self.fc1, self.fc2, self.fc3 = nn.Linear(576, 320), nn.Linear(320, 120), nn.Linear(120, 4)

    def forward(self, x):
        with torch.no_grad():
            x = F.max_pool2d(F.relu(self.conv1(x)), 2)
            x = F.max_pool2d(F.relu(self.conv2(x)), 2).flatten(1)
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))


@wrong(
    "strided_cnn", says="Your forward pass is cut off from the gradient (no_grad, detach or .data), so it cannot learn."
)
class StridedWithoutGradient(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 8, 3, 2, 1), nn.Conv2d(8, 16, 3, 2)
        self.fc1, self.fc2, self.fc3 = nn.Linear(576, 320), nn.Linear(320, 120), nn.Linear(120, 4)

    def forward(self, x):
        x = F.relu(self.conv2(F.relu(self.conv1(x)))).flatten(1).detach()
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))


@wrong(
    "strided_cnn",
    says="Your first convolution has no zeros on the left and at the top (is there a padding at all?); padding=1 puts "
    "a row of zeros on each side.",
)
def strided_padded_on_two_sides():
    return nn.Sequential(
        nn.ZeroPad2d((0, 1, 0, 1)),
        nn.Conv2d(1, 8, 3, stride=2),
        nn.ReLU(),
        nn.Conv2d(8, 16, 3, stride=2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(576, 320),
        nn.ReLU(),
        nn.Linear(320, 120),
        nn.ReLU(),
        nn.Linear(120, 4),
    )


@wrong(
    "strided_cnn",
    says="The activations of your linear layers cut off what is above 6 as well (ReLU6); a plain ReLU is asked for.",
)
def strided_relu6_in_the_linear_layers():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(8, 16, 3, stride=2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(576, 320),
        nn.ReLU6(),
        nn.Linear(320, 120),
        nn.ReLU6(),
        nn.Linear(120, 4),
    )


@wrong(
    "strided_cnn",
    says="Your network takes means of four numbers. That is pooling, too; let the convolutions move by 2 instead.",
)
def strided_averaged_before_relu():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.AvgPool2d(2),
        nn.ReLU(),
        nn.Conv2d(8, 16, 3),
        nn.AvgPool2d(2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(576, 320),
        nn.ReLU(),
        nn.Linear(320, 120),
        nn.ReLU(),
        nn.Linear(120, 4),
    )


@wrong("strided_cnn", says="There is no ReLU behind your convolutions; it stands behind every layer but the last.")
def strided_pixels_first_without_relu():

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2d(1, 8, 3, stride=2, padding=1)
            self.conv2 = nn.Conv2d(8, 16, 3, stride=2)
            self.fc1 = nn.Linear(576, 320)
            self.fc2 = nn.Linear(320, 120)
            self.fc3 = nn.Linear(120, 4)

        def forward(self, x):
            x = self.conv2(self.conv1(x))
            x = torch.movedim(x, 1, -1).flatten(start_dim=1)
            return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))

    return Net()


@wrong(
    "pooled_cnn",
    says="Your images get mixed: a row of 576 numbers takes from several of them. Keep axis 0, B, where it is.",
)
class PooledWithMixedImages(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 8, 3, padding=1), nn.Conv2d(8, 16, 3)
        self.fc1, self.fc2, self.fc3 = nn.Linear(576, 320), nn.Linear(320, 120), nn.Linear(120, 4)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2).transpose(0, 1).reshape(-1, 576)
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))


@wrong(
    "pooled_cnn",
    says="No gradient reaches your convolutions (no_grad, detach or .data), so that they cannot learn; all five layers "
    "are to be trained.",
)
def pooled_convolutions_without_gradient():

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.c1, self.c2 = (nn.Conv2d(1, 8, 3, padding=1), nn.Conv2d(8, 16, 3))
            self.l1, self.l2, self.l3 = (nn.Linear(576, 320), nn.Linear(320, 120), nn.Linear(120, 4))

        def forward(self, x):
            with torch.no_grad():
                x = F.max_pool2d(F.relu(self.c1(x)), 2)
                x = F.max_pool2d(F.relu(self.c2(x)), 2)
            x = x.flatten(1)
            return self.l3(F.relu(self.l2(F.relu(self.l1(x)))))

    return Net()


@wrong(
    "pooled_cnn",
    says="Two things: a ReLU stands behind the last layer, so that no logit is ever negative; and your poolings "
    "look at windows of 3 × 3, which overlap.",
)
def pooled_overlapping_with_relu_last():

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
            self.conv2 = nn.Conv2d(8, 16, 3)
            self.linears = nn.ModuleList([nn.Linear(576, 320), nn.Linear(320, 120), nn.Linear(120, 4)])

        def forward(self, x):
            for conv in (self.conv1, self.conv2):
                x = F.max_pool2d(F.relu(conv(x)), 3, stride=2, padding=1)
            x = x.flatten(1)
            for linear in self.linears:
                x = F.relu(linear(x))
            return x

    return Net()


@wrong(
    "pooled_cnn",
    says="Your function hands out one and the same network at each call; who trains the one has changed the other.",
)
def pooled_handed_out_again(made=[]):  # noqa: B006
    if not made:
        made.append(
            nn.Sequential(
                *(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
                *(nn.Conv2d(8, 16, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()),
                *(nn.Linear(576, 320), nn.ReLU(), nn.Linear(320, 120), nn.ReLU(), nn.Linear(120, 4)),
            )
        )
    return made[0]


@wrong(
    "strided_cnn",
    says="Your function hands out one and the same network at each call; who trains the one has changed the other.",
)
def strided_handed_out_again(made=[]):  # noqa: B006
    if not made:
        made.append(
            nn.Sequential(
                *(nn.Conv2d(1, 8, 3, padding=1, stride=2), nn.ReLU()),
                *(nn.Conv2d(8, 16, 3, stride=2), nn.ReLU(), nn.Flatten()),
                *(nn.Linear(576, 320), nn.ReLU(), nn.Linear(320, 120), nn.ReLU(), nn.Linear(120, 4)),
            )
        )
    return made[0]


# ............................................................................................. right ones


@right("pooled_cnn")
class PooledAsAClass(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels=1, out_channels=8, kernel_size=(3, 3), padding=(1, 1))
        self.conv2 = nn.Conv2d(in_channels=8, out_channels=16, kernel_size=3)
        self.fc1 = nn.Linear(16 * conv_output_size(14, 3, padding=0) ** 2 // 4, 320)
        self.fc2 = nn.Linear(320, 120)
        self.fc3 = nn.Linear(120, 4)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = torch.relu(F.max_pool2d(self.conv2(x), kernel_size=2, stride=2))
        x = x.view(-1, 16 * 6 * 6)
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))


@right("pooled_cnn")
def pooled_from_parts():
    features = nn.Sequential(nn.Conv2d(1, 8, 3, padding="same"), nn.AdaptiveMaxPool2d(14), nn.ReLU(inplace=True))
    features.extend([nn.Conv2d(8, 16, 3), nn.AdaptiveMaxPool2d((6, 6)), nn.ReLU(inplace=True)])
    head = [nn.Flatten()]
    for n_in, n_out in [(576, 320), (320, 120), (120, 4)]:
        head += [nn.Linear(n_in, n_out), nn.ReLU()]
    return nn.Sequential(features, *head[:-1])


@right("pooled_cnn")
class PooledWithPixelsFirst(nn.Module):
    """Lays the features in a row as Keras does, channels last, and pools by hand."""

    def __init__(self):
        super().__init__()
        self.register_buffer("one_half", torch.tensor(0.5))
        self.layers = nn.ModuleDict({"last": nn.Linear(120, 4), "middle": nn.Linear(320, 120)})
        self.layers["first"] = nn.Linear(576, 320)
        self.convolutions = nn.ModuleList([nn.Conv2d(1, 8, 3, padding=1), nn.Conv2d(8, 16, 3)])

    def forward(self, images):
        for convolution in self.convolutions:
            images = convolution(images).clamp(min=0)
            images = images.unflatten(3, (-1, 2)).unflatten(2, (-1, 2)).amax(dim=(3, 5))
        x = images.permute(0, 2, 3, 1).reshape(len(images), -1)
        for name in ("first", "middle"):
            x = self.layers[name](x)
            x = (x + x.abs()) * self.one_half
        return self.layers["last"](x)


@right("pooled_cnn")
class PooledWithOwnParameters(nn.Module):
    """Matrices that multiply from the right, and biases kept apart from the kernels."""

    def __init__(self):
        super().__init__()
        self.kernels = nn.ParameterList([torch.randn(8, 1, 3, 3) / 3, torch.randn(16, 8, 3, 3) / 8])
        self.matrices = nn.ParameterList([torch.randn(a, b) / a**0.5 for a, b in [(576, 320), (320, 120), (120, 4)]])
        self.biases = nn.ParameterList([torch.zeros(size) for size in (8, 16, 320, 120, 4)])

    def forward(self, x):
        x = F.max_pool2d(F.relu(F.conv2d(F.pad(x, (1, 1, 1, 1)), self.kernels[0], self.biases[0])), 2)
        x = F.max_pool2d(F.relu(F.conv2d(x, self.kernels[1], self.biases[1])), 2).flatten(start_dim=1)
        for i, matrix in enumerate(self.matrices):
            x = (x if i == 0 else F.relu(x)) @ matrix + self.biases[2 + i]
        return x


@right("pooled_cnn")
def pooled_without_linear_modules():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.MaxPool2d(2),
        nn.Threshold(0.0, 0.0),
        nn.Conv2d(8, 16, 3),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Conv2d(16, 320, 6),
        nn.ReLU(),
        nn.Conv2d(320, 120, 1),
        nn.ReLU(),
        nn.Conv2d(120, 4, 1),
        nn.Flatten(),
    )


@right("strided_cnn")
class StridedAsAClass(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv_a = nn.Conv2d(1, 8, kernel_size=3, stride=2, padding=1)
        self.conv_b = nn.Conv2d(8, 16, kernel_size=3, stride=2)
        self.lin_a, self.lin_b, self.lin_c = nn.Linear(576, 320), nn.Linear(320, 120), nn.Linear(120, 4)

    def forward(self, x):
        B = x.size(0)
        x = self.conv_a(x).relu()
        x = self.conv_b(x).relu().reshape(B, -1)
        return self.lin_c(self.lin_b(self.lin_a(x).relu()).relu())


@right("strided_cnn")
def strided_from_the_pooled_one():
    model = pooled_cnn()
    layers = [layer for layer in model if not isinstance(layer, nn.MaxPool2d)]
    for layer in layers:
        if isinstance(layer, nn.Conv2d):
            layer.stride = (2, 2)
    return nn.Sequential(*layers)


@right("strided_cnn")
class StridedBySlicing(nn.Module):
    """Computes the convolution at all places and keeps every second one; channels last in the row."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(1, 8, 3, padding=1), nn.Conv2d(8, 16, 3)
        self.head = nn.Sequential(nn.Linear(576, 320), nn.ReLU(), nn.Linear(320, 120), nn.ReLU(), nn.Linear(120, 4))

    def forward(self, x):
        x = F.relu(self.first(x)[:, :, ::2, ::2])
        x = F.relu(self.second(x)[:, :, ::2, ::2])
        return self.head(x.movedim(1, -1).flatten(1))


@right("strided_cnn")
class StridedByUnfolding(nn.Module):
    def __init__(self):
        super().__init__()
        self.kernels = nn.ModuleList([nn.Linear(9, 8), nn.Linear(72, 16)])
        self.linear = nn.ModuleList([nn.Linear(576, 320), nn.Linear(320, 120), nn.Linear(120, 4)])

    def forward(self, x):
        for kernel, padding, side in zip(self.kernels, (1, 0), (14, 6), strict=True):
            patches = F.unfold(x, 3, padding=padding, stride=2)  # (B, c_in * 9, places)
            x = torch.relu(kernel(patches.transpose(1, 2))).transpose(1, 2).unflatten(2, (side, side))
        x = x.flatten(1)
        for layer in self.linear[:-1]:
            x = torch.relu(layer(x))
        return self.linear[-1](x)


survivor(
    "pooled_cnn",
    "nn.ReLU(), nn.MaxPool2d(2),",
    "nn.MaxPool2d(2), nn.ReLU(),",
    "The largest of four numbers, cut off below zero, is the largest of the four that are cut off below zero.",
)
survivor(
    "strided_cnn",
    "nn.ReLU(), nn.Flatten(),",
    "nn.Flatten(), nn.ReLU(),",
    "A ReLU does to each number the same, however the numbers are arranged.",
)

# -------------------------------------------------------------------------------- exercise 5: path_length

edited(
    "path_length",
    "path_as_wide_as_the_kernel",
    "(n - 1) / (k // 2)",
    "(n - 1) / (k - 1)",
    says="Your convolution looks k − 1 tokens ahead; its kernel is centred, so only (k − 1)/2 tokens lie on one side.",
)
edited(
    "path_length",
    "path_by_kernels_side_by_side",
    "(n - 1) / (k // 2)",
    "(n - 1) / k",
    says="You divide by the size of the kernel; with each layer news travels (k − 1)/2 tokens, its half without the "
    "middle.",
)
edited(
    "path_length",
    "path_half_a_kernel_rounded_up",
    "(n - 1) / (k // 2)",
    "(n - 1) / ((k + 1) // 2)",
    says="You count the middle of the kernel as a step; beside it lie (k − 1)/2 tokens on each side.",
)
edited(
    "path_length",
    "path_whatever_the_kernel",
    "(n - 1) / (k // 2)",
    "(n - 1)",
    says="Your convolution takes one token per layer whatever its kernel; a wider one takes (k − 1)/2.",
)
edited(
    "path_length",
    "path_over_all_tokens",
    "(n - 1) / (k // 2)",
    "n / (k // 2)",
    says="From the first of n tokens to the last it is n − 1 tokens, not n, for the convolution, too.",
)
edited(
    "path_length",
    "path_rounded_down",
    "math.ceil((n - 1) / (k // 2))",
    "(n - 1) // (k // 2)",
    says="You round down; where the last layer is used in part only, it is still needed.",
)
edited(
    "path_length",
    "path_rounded_to_the_nearest",
    "math.ceil((n - 1) / (k // 2))",
    "round((n - 1) / (k // 2))",
    says="You round to the nearest number; a layer that is used in part only is still needed, so round up.",
)
edited(
    "path_length",
    "path_not_rounded",
    "math.ceil((n - 1) / (k // 2))",
    "(n - 1) / (k // 2)",
    says="Your numbers of layers are not whole where the last layer is used in part only; it is still needed.",
)
edited(
    "path_length",
    "path_of_dilated_convolutions",
    "math.ceil((n - 1) / (k // 2))",
    "math.ceil(math.log(n, k))",
    says="A logarithm belongs to dilated convolutions, whose steps grow from layer to layer. Here they do not.",
)
edited(
    "path_length",
    "path_of_one_convolution",
    "math.ceil((n - 1) / (k // 2))",
    "1",
    says="One convolution sees its neighbours only; it takes several layers until the last token knows of the first.",
)
edited(
    "path_length",
    "path_of_n_steps",
    '"recurrent": n - 1',
    '"recurrent": n',
    says="From the first to the last of n tokens the state is handed on n − 1 times.",
)
edited(
    "path_length",
    "path_of_one_recurrent_layer",
    '"recurrent": n - 1',
    '"recurrent": 1',
    says="A recurrent layer is one layer, but the steps inside it count: from each token to the next.",
)
edited(
    "path_length",
    "path_of_attention_token_by_token",
    '"attention": 1',
    '"attention": n - 1',
    says="In attention the last token looks at the first directly; nothing is handed on from token to token.",
)
edited(
    "path_length",
    "path_of_an_mlp_token_by_token",
    '"mlp": 1',
    '"mlp": n - 1',
    says="In an MLP each output has a weight for every input, so the first token reaches the last in one layer.",
)


@wrong(
    "path_length",
    says="You round to the nearest number; a layer that is used in part only is still needed, so round up.",
)
def path_halves_rounded_up(kind, n, k=3):
    if kind == "recurrent":
        return n - 1
    if kind == "convolution":
        return int((n - 1) / ((k - 1) / 2) + 0.5)
    return 1


@wrong(
    "path_length",
    says="What is left over after the full layers takes a layer for each token in your function; one more layer is"
    " enough for all of it.",
)
def path_a_layer_for_each_token_left(kind, n, k=3):
    if kind in ("attention", "mlp"):
        return 1
    if kind == "recurrent":
        return n - 1
    layers, rest = divmod(n - 1, k // 2)
    return layers + rest


@wrong(
    "path_length",
    says="You let a kernel as large as the sequence do it in one layer; it is centred, so from the first token it "
    "reaches only (k − 1)/2 tokens far.",
)
def path_of_one_layer_for_wide_kernels(kind, n, k=3):
    if kind == "attention" or kind == "mlp":
        return 1
    if kind == "recurrent":
        return n - 1
    if k >= n:
        return 1
    return math.ceil((n - 1) / ((k - 1) // 2))


@wrong(
    "path_length",
    says="You add a layer also where the full layers reach exactly to the last token; add one only for what is "
    "left over.",
)
def path_one_layer_too_many(kind, n, k=3):
    if kind == "recurrent":
        return n - 1
    if kind == "convolution":
        half = (k - 1) // 2
        return n - 1 if half == 1 else (n - 1) // half + 1
    return 1


@right("path_length")
def path_by_walking(kind, n, k=3):
    reach = {"attention": n, "mlp": n, "recurrent": 1, "convolution": (k - 1) // 2}[kind]
    place, steps = 0, 0
    while place < n - 1:
        place += reach
        steps += 1
    return steps


@right("path_length")
def path_by_the_contract(kind, n, k=3):
    if kind in ("attention", "mlp"):
        return 1
    if kind == "recurrent":
        return n - 1
    return np.ceil(2 * (n - 1) / (k - 1))


@right("path_length")
def path_by_chaining_who_sees_whom(kind, n, k=3):
    distance = np.arange(n)[:, None] - np.arange(n)
    sees = {
        "attention": np.full((n, n), True),
        "mlp": np.full((n, n), True),
        "recurrent": (distance == 1) | (distance == 0),
        "convolution": abs(distance) <= k // 2,
    }[kind]
    reached, steps = sees[-1], 1
    while not reached[0]:
        reached, steps = sees[reached].any(axis=0), steps + 1
    return np.int64(steps)


@right("path_length")
def path_by_negative_division(kind, n, k=3):
    match kind:
        case "recurrent":
            return n - 1
        case "convolution":
            return -(-(2 * (n - 1)) // (k - 1))
        case _:
            return 1.0


# --------------------------------------------------------------------------------- exercise 6: layer_cost

edited(
    "layer_cost",
    "cost_of_attention_with_the_values",
    '"attention": n * n * d',
    '"attention": 2 * n * n * d',
    says="Your attention counts the values as well; only the scores are asked for here, half as much.",
)
edited(
    "layer_cost",
    "cost_of_attention_by_width",
    '"attention": n * n * d',
    '"attention": n * d * d',
    says="Your attention grows with the square of the width; it has n² pairs of tokens, each with d products.",
)
edited(
    "layer_cost",
    "cost_of_attention_without_the_width",
    '"attention": n * n * d',
    '"attention": n * n',
    says="You count one multiplication for each score; a dot product of width d takes d.",
)
edited(
    "layer_cost",
    "cost_of_attention_with_projections",
    '"attention": n * n * d',
    '"attention": n * n * d + 3 * n * d * d',
    says="Your attention counts the products with W_Q, W_K and W_V; only the scores mix tokens.",
)
edited(
    "layer_cost",
    "cost_of_one_recurrent_step",
    '"recurrent": n * (d * d)',
    '"recurrent": (d * d)',
    says="You count one step of the recurrence; there are n of them.",
)
edited(
    "layer_cost",
    "cost_of_recurrence_by_pairs",
    '"recurrent": n * (d * d)',
    '"recurrent": n * n * d',
    says="Your recurrence grows with the square of the length; it meets a d × d matrix once for each token.",
)
edited(
    "layer_cost",
    "cost_of_recurrence_with_the_input",
    '"recurrent": n * (d * d)',
    '"recurrent": 2 * n * (d * d)',
    says="Your recurrence counts the product with the input as well; only that with the state is asked for.",
)
edited(
    "layer_cost",
    "cost_of_recurrence_without_the_last_step",
    '"recurrent": n * (d * d)',
    '"recurrent": (n - 1) * (d * d)',
    says="You leave out one step of the recurrence; the product with the state is counted once for each token.",
)
edited(
    "layer_cost",
    "cost_of_a_convolution_of_width_one",
    "n * k * (d * d)",
    "n * (d * d)",
    says="The size of the kernel is missing: each token meets k matrices, one for each neighbour.",
)
edited(
    "layer_cost",
    "cost_of_a_convolution_in_the_plane",
    "n * k * (d * d)",
    "n * k * k * (d * d)",
    says="You count a kernel of k × k, as for images; tokens stand in a row, so it has k.",
)
edited(
    "layer_cost",
    "cost_of_a_convolution_of_each_feature",
    "n * k * (d * d)",
    "n * k * d",
    says="Your convolution treats each feature alone; each of the d outputs takes from all d features.",
)
edited(
    "layer_cost",
    "cost_of_a_convolution_inside",
    "n * k * (d * d)",
    "(n - k + 1) * k * (d * d)",
    says="You count the places where the kernel lies wholly inside; there are as many outputs as tokens.",
)
edited(
    "layer_cost",
    "cost_of_a_convolution_of_width_three",
    "n * k * (d * d)",
    "n * 3 * (d * d)",
    says="Your kernel always has size 3; its size is k.",
)
edited(
    "layer_cost",
    "cost_of_a_flattened_mlp",
    '"mlp": (n * n) * d',
    '"mlp": (n * n) * d * d',
    says="You count a layer on all n · d numbers at once; here one n × n matrix is shared by all features.",
)
edited(
    "layer_cost",
    "cost_of_an_mlp_for_each_token",
    '"mlp": (n * n) * d',
    '"mlp": n * d * d',
    says="You count a layer that treats each token by itself and mixes features; here tokens are mixed.",
)
edited(
    "layer_cost",
    "cost_of_an_mlp_for_one_feature",
    '"mlp": (n * n) * d',
    '"mlp": n * n',
    says="You count one feature; the n × n matrix is applied to each of d features.",
)


@wrong("layer_cost", says="You make the size of the kernel odd; its size is k as it is given.")
def cost_of_kernels_made_odd(kind, n, d, k=3):
    if kind == "attention":
        return n**2 * d
    if kind == "recurrent":
        return n * d**2
    if kind == "convolution":
        neighbours = 2 * (k // 2) + 1
        return n * neighbours * d**2
    return n**2 * d


@wrong(
    "layer_cost",
    says="A single token, or a kernel of size 1, costs nothing in your function; the products are carried out all "
    "the same.",
)
def cost_of_nothing_for_one(kind, n, d, k=3):
    if n == 1 or (kind == "convolution" and k == 1):
        return 0
    if kind in ("attention", "mlp"):
        return n * n * d
    if kind == "recurrent":
        return n * d * d
    return n * k * d * d


@wrong(
    "layer_cost",
    says="You leave out the places where the kernel sticks out at the ends; each of the n tokens is counted with "
    "the whole kernel.",
)
def cost_of_a_convolution_without_its_ends(kind, n, d, k=3):
    if kind == "convolution":
        left = (k - 1) // 2
        pairs = sum(1 for t in range(n) for j in range(t - left, t - left + k) if 0 <= j < n)
        return pairs * d * d
    if kind == "recurrent":
        return n * d * d
    return n * n * d


@wrong(
    "layer_cost",
    says="You count each pair of tokens once; the query of i with the key of j is another product than that of j "
    "with i.",
)
def cost_of_half_the_pairs(kind, n, d, k=3):
    if kind == "attention":
        return n * (n + 1) // 2 * d
    if kind == "recurrent":
        return n * d * d
    if kind == "convolution":
        return n * k * d * d
    if kind == "mlp":
        return n * n * d


@wrong(
    "layer_cost",
    says="Two things: a kernel of size 1 costs nothing in your function, though its products are carried out; and "
    "you make the size of the kernel odd.",
)
def cost_of_nothing_for_one_and_made_odd(kind, n, d, k=3):
    if kind in ("attention", "mlp"):
        return n * n * d
    if kind == "recurrent":
        return n * d * d
    if k == 1:
        return 0
    return n * (2 * (k // 2) + 1) * d * d


@right("layer_cost")
def cost_by_counting(kind, n, d, k=3):
    if kind == "attention":
        return sum(d for _query in range(n) for _key in range(n))
    if kind == "mlp":
        return sum(n for _output in range(n)) * d
    per_token = d * d if kind == "recurrent" else sum(d * d for _neighbour in range(k))
    return sum(per_token for _token in range(n))


@right("layer_cost")
def cost_with_numpy(kind, n, d, k=3):
    return {
        "attention": np.prod([n, n, d]),
        "recurrent": np.prod([n, d, d]),
        "convolution": np.prod([k, n, d, d]),
        "mlp": np.prod([n, n, d]),
    }[kind]


@right("layer_cost")
def cost_as_floats(kind, n, d, k=3):
    if kind in {"attention", "mlp"}:
        return float(n) ** 2 * d
    return (k if kind.startswith("conv") else 1.0) * n * float(d) ** 2


# -------------------------------------------------------------------------------- exercise 9: mixing_matrix

edited(
    "mixing_matrix",
    "mixing_kernel_turned_round",
    "k=place - middle",
    "k=middle - place",
    says="Your kernel is turned round: w[0] belongs to the token before, w[-1] to the one after.",
)
edited(
    "mixing_matrix",
    "mixing_kernel_looks_back_only",
    "k=place - middle",
    "k=place - len(w) + 1",
    says="Your kernel of three numbers ends at the token itself. The middle of a kernel belongs to the token, so that "
    "it reaches as far ahead as it reaches back.",
)
edited(
    "mixing_matrix",
    "mixing_kernel_begins_at_the_token",
    "k=place - middle",
    "k=place",
    says="Your kernel of three numbers begins at the token itself. The middle of a kernel belongs to the token, so "
    "that it reaches as far back as it reaches ahead.",
)


@wrong(
    "mixing_matrix",
    says="Your kernel goes round: at the ends it takes tokens from the other end. A token that does not exist counts "
    "as zero.",
    based_on="mixing_matrix",
)
def mixing_kernel_goes_round(kind, numbers):
    if kind == "convolution":
        w, T = numbers
        middle = len(w) // 2
        return sum(weight * np.roll(np.eye(T), place - middle, axis=1) for place, weight in enumerate(w))
    if kind == "state space":
        A = np.eye(len(numbers))
        for t in range(1, len(numbers)):
            A[t, :t] = numbers[t] * A[t - 1, :t]
        return A
    scores = np.where(np.tri(len(numbers), dtype=bool), numbers, -np.inf)
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


edited(
    "mixing_matrix",
    "mixing_fades_by_its_own_share",
    "A[t, :t] = numbers[t] * A[t - 1, :t]",
    "A[t, :t] = numbers[t - 1] * A[t - 1, :t]",
    says="Your state fades by the share of the token before; before token t is read it is multiplied by keep[t].",
)
edited(
    "mixing_matrix",
    "mixing_one_share_for_all",
    "A[t, :t] = numbers[t] * A[t - 1, :t]",
    "A[t, :t] = numbers[0] * A[t - 1, :t]",
    says="Your state fades by the same share at every token; each token brings its own.",
)
edited(
    "mixing_matrix",
    "mixing_fades_once",
    "A[t, :t] = numbers[t] * A[t - 1, :t]",
    "A[t, :t] = numbers[t]",
    says="In your table a token fades once, however old it is; it fades anew with every token that follows.",
)
edited(
    "mixing_matrix",
    "mixing_remembers_one_token",
    "A[t, :t] = numbers[t] * A[t - 1, :t]",
    "A[t, t - 1] = numbers[t]",
    says="Your state keeps the latest two tokens only; what is older fades and is still there.",
)


@wrong(
    "mixing_matrix",
    says="In your state-space table each token is multiplied by its own share, too: it is added after the state has "
    "faded.",
    based_on="mixing_matrix",
)
def mixing_fades_the_token_itself(kind, numbers):
    if kind == "convolution":
        w, T = numbers
        middle = len(w) // 2
        return sum(weight * np.eye(T, k=place - middle) for place, weight in enumerate(w))
    if kind == "state space":
        A = np.diag(np.asarray(numbers, dtype=float))
        for t in range(1, len(numbers)):
            A[t, :t] = numbers[t] * A[t - 1, :t]
        return A
    scores = np.where(np.tri(len(numbers), dtype=bool), numbers, -np.inf)
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


@wrong(
    "mixing_matrix",
    says="You get what is kept in between from what is kept since the start, by a quotient or by a difference of "
    "logarithms; where a share is zero, neither is a number. Build each row from the one before.",
    based_on="mixing_matrix",
)
def mixing_by_quotients(kind, numbers):
    if kind == "convolution":
        w, T = numbers
        middle = len(w) // 2
        return sum(weight * np.eye(T, k=place - middle) for place, weight in enumerate(w))
    if kind == "state space":
        total = np.cumprod(numbers)
        return np.tril(total[:, None] / total[None, :])
    scores = np.where(np.tri(len(numbers), dtype=bool), numbers, -np.inf)
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


edited(
    "mixing_matrix",
    "mixing_without_a_mask",
    "np.where(np.tri(len(numbers), dtype=bool), numbers, -np.inf)",
    "np.asarray(numbers)",
    says="Your attention looks ahead; with the causal mask a token sees itself and what came before.",
)
edited(
    "mixing_matrix",
    "mixing_without_itself",
    "np.tri(len(numbers), dtype=bool)",
    "np.tri(len(numbers), k=-1, dtype=bool) | (np.arange(len(numbers)) == 0)",
    says="In your attention a token does not see itself; the mask leaves the diagonal open.",
)
edited(
    "mixing_matrix",
    "mixing_zero_as_a_mask",
    "np.where(np.tri(len(numbers), dtype=bool), numbers, -np.inf)",
    "np.where(np.tri(len(numbers), dtype=bool), numbers, 0.0)",
    says="A score of 0 is no mask: the exponential of 0 is 1. What may not be seen gets minus infinity before the "
    "softmax.",
)
edited(
    "mixing_matrix",
    "mixing_softmax_over_queries",
    "powers / powers.sum(axis=1, keepdims=True)",
    "powers / powers.sum(axis=0, keepdims=True)",
    says="In your attention the columns sum to 1; each output, a row, has one whole to give away.",
)
edited(
    "mixing_matrix",
    "mixing_overflows",
    "np.exp(scores - scores.max(axis=1, keepdims=True))",
    "np.exp(scores)",
    says="Large scores overflow in your exponential; subtract the largest score of the row first.",
)


@right("mixing_matrix")
def mixing_by_probing(kind, numbers):
    def layer(X):
        outputs, state = [], 0.0
        for t in range(len(X)):
            if kind == "convolution":
                reach = len(numbers[0]) // 2
                near = [(t + i - reach, w) for i, w in enumerate(numbers[0])]
                outputs.append(sum((w * X[j] for j, w in near if 0 <= j < len(X)), 0 * X[0]))
            elif kind == "state space":
                state = numbers[t] * state + X[t]
                outputs.append(state)
            else:
                powers = np.exp(numbers[t, : t + 1] - max(numbers[t, : t + 1]))
                outputs.append(powers @ X[: t + 1] / powers.sum())
        return np.array(outputs)

    return layer(np.eye(numbers[1] if kind == "convolution" else len(numbers)))


@right("mixing_matrix")
def mixing_entry_by_entry(kind, numbers):
    T = numbers[1] if kind == "convolution" else len(numbers)
    A = [[0.0] * T for _ in range(T)]
    for i in range(T):
        for j in range(T):
            if kind == "convolution":
                place = j - i + (len(numbers[0]) - 1) // 2
                A[i][j] = numbers[0][place] if 0 <= place < len(numbers[0]) else 0.0
            elif kind == "state space":
                A[i][j] = math.prod(float(share) for share in numbers[j + 1 : i + 1]) if j <= i else 0.0
            elif j <= i:
                A[i][j] = 1 / sum(math.exp(min(numbers[i][n] - numbers[i][j], 700.0)) for n in range(i + 1))
    return A


@right("mixing_matrix")
def mixing_in_torch(kind, numbers):
    if kind == "convolution":
        w, T = numbers
        unit = torch.eye(T, dtype=torch.float64)[:, None]  # each token's column is a text of its own
        return F.conv1d(unit, torch.tensor(w, dtype=torch.float64)[None, None], padding=len(w) // 2)[:, 0].T
    numbers = torch.tensor(numbers)
    if kind == "attention":
        return numbers.masked_fill(torch.ones_like(numbers).triu(1).bool(), -torch.inf).softmax(dim=1)
    rows = [torch.eye(len(numbers), dtype=torch.float64)[0]]
    for t in range(1, len(numbers)):
        rows.append(numbers[t] * rows[-1] + torch.eye(len(numbers), dtype=torch.float64)[t])
    return torch.stack(rows)


survivor(
    "mixing_matrix",
    'kind == "state space"',
    'kind >= "state space"',
    "of the two kinds that are left attention comes earlier in the alphabet",
)
survivor("mixing_matrix", "range(1, len(numbers))", "range(0, len(numbers))", "before the first token nothing fades")
survivor("mixing_matrix", "np.tri(len(numbers), dtype=bool)", "np.tri(len(numbers))", "where takes 1 and 0 as well")


# -------------------------------------------- mistakes that a second collection of answers brought


@wrong(
    "conv_output_size",
    says="You count only places where the kernel covers a real pixel; every place within the padded input counts.",
)
def places_on_real_pixels_only(n, kernel, stride=1, padding=0):
    starts = range(-padding, n + padding - kernel + 1, stride)
    return sum(1 for s in starts if s + kernel > 0 and s < n)


@wrong("conv_output_size", says="You divide the padded length by the stride; the kernel needs room as well.")
def length_divided_by_the_stride(n, kernel, stride=1, padding=0):
    return math.ceil((n + 2 * padding) / stride) if padding else math.ceil((n - kernel + 1) / stride)


@wrong("parameter_count", says="Your pooling has a factor and a bias for each channel; it has no parameters here.")
def pooling_with_parameters(layers):
    total, channels = 0, 0
    for name, *s in layers:
        if name == "conv":
            channels = s[1]
            total += s[0] * s[1] * s[2] * s[2] + s[1]
        elif name == "linear":
            channels = 0
            total += (s[0] + 1) * s[1]
        else:
            total += 2 * channels
    return total


@wrong("strided_cnn", says="You use an ELU, which is not 0 for negative numbers; a ReLU is.")
def elu():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, stride=2, padding=1),
        nn.ELU(),
        nn.Conv2d(8, 16, 3, stride=2),
        nn.ELU(),
        nn.Flatten(),
        nn.Linear(576, 320),
        nn.ELU(),
        nn.Linear(320, 120),
        nn.ELU(),
        nn.Linear(120, 4),
    )


@wrong(
    "strided_cnn",
    says="The ReLU behind your second convolution is missing, and the logits go through one; logits may be negative.",
)
def relu_at_the_end():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(8, 16, 3, stride=2),
        nn.Flatten(),
        nn.Linear(576, 320),
        nn.ReLU(),
        nn.Linear(320, 120),
        nn.ReLU(),
        nn.Linear(120, 4),
        nn.ReLU(),
    )


@wrong(
    "path_length",
    says="You divide the way through a recurrent layer by the kernel; it takes one step after the other, whatever k "
    "is.",
)
def recurrence_with_a_kernel(kind, n, k=3):
    if kind in ("attention", "mlp"):
        return 1
    return math.ceil((n - 1) / (k // 2))


@wrong(
    "path_length",
    says="You count two steps for attention and for an MLP; information goes from one token to another in one layer.",
)
def two_steps_for_attention(kind, n, k=3):
    if kind == "attention" or kind == "mlp":
        return 2
    side = 1 if kind == "recurrent" else (k - 1) // 2
    place = steps = 0
    while place < n - 1:
        place += side
        steps += 1
    return steps


@wrong(
    "layer_cost",
    says="Where k is given you let attention look at k neighbours only; it looks at all tokens, whatever k is.",
)
def attention_within_a_kernel(kind, n, d, k=None):
    if kind == "convolution":
        return n * (3 if k is None else k) * d * d
    if kind == "attention":
        return n * (n if k is None else min(k, n)) * d
    return n * d * d if kind == "recurrent" else n * n * d


@wrong(
    "mixing_matrix",
    says="You hide scores with -100; where the others are lower still, hidden ones then get weight. Minus infinity "
    "is below everything.",
)
def minus_hundred(kind, numbers):
    if kind == "attention":
        T = numbers.shape[0]
        S = np.where(np.tril(np.ones((T, T))) == 1, numbers, -100.0)
        E = np.exp(S - S.max(1, keepdims=True))
        return E / E.sum(1, keepdims=True)
    if kind == "convolution":
        w, T = numbers
        A = np.zeros((T, T))
        for m, value in enumerate(w):
            A += value * np.eye(T, k=m - len(w) // 2)
        return A
    T = len(numbers)
    A = np.zeros((T, T))
    row = np.zeros(T)
    for t in range(T):
        row = row * numbers[t]
        row[t] = 1
        A[t] = row
    return A


@wrong(
    "mixing_matrix",
    says="You cut a kernel that is longer than the text to its length, and its middle moves; places beyond the text "
    "are left out instead.",
)
def kernel_cut_to_the_text(kind, numbers):
    if kind == "convolution":
        w, T = numbers
        w = list(w)[:T] if len(w) > T else list(w)
        half = (len(w) - 1) // 2
        A = np.zeros((T, T))
        for i in range(T):
            for m, value in enumerate(w):
                if 0 <= i + m - half < T:
                    A[i, i + m - half] += value
        return A
    if kind == "state space":
        T = len(numbers)
        A = np.eye(T)
        for t in range(T):
            for s in range(t):
                A[t, s] = np.prod(numbers[s + 1 : t + 1])
        return A
    S = np.where(np.tri(len(numbers)) > 0, numbers, -np.inf)
    S = np.exp(S - S.max(-1)[:, None])
    return S / S.sum(-1)[:, None]


@wrong(
    "conv_output_size",
    says="Where the kernel just fits at the right end, this last place is left out: it may start there, too.",
)
def size_without_the_last_start(n, kernel, stride=1, padding=0):
    return max(1, len(range(0, n + 2 * padding - kernel, stride)))


@wrong(
    "parameter_count",
    says="Two things: the biases of your convolutions are missing, and a linear layer has a single one; there is one "
    "for each output (channel).",
)
def count_one_bias_per_linear_layer(layers):
    total = 0
    for kind, *sizes in layers:
        if kind == "conv":
            total += sizes[0] * sizes[1] * sizes[2] ** 2
        elif kind == "linear":
            total += sizes[0] * sizes[1] + 1
    return total


@wrong(
    "parameter_count",
    says="In a list of several layers you leave out the biases of the last one; it has them like the others.",
)
def count_no_bias_in_the_last_layer(layers):
    total = 0
    for place, (kind, *sizes) in enumerate(layers):
        bias = place == 0 or place < len(layers) - 1
        if kind == "conv":
            total += sizes[1] * (sizes[0] * sizes[2] ** 2 + bias)
        elif kind == "linear":
            total += sizes[1] * (sizes[0] + bias)
    return total


@wrong(
    "pooled_cnn",
    says="Your first pooling moves by 1 pixel and your second takes windows of 4 × 4; both take windows of 2 × 2 and "
    "move by 2.",
)
def pooled_by_one_and_by_four():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2, stride=1),
        nn.Conv2d(8, 16, 3),
        nn.ReLU(),
        nn.MaxPool2d(4, stride=4),
        nn.Flatten(),
        nn.Linear(576, 320),
        nn.ReLU(),
        nn.Linear(320, 120),
        nn.ReLU(),
        nn.Linear(120, 4),
    )


@wrong(
    "pooled_cnn",
    says="Two things: your activations are leaky, where a plain ReLU is asked for; and you pad with the image's own "
    "pixels, where padding is with zeros.",
)
def pooled_with_leaky_relu_and_reflections():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1, padding_mode="reflect"),
        nn.LeakyReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3),
        nn.LeakyReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(576, 320),
        nn.LeakyReLU(),
        nn.Linear(320, 120),
        nn.LeakyReLU(),
        nn.Linear(120, 4),
    )


@wrong(
    "pooled_cnn",
    says="Both of your convolutions are padded, and of the 7 × 7 numbers that come out you keep 6 × 6; the second has "
    "no padding.",
)
class PooledAndCutToSix(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(1, 8, 3, padding=1), nn.Conv2d(8, 16, 3, padding=1)
        self.wide, self.middle, self.last = nn.Linear(576, 320), nn.Linear(320, 120), nn.Linear(120, 4)

    def forward(self, x):
        x = nn.functional.max_pool2d(self.first(x).relu(), 2)
        x = nn.functional.max_pool2d(self.second(x).relu(), 2)[:, :, :6, :6]
        return self.last(self.middle(self.wide(x.flatten(1)).relu()).relu())


@wrong(
    "strided_cnn",
    says="A max pooling of windows of 3 × 3 stands behind your first convolution; there is no pooling of any kind.",
)
def strided_and_pooled_by_one():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(3, stride=1, padding=1),
        nn.Conv2d(8, 16, 3, stride=2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(576, 320),
        nn.ReLU(),
        nn.Linear(320, 120),
        nn.ReLU(),
        nn.Linear(120, 4),
    )


@wrong(
    "strided_cnn",
    says="The padding stands in your second convolution, and of the 7 × 7 numbers that come out you keep 6 × 6; it "
    "belongs to the first convolution.",
)
class StridedPaddedLate(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(1, 8, 3, stride=2), nn.Conv2d(8, 16, 3, stride=2, padding=1)
        self.wide, self.middle, self.last = nn.Linear(576, 320), nn.Linear(320, 120), nn.Linear(120, 4)

    def forward(self, x):
        x = self.second(self.first(x).relu()).relu()[:, :, :6, :6]
        return self.last(self.middle(self.wide(x.flatten(1)).relu()).relu())


@wrong(
    "strided_cnn",
    says="Of your convolutions' outputs you keep every second one from the second on; a convolution with stride 2 "
    "begins with the first.",
)
class StridedFromTheSecond(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(1, 8, 3, padding=1), nn.Conv2d(8, 16, 3)
        self.wide, self.middle, self.last = nn.Linear(576, 320), nn.Linear(320, 120), nn.Linear(120, 4)

    def forward(self, x):
        x = self.first(x).relu()[:, :, 1::2, 1::2]
        x = self.second(x).relu()[:, :, 1::2, 1::2]
        return self.last(self.middle(self.wide(x.flatten(1)).relu()).relu())


@wrong(
    "strided_cnn",
    says="Two things: there is no ReLU behind your linear layers, so that the three together are no more than one; and "
    "your network ends in a log-softmax, where logits are asked for.",
)
def strided_linear_layers_bare_and_log_softmax():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(8, 16, 3, stride=2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(576, 320),
        nn.Linear(320, 120),
        nn.Linear(120, 4),
        nn.LogSoftmax(dim=1),
    )


@wrong(
    "strided_cnn",
    says="Your second convolution has a dilation of 2, and you keep the 6 × 6 numbers in the middle; it should move "
    "by 2 pixels at a time (stride).",
)
class StridedWithDilation(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(1, 8, 3, stride=2, padding=1), nn.Conv2d(8, 16, 3, dilation=2)
        self.wide, self.middle, self.last = nn.Linear(576, 320), nn.Linear(320, 120), nn.Linear(120, 4)

    def forward(self, x):
        x = self.second(self.first(x).relu()).relu()[:, :, 2:8, 2:8]
        return self.last(self.middle(self.wide(x.flatten(1)).relu()).relu())


@wrong(
    "path_length",
    says="Your reach doubles from layer to layer, as with dilated convolutions; here each layer takes news (k − 1)/2 "
    "tokens further.",
)
def path_of_doubling_reach(kind, n, k=3):
    layers = reach = 0
    while reach < n - 1:
        reach += (k // 2) * 2**layers
        layers += 1
    return {"attention": 1, "recurrent": n - 1, "convolution": layers, "mlp": 1}[kind]


edited(
    "path_length",
    "path_of_two_steps_in_an_mlp",
    '"mlp": 1',
    '"mlp": 2',
    says="You count two steps for an MLP. Each of its outputs has a weight for every input, so that one layer is "
    "enough.",
)
