"""Runs of lines that stand in the code of many operators. test_snapshots.py says how to read them, and the snapshots."""

# States and codes -----------------------------------------------------------------------------------------------------

def within(state: any, then: any):
    token = set_state(state)
    try:
        then
    finally:
        reset_state(token)

def code_for(of, state, keysets: any, given: any):
    last = of.last
    code = last.code if last.state is state.keys and last.tensors is keysets else of.find(state.keys, given)
    return code

def copied(result, of, state, x, dtype):
    code = code_for(of, state, x._keyset, x._keyset)
    with within(state): result = code(x, dtype)

def after(words):
    state = get_state()
    inner = state.memo.get(words) or state.after(words)
    return inner

def excluding(words):
    state = get_state()
    inner = state.excluding(words)
    return inner

# Autocast --------------------------------------------------------------------------------------------------------------

def kept_or_copied(result, code, state, x, dtype):
    cache = state.autocast_cache
    if cache is not None and state.autocast_keeps and x._dtype is float32 and x._view is None:
        with within(state): result = kept_cast(cache, x, dtype)
    else:
        copied(result, code, state, x, dtype)

def kept_or_copied_to_any(result, code, state, x, dtype):
    cache = state.autocast_cache
    if cache is not None and state.autocast_keeps and x._dtype is float32 and x._view is None:
        with within(state): result = kept_cast(cache, x, dtype)
    else:
        if dtype is None:
            result = x
        else:
            copied(result, code, state, x, dtype)

def cast(result, code, code_2, state, x, dtype):
    if (not (x._dtype.is_floating_point and x._device.type == 'cpu' and x._dtype.itemsize < 8)) or x._dtype is dtype:
        result = x
    else:
        autograd = x._autograd
        if autograd is not None and autograd.requires_grad and autograd.grad_fn is None:
            kept_or_copied(result, code, state, x, dtype)
        else:
            copied(result, code_2, state, x, dtype)

def cast_to_any(result, code, code_2, state, x, dtype):
    if (not (x._dtype.is_floating_point and x._device.type == 'cpu' and x._dtype.itemsize < 8)) or x._dtype is dtype:
        result = x
    else:
        autograd = x._autograd
        if autograd is not None and autograd.requires_grad and autograd.grad_fn is None:
            kept_or_copied_to_any(result, code, state, x, dtype)
        else:
            if dtype is None:
                result = x
            else:
                copied(result, code_2, state, x, dtype)

# Autograd: before the call --------------------------------------------------------------------------------------------

def begun():
    node = node_class()
    node.sequence = next(SEQUENCE)
    node.hooks = None
    return node

def begun_in(inner):
    token = set_state(inner)
    try:
        node = node_class()
        value = next(SEQUENCE)
    finally:
        reset_state(token)
    node.sequence = value
    node.hooks = None
    return node

def edge(x):
    has = x._autograd
    view = x._view
    result = None if has is None else ((has.grad_fn, has.output_nr) if has.grad_fn is not None and (view is None or view.version == x._counter[0]) else ((has.accumulator, 0, x) if view is None and has.accumulator is not None and has.requires_grad else other_gradient_edge(x)))
    return result

def edge_in(inner, x):
    has = x._autograd
    view = x._view
    if has is None:
        result = None
    else:
        if has.grad_fn is not None and (view is None or view.version == x._counter[0]):
            result = (has.grad_fn, has.output_nr)
        else:
            if view is None and has.accumulator is not None and has.requires_grad:
                result = (has.accumulator, 0, x)
            else:
                with within(inner): result = other_gradient_edge(x)
    return result

def saved_for(edge, x):
    value = x if edge is not None else UNSAVED
    version = (x._counter[0] if x._counter is not None else refuse_inference_tensor(x)) if edge is not None else None
    return value, version

def looked_on(node):
    if WATCH.on:
        look_on(operator_derivative, node)

def looked_on_in(inner, node):
    if WATCH.on:
        with within(inner): look_on(operator_derivative, node)

def check_writable(x):
    record = x._autograd
    if record is not None and (record.grad_fn is None or x._view is not None):
        check_write(x)

# Autograd: after the call ---------------------------------------------------------------------------------------------

def outputs_known(node, result):
    metadata = result._interned or metadata_of(result)
    node.outputs = metadata.alone

def record_begins(record, node):
    record.requires_grad = True
    record.grad_fn = node
    record.output_nr = 0
    record.grad = None
    record.accumulator = None
    record.hooks = None
    record.post_accumulate_hooks = None
    record.retains_grad = None

def tied(result, node):
    record = ResultRecord()
    record_begins(record, node)
    result._autograd = record

def tied_in(inner, result, node):
    with within(inner): record = ResultRecord()
    record_begins(record, node)
    result._autograd = record

def new_result_is_tied(result, node, given: any):
    if result._autograd is None and not (given) and result._dtype.category >= 2:
        outputs_known(node, result)
        tied(result, node)
        return result

def new_result_of_several_is_tied(result, node, given: any):
    if (result._autograd is None and (not (given))) and result._dtype.category >= 2:
        outputs_known(node, result)
        tied(result, node)
        return result

def first_is_tied(result, node, others: any, results: any):
    value = None if result._dtype.category < 2 else metadata_of(result)
    node.outputs = (value, others)
    if result._dtype.category >= 2:
        tied(result, node)
    items = [results]
    node.results = kept_outputs(operator_derivative, node, items)

def written_is_tied(x, node):
    former = x._autograd
    plain = former is None or (former.hooks is None and former.retains_grad is None)
    if plain and x._view is None and x._dtype.category >= 2:
        record = x._autograd
        if record is None:
            outputs_known(node, x)
            tied(x, node)
            return x
        outputs_known(node, x)
        record.grad_fn = node
        record.output_nr = 0
        record.requires_grad = True
        return x

def view_is_tied(result, node, given: any):
    record = result._autograd
    if record is not None and record is result._view and record.grad_fn is None and not record.asked and not (given) and result._dtype.category >= 2:
        outputs_known(node, result)
        record_2 = result._autograd
        record_2.grad_fn = node
        record_2.asked = True
        return result

# ADInplaceOrView ------------------------------------------------------------------------------------------------------

def no_inference_tensor(x):
    if x._counter is None:
        raise inference_tensor_written(x)

def version_rises(x):
    if x._counter is not None:
        x._counter[0] += 1

def entered(history, result):
    history.version = result._counter[0]
    result._view = history
    result._autograd = history

def history_of(result, x, former, arguments: any, creation):
    if former is None:
        history = ViewHistory()
        history.base = x
        entered(history, result)
    else:
        if former.replay is None:
            base = former.base
            former_creation = former.creation
            history_2 = ViewHistory()
            history_2.base = base
            if former_creation is not creation:
                history_2.creation = former_creation
                entered(history_2, result)
            else:
                entered(history_2, result)
        else:
            enter_other_view(result, x, op, arguments, 0, creation)

def history_created(result, x, former, arguments: any, creation):
    if former is None:
        history = ViewHistory()
        history.base = x
        history.creation = creation
        entered(history, result)
    else:
        if former.replay is None:
            base = former.base
            history_2 = ViewHistory()
            history_2.base = base
            history_2.creation = creation
            entered(history_2, result)
        else:
            enter_other_view(result, x, op, arguments, 0, creation)

def made_a_view(result, x, other_kind: any, history, arguments: any, creation):
    if x._counter is not None and result is not x and result._autograd is None:
        result._counter = x._counter
        if result._dtype.category >= 2 or x._dtype.category < 2:
            former = x._view
            if result._dtype is not x._dtype or other_kind:
                enter_other_view(result, x, op, arguments, 0, creation)
            else:
                history(result, x, former, arguments, creation)

# Kernels: results and arrays ------------------------------------------------------------------------------------------

def fresh(spec: any):
    found = spec
    result = new(Tensor)
    result._keyset = found.keyset
    result._counter = [0]
    result._autograd = None
    result._store = None
    result._array = empty(found.elements, found.array) if found.sure else memory_for(found, result)
    result._shape = found.shape
    result._stride = found.stride
    result._offset = 0
    result._dtype = found.dtype
    result._device = found.device
    result._view = None
    result._interned = found.metadata
    return result

def window_of(base, window):
    metadata = window.metadata
    store = base._store
    if store is None:
        store = base._storage
    array = base._array
    counted = base._counter is not None
    result = new(Tensor)
    result._keyset = window.keyset if counted else window.inference_keyset
    result._counter = [0] if counted else None
    result._autograd = None
    result._store = store
    result._array = array
    result._shape = metadata.shape
    result._stride = metadata.stride
    result._offset = base._offset + window.start
    result._dtype = metadata.dtype
    result._device = metadata.device
    result._view = None
    result._interned = metadata
    if array is None and store._array is not None:
        store.hand_out(result)
    return result

def array_of(x):
    array = x._array
    if array is None:
        raise no_memory(x)
    return array

def any_array_of(x):
    array = x._array
    if array is None:
        array = x._operand.array
    return array

def looks_of_each(x, y):
    metadata = x._interned or metadata_of(x)
    metadata_2 = y._interned or metadata_of(y)
    return metadata, metadata_2

def plan_for(key: any, arguments: any):
    plan = plans_get(key)
    if plan is None:
        plan = new_plan(arguments)
    return plan

# Kernels: pointwise loops ---------------------------------------------------------------------------------------------

def runs(loop, arguments: any):
    entry = loop.entry
    if entry is None:
        loop.run(arguments)
    else:
        entry(0, loop.numel, arguments)

def writes(loop, arguments: any, written):
    entry = loop.entry
    if entry is None:
        loop.run(arguments)
        result = written
    else:
        entry(0, loop.numel, arguments)
        result = written
    return result

def loop_into(result, plan, arguments: any):
    loop = plan.run
    if loop is None:
        made = loop_into_fresh(variant, plan, result, arguments)
        plan.run = made
        loop = made
    return loop

def pointwise_of_one(x):
    metadata = x._interned or metadata_of(x)
    plan = plan_for(metadata, variant, (metadata,), (x,))
    result = fresh(plan.outputs[0])
    loop = loop_into(result, plan, (x,))
    into = result._array
    array = array_of(x)
    values = x._offset
    runs(loop, into, 0, array, values)
    return result

def pointwise_of_two(x, y, types: any, arguments: any):
    metadata, metadata_2 = looks_of_each(x, y)
    plan = plan_for(metadata if metadata is metadata_2 else (metadata, metadata_2), variant, types, arguments)
    result = fresh(plan.outputs[0])
    loop = loop_into(result, plan, arguments)
    into = result._array
    array = array_of(x)
    array_2 = array_of(y)
    values = x._offset
    values_2 = y._offset
    runs(loop, into, 0, array, values, array_2, values_2)
    return result

def pointwise_in_place(x, y):
    one_store = y._store is not None and y._store is x._store
    if y is x or one_store or y._array is x._array is not None:
        result = run_inplace_unaliased(x, y, 1)
    else:
        metadata, metadata_2 = looks_of_each(x, y)
        plan = plan_for(metadata if metadata is metadata_2 else (metadata, metadata_2), variant, (metadata, metadata_2, int), (x, y, 1))
        loop = plan.in_place
        if loop is None:
            made = loop_in_place(variant, plan, (x, y, 1))
            plan.in_place = made
            loop = made
        if x._array is None:
            raise no_memory(x)
        into = x._array
        into_offset = x._offset
        array = array_of(y)
        values = y._offset
        result = writes(loop, into, into_offset, array, values, x)
    return result
