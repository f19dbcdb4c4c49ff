"""The models of the zoo in NumPy: logits in double from learnt tensors, after the papers that each names; where a paper
is silent, after FuxiCTR's model_zoo. For zoo_check.py; shares nothing with src/model but the tensors' names.

B samples, F fields, D embedding dimension, T tasks. A forward takes a Model and returns (B,T).
"""
import numpy

EPSILON = 1e-5  # of batch norm and layer norm


class Model:
    """What a forward reads: settings, the rows' features, and learnt tensors by name; and the pieces that models share.

    own: the settings of model.<kind>; those of "model" are attributes. features: names of id features in their order;
    ids: of each the rows of its table (B,n), weights (B,n), 0 behind the last id, and lengths (B); owners: whose rows
    it looks up. dense: (B, dense features) or None. unread: names of tensors that nothing has asked for yet.
    """

    def __init__(self, settings, own, features, ids, owners, dense, num_tasks, tensors):
        self.__dict__.update(settings)
        self.own, self.features, self.ids, self.owners, self.dense = own, features, ids, owners, dense
        self.num_tasks, self.tensors, self.unread = num_tasks, tensors, set(tensors)

    def __getitem__(self, name):
        self.unread.discard(name)
        return self.tensors[name]

    def items(self, scope, feature):
        """The weighted vector of each id: (B,n,D)"""
        rows, weights, _ = self.ids[feature]
        return self[f"{scope}.{self.owners[feature]}"][rows] * weights[:, :, None]

    def pooled(self, scope, features):
        """(B, features, D)"""
        sums = numpy.stack([self.items(scope, feature).sum(axis=1) for feature in features], axis=1)
        if self.pooling == "sum":
            return sums
        return sums / numpy.maximum(numpy.stack([self.ids[f][2] for f in features], axis=1), 1)[:, :, None]

    def embeddings(self):
        return self.pooled("embedding", self.features)

    def field_vectors(self):
        """A dense feature's vector is its value times a learnt one: (B,F,D)"""
        if self.dense is None:
            return self.embeddings()
        return beside(self.embeddings(), self.dense[:, :, None] * self["dense_embedding"])

    def all_features(self):
        return beside(flat(self.embeddings()), self.dense)

    def bottom(self):
        x = self.perceptron("bottom", self.dense, self.bottom_units)
        return self.activation_of(self.affine("bottom.output", x, self.embedding_dim))

    def vectors_and_bottom(self):
        return beside(self.embeddings(), None if self.dense is None else self.bottom()[:, None])

    def affine(self, name, x, units, is_last=False):
        weight = self[name + ".weight"]
        assert weight.shape == (units, x.shape[-1]), (name, weight.shape, units)
        has_bias = is_last or self.bias == "all"
        return x @ weight.T + (self[name + ".bias"] if has_bias else 0)

    def activation_of(self, x):
        return {"identity": lambda x: x, "relu": relu, "sigmoid": sigmoid, "hard_swish": hard_swish}[self.activation](x)

    def normed(self, name, x, mean, variance):
        return self[name + ".gamma"] * (x - mean) / numpy.sqrt(variance + EPSILON) + self[name + ".beta"]

    def layer_norm(self, name, x):
        return self.normed(name, x, x.mean(axis=-1, keepdims=True), x.var(axis=-1, keepdims=True))

    def activate(self, name, x, may_norm):
        """Block norm, or batch norm by the running statistics; activation; dropout does nothing outside training."""
        if may_norm and self.block_norm:
            x = block_normed(x)
        if may_norm and self.batch_norm:
            x = self.normed(name, x, self[name + ".mean"], self[name + ".variance"])
        return self.activation_of(x)

    def perceptron(self, name, x, units, may_norm=True):
        for i, width in enumerate(units):
            x = self.affine(f"{name}.{i}", x, width)
            x = self.activate(f"{name}.{i}.norm", x, may_norm)
        return x

    def hidden(self, x):
        return self.perceptron("deep", x, self.hidden_units)

    def output(self, x, name="output"):
        return self.affine(name, x, self.num_tasks, is_last=True)


def flat(x):
    return x.reshape(len(x), -1)


def beside(*arrays):
    return numpy.concatenate([a for a in arrays if a is not None], axis=1)


def sigmoid(x):
    return 1 / (1 + numpy.exp(-x))


def relu(x):
    return numpy.maximum(x, 0)


def hard_swish(x):
    return x * numpy.clip(x + 3, 0, 6) / 6


def block_normed(x):
    blocks = numpy.split(x, range(256, x.shape[-1], 256), axis=-1)
    return numpy.concatenate(
        [block / numpy.sqrt((block**2).mean(axis=-1, keepdims=True) + 1e-6) for block in blocks], axis=-1)


def turned(x):
    return x.swapaxes(-1, -2)


def deep(m, x):
    """The perceptron of hidden_units and the logits"""
    return m.output(m.hidden(flat(x)))


def pairs(x):
    """Dot products of the rows of x (B,n,D), those of the strictly lower triangle: (B, n (n - 1) / 2)"""
    i, j = numpy.tril_indices(x.shape[1], -1)
    return (x @ turned(x))[:, i, j]


def attention(query, key, value, heads, scale):
    """softmax(scale Q K^T) V, head by head: (B,n,K)"""
    query, key, value = (numpy.stack(numpy.split(x, heads, axis=2), axis=1) for x in (query, key, value))
    weights = numpy.exp(scale * query @ turned(key))
    heads_of = weights / weights.sum(axis=-1, keepdims=True) @ value  # (B,heads,n,K/heads)
    return numpy.concatenate(list(heads_of.swapaxes(0, 1)), axis=2)


def lr(m):
    logits = m["linear_part.bias"] + m.pooled("linear", m.features).sum(axis=1)
    return logits if m.dense is None else logits + m.dense @ m["linear_part.weight"].T


def fm(m):
    """w_0 + sum_i w_i x_i + sum_{i<j} <v_i, v_j> x_i x_j (Rendle 2010, eq. 1)"""
    return lr(m) + pairs(m.field_vectors()).sum(axis=1, keepdims=True)


def dnn(m):
    return deep(m, m.all_features())


def wide_deep(m):
    return lr(m) + dnn(m)


def deepfm(m):
    return fm(m) + deep(m, m.field_vectors())


def dlrm(m):
    """Naumov et al. 2019, section 2.5; "cat": without products."""
    bottom, x = None if m.dense is None else m.bottom(), m.embeddings()
    if m.interaction == "cat":
        x = flat(x)
    else:
        x = pairs(x if bottom is None else beside(bottom[:, None], x))
    return m.output(m.perceptron("top", beside(bottom, x), m.top_units or m.hidden_units))


def dcn(m):
    """x_{l+1} = x_0 x_l^T w_l + b_l + x_l (Wang et al. 2017, eq. 3)"""
    first = x = m.all_features()
    for i in range(m.own["layers"]):
        x = first * (x @ m[f"cross.{i}.weight"][0])[:, None] + m[f"cross.{i}.bias"] + x
    return m.output(beside(x, m.hidden(first) if m.hidden_units else None))


def dcn_v2(m):
    """x_{l+1} = x_0 * (W_l x_l + b_l) + x_l, W = U V^T (Wang et al. 2021, eq. 1 and 2)"""
    first = x = beside(m.bottom(), flat(m.embeddings())) if m.bottom_units else m.all_features()
    for i in range(m.own["layers"]):
        at, rank = f"cross.{i}.", m.own["rank"]
        weight = m[at + "u"] @ m[at + "v"] if rank > 0 else m[at + "weight"]
        assert rank == 0 or m[at + "v"].shape == (rank, x.shape[1])
        x = first * (x @ weight.T + (m[at + "bias"] if m.bias == "all" else 0)) + x
    if m.own["structure"] == "stacked":
        return deep(m, x)
    return m.output(beside(x, m.hidden(first) if m.hidden_units else None))


def finalnet_block(m, name, x, units):
    for i, width in enumerate(units):
        is_sum, at = m.own["residual"] == "sum", f"{name}.layer.{i}."
        h2, h1 = numpy.split(m.affine(at + "interaction", x, 2 * width if is_sum else width), 2, axis=1)
        x = m.activate(at + "norm", h2 + h1 * h2 if is_sum else beside(h2, h1 * h2), True)
    return m.output(x, f"{name}.output")


def finalnet_blocks(m):
    """The logits of each block of factorised interaction layers, the first behind a field gate (Zhu et al. 2023)"""
    x = gated = m.field_vectors()
    if m.own["field_gate"]:
        gated = beside(x, x * (m["gate.weight"] @ x + m["gate.bias"][:, None]))
    blocks = [finalnet_block(m, "first", flat(gated), m.own["first_units"])]
    if m.own["second_units"]:
        blocks.append(finalnet_block(m, "second", flat(x), m.own["second_units"]))
    return blocks


def finalnet(m):
    return numpy.mean(finalnet_blocks(m), axis=0)


def finalnet_bias_gradients(m, labels):
    """Of each block's output bias, (T) each: of the mean over samples and tasks of the cross entropies of the mean with
    the labels (B,T), and of each block with the mean as its teacher, which is not differentiated"""
    blocks = finalnet_blocks(m)
    p = sigmoid(numpy.mean(blocks, axis=0))
    taught = [sigmoid(logits) - p if len(blocks) > 1 else 0 for logits in blocks]
    return [((p - labels) / len(blocks) + error).sum(axis=0) / labels.size for error in taught]


def wukong_projection(m, at, x):
    """Y (n,k) or (B,n,k): learnt, or made of the input (Zhang et al. 2024, section 3.5); for rank 0 there is none."""
    n, rank, own = x.shape[1], m.own["rank"], m.own
    if rank == 0:
        return numpy.eye(n)
    if own["attentive_inputs"] == 0:
        return m[at + "projection"].T
    y = flat(m[at + "attentive.weight"] @ x)
    y = relu(m.affine(at + "attentive.0", y, own["fm_units"][0] if own["fm_units"] else rank))
    return turned(m.affine(at + "attentive.1", y, rank * n).reshape(-1, rank, n))


def wukong(m):
    """X' = LN([FMB(X), LCB(X)] + X), FMB(X) = relu(MLP(LN(X X^T Y))), LCB(X) = W X (Zhang et al. 2024, section 3)"""
    x, own = m.vectors_and_bottom(), m.own
    norm = m.layer_norm if own["layer_norm"] else lambda name, x: x
    for i in range(own["layers"]):
        at = f"layer.{i}."
        y = norm(at + "fm.norm", flat(x @ turned(x) @ wukong_projection(m, at + "fm.", x)))
        y = m.perceptron(at + "fm.hidden", y, own["fm_units"], may_norm=False)
        y = m.activation_of(m.affine(at + "fm.output", y, own["fm_outputs"] * m.embedding_dim))
        y = beside(y.reshape(len(x), -1, m.embedding_dim), m[at + "compressed"] @ x)
        assert y.shape[1] == own["fm_outputs"] + own["compressed_outputs"]
        x = norm(at + "norm", y + (x if x.shape == y.shape else m[at + "residual"] @ x))
    return deep(m, x)


def xdeepfm(m):
    """X^k_h = sum_ij W^{k,h}_ij (X^{k-1}_i * X^0_j), summed over D (Lian et al. 2018, eq. 6 to 9), FuxiCTR's bias"""
    first = x = m.field_vectors()
    sums, logits = [], lr(m)
    for k, units in enumerate(m.own["cin_units"]):
        weight = m[f"cin.{k}.weight"].reshape(units, x.shape[1], first.shape[1])
        x = numpy.einsum("hij,bid,bjd->bhd", weight, x, first) + m[f"cin.{k}.bias"][:, None]
        sums.append(x.sum(axis=2))
    if sums:
        logits = logits + m.output(beside(*sums), "cin.output")
    return logits + deep(m, first) if m.hidden_units else logits


def autoint(m):
    """e' = relu([sum_k alpha_mk W_v e_k for each head] + W_r e_m) (Song et al. 2019, eq. 5 to 8); scale and norm are
    FuxiCTR's."""
    vectors = x = m.field_vectors()
    own, width = m.own, m.own["attention_dim"]
    scale = (width / own["heads"]) ** -0.5 if own["scale"] else 1
    for i in range(own["layers"]):
        at = f"attention.{i}."
        y = attention(*[x @ m[at + part].T for part in ("query", "key", "value")], own["heads"], scale)
        assert y.shape[2] == width
        if own["residual"]:
            y = y + (x if x.shape == y.shape else x @ m[at + "residual"].T)
        x = relu(m.layer_norm(at + "norm", y) if own["layer_norm"] else y)
    logits = m.output(flat(x), "attention.output")
    if m.hidden_units:
        logits = logits + deep(m, vectors)
    return logits + lr(m) if own["linear_part"] else logits


def mask_block(m, at, embeddings, v, units):
    """relu(LN(W (mask * v))), mask = W_2 relu(W_1 e + b_1) + b_2 (Wang et al. 2021, eq. 5 to 8)"""
    mask = relu(m.affine(at + "mask.0", embeddings, int(m.own["reduction"] * v.shape[1])))
    mask = m.affine(at + "mask.1", mask, v.shape[1])
    assert len(m[at + "weight"]) == units
    return m.activation_of(m.layer_norm(at + "norm", (mask * v) @ m[at + "weight"].T))


def masknet(m):
    v, own = m.field_vectors(), m.own
    embeddings = flat(v)
    if own["embedding_norm"]:
        v = numpy.stack([m.layer_norm(f"embedding_norm.{f}.norm", v[:, f]) for f in range(v.shape[1])], axis=1)
    v = flat(v)
    if own["structure"] == "parallel":
        blocks = [mask_block(m, f"block.{i}.", embeddings, v, own["block_units"]) for i in range(own["blocks"])]
        return deep(m, beside(*blocks))
    for i, units in enumerate(m.hidden_units):
        v = mask_block(m, f"block.{i}.", embeddings, v, units)
    return m.output(v)


def finalmlp_stream(m, name, x):
    """A perceptron over x * 2 sigmoid(MLP(context)) (Mao et al. 2023, eq. 7 to 9)"""
    context = m.own[name + "_context"].replace(" ", "").split(",")
    features = [feature for feature in m.features if feature in context]
    if features:
        gate = flat(m.pooled(f"{name}.gate", features))
        for i, width in enumerate(m.own["gate_units"]):
            gate = relu(m.affine(f"{name}.gate.hidden.{i}.linear", gate, width))
        x = x * 2 * sigmoid(m.affine(f"{name}.gate.output", gate, x.shape[1]))
    return m.perceptron(f"{name}.hidden", x, m.own[name + "_units"])


def finalmlp(m):
    """b + w_1 o_1 + w_2 o_2 + sum_h o_1h^T W_h o_2h (Mao et al. 2023, eq. 10 to 13)"""
    x = flat(m.field_vectors())
    streams = [finalmlp_stream(m, name, x) for name in ("first", "second")]
    heads = [o.reshape(len(o), m.own["heads"], -1) for o in streams]
    return m.output(beside(*streams)) + numpy.einsum("bhi,thij,bhj->bt", heads[0], m["bilinear"], heads[1])


def dhen_dot(m, at, x):
    products = pairs(x) if x.shape[1] > 1 else (x * x).sum(axis=2)
    return m.affine(at + "mix", products, m.own["outputs"] * x.shape[2]).reshape(len(x), -1, x.shape[2])


def dhen_attention(m, at, x):
    """A transformer's encoder layer, norms behind the sums"""
    width, heads = x.shape[2], m.own["heads"]
    parts = [m.affine(at + part, x, width) for part in ("query", "key", "value")]
    y = m.affine(at + "output", attention(*parts, heads, (width / heads) ** -0.5), width)
    y = m.layer_norm(at + "norm.0", y + x)
    z = m.affine(at + "feed.1", relu(m.affine(at + "feed.0", y, 2 * width)), width)
    return m[at + "mix"] @ m.layer_norm(at + "norm.1", z + y)


def dhen_convolution(m, at, x):
    extent = m.own["kernel"]
    padded = numpy.pad(x, [(0, 0)] + 2 * [(extent // 2, extent // 2)])
    windows = numpy.lib.stride_tricks.sliding_window_view(padded, (extent, extent), axis=(1, 2))
    y = numpy.einsum("cuv,bnduv->bcnd", m[at + "kernel"][:, 0], windows) + m[at + "bias"][:, None, None]
    assert y.shape[1:3] == (m.own["channels"], x.shape[1])
    return m[at + "mix"] @ y.reshape(len(x), -1, x.shape[2])


DHEN_MODULES = {
    "dot": dhen_dot,
    "attention": dhen_attention,
    "convolution": dhen_convolution,
    "linear": lambda m, at, x: m[at + "mix"] @ x,
    "cross": lambda m, at, x: m[at + "mix"] @ (turned(x) @ x) + m[at + "bias"][:, None],
}


def dhen(m):
    """Y = LN(ensemble(u_1, ..., u_k) + shortcut(X)) (Zhang et al. 2022, section 3); without layer_norm no LN here, but
    in an attention module as before"""
    x, own = m.vectors_and_bottom(), m.own
    norm = m.layer_norm if own["layer_norm"] else lambda name, x: x
    for i in range(own["layers"]):
        at = f"layer.{i}."
        names = enumerate(own["modules"].split(","))
        us = [DHEN_MODULES[name.strip()](m, f"{at}module.{k}.", x) for k, name in names]
        assert all(u.shape[1] == own["outputs"] for u in us)
        weights = m[at + "ensemble"][0] if own["ensemble"] == "weighted" else [1] * len(us)
        y = beside(*us) if own["ensemble"] == "concat" else sum(w * u for w, u in zip(weights, us))
        x = norm(at + "norm", y + (x if x.shape == y.shape else m[at + "shortcut"] @ x))
    return deep(m, x)


def ffm(m):
    """Logistic regression + sum_{i<j} <v_{i,f_j}, v_{j,f_i}> x_i x_j (Juan et al. 2016, eq. 4)"""
    v = m.field_vectors()
    v = v.reshape(*v.shape[:2], v.shape[1], -1)  # (B,F,F,D): field i's vector towards field j
    i, j = numpy.triu_indices(v.shape[1], 1)
    return lr(m) + (v[:, i, j] * v[:, j, i]).sum(axis=(1, 2))[:, None]


def din(m):
    """sum_j a(e_j, t) e_j over a history, without a softmax (Zhou et al. 2018, eq. 3); a of [t, e, t - e, t * e] as in
    its authors' code"""
    targets, histories = ([name for name in m.own[key].split(",") if name] for key in ("targets", "histories"))
    others = [feature for feature in m.features if feature not in histories]
    vectors = m.pooled("embedding", others)
    interests = []
    for i, (target, history) in enumerate(zip(targets, histories)):
        e = m.items("embedding", history)  # 0 behind the last item: it adds nothing, whatever its factor
        t = numpy.broadcast_to(vectors[:, others.index(target), None], e.shape)
        x = numpy.concatenate([t, e, t - e, t * e], axis=2)
        x = m.perceptron(f"attention.{i}.hidden", x, m.own["attention_units"], may_norm=False)
        interests.append((m.affine(f"attention.{i}.output", x, 1) * e).sum(axis=1))
    return deep(m, beside(flat(vectors), *interests, m.dense))


FORWARDS = {f.__name__: f for f in (lr, fm, dnn, wide_deep, deepfm, dlrm, dcn, dcn_v2, finalnet, wukong, xdeepfm,
    autoint, masknet, finalmlp, dhen, ffm, din)}
