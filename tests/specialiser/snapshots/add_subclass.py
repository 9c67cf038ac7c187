def add_Tensor(self, other):
    # aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
    # DispatchKeySet(CPU, BackendSelect, Python, ADInplaceOrView, AutogradCPU, PythonTLSSnapshot)
    # PythonTLSSnapshot: python_tls_snapshot (backend fallback), dispatch/layers/python.py
    # AutogradCPU: autograd (backend fallback), dispatch/layers/autograd.py
    if (self._autograd is not None and self._autograd.requires_grad) or (other._autograd is not None and other._autograd.requires_grad):
        state = get_state()
        inner = state.entered()
        token = set_state(inner)
        try:
            node = node_class()
            value = next(SEQUENCE)
        finally:
            reset_state(token)
        node.sequence = value
        node.hooks = None
        value_2 = self._autograd
        value_3 = self._view
        if value_2 is None:
            result = None
        else:
            if value_2.grad_fn is not None and (value_3 is None or value_3.version == self._counter[0]):
                result = (value_2.grad_fn, value_2.output_nr)
            else:
                if value_3 is None and value_2.accumulator is not None and value_2.requires_grad:
                    result = (value_2.accumulator, 0, self)
                else:
                    token_3 = set_state(inner)
                    try:
                        result = other_gradient_edge(self)
                    finally:
                        reset_state(token_3)
        value_4 = other._autograd
        value_5 = other._view
        if value_4 is None:
            result_2 = None
        else:
            if value_4.grad_fn is not None and (value_5 is None or value_5.version == other._counter[0]):
                result_2 = (value_4.grad_fn, value_4.output_nr)
            else:
                if value_5 is None and value_4.accumulator is not None and value_4.requires_grad:
                    result_2 = (value_4.accumulator, 0, other)
                else:
                    token_4 = set_state(inner)
                    try:
                        result_2 = other_gradient_edge(other)
                    finally:
                        reset_state(token_4)
        node.next_edges = (result, result_2)
        node.facts = (1,)
        if WATCH.on:
            token_5 = set_state(inner)
            try:
                look_on(operator_derivative, node)
            finally:
                reset_state(token_5)
        # Python: python (backend fallback), dispatch/layers/python.py
        kinds = type(self)
        kinds_2 = type(other)
        found = _HANDLING_get(kinds if kinds is kinds_2 else (kinds, kinds_2))
        result_3 = in_order((kinds, kinds_2)) if found is None else found
        inner_2 = state.memo.get(entered_autograd) or state.after(entered_autograd)
        if result_3:
            asked = result_3[0]
            kind = result_3[0]
            inner_3 = state.memo.get(entered_autograd_above_python) or state.after(entered_autograd_above_python)
            token_6 = set_state(inner_3)
            try:
                result_4 = asked.__torch_dispatch__(op, result_3, (self, other), {})
            finally:
                reset_state(token_6)
            if result_4 is not NotImplemented:
                if not isinstance(result_4, TensorBase):
                    raise no_tensor(schema, result_4)
            else:
                token_7 = set_state(inner_2)
                try:
                    result_4 = ask_in_turn(op, result_3[1:], result_3, (self, other), {})
                finally:
                    reset_state(token_7)
        else:
            token_8 = set_state(inner_2)
            try:
                result_4 = ask_in_turn(op, result_3, result_3, (self, other), {})
            finally:
                reset_state(token_8)
        if isinstance(result_4, TensorBase):
            if (result_4._autograd is None and (not (result_4 is self or result_4 is other))) and result_4._dtype.category >= 2:
                value_9 = result_4._interned or metadata_of(result_4)
                node.outputs = value_9.alone
                token_12 = set_state(inner)
                try:
                    record = ResultRecord()
                finally:
                    reset_state(token_12)
                record.requires_grad = True
                record.grad_fn = node
                record.output_nr = 0
                record.grad = None
                record.accumulator = None
                record.hooks = None
                record.post_accumulate_hooks = None
                record.retains_grad = None
                result_4._autograd = record
                return result_4
        token_13 = set_state(inner)
        try:
            return finish_slow(operator_derivative, op, node, [self, other, 1], result_4)
        finally:
            reset_state(token_13)
    # Python: python (backend fallback), dispatch/layers/python.py
    kinds_3 = type(self)
    kinds_4 = type(other)
    found_2 = _HANDLING_get(kinds_3 if kinds_3 is kinds_4 else (kinds_3, kinds_4))
    result_7 = in_order((kinds_3, kinds_4)) if found_2 is None else found_2
    state = get_state()
    inner_4 = state.memo.get(entered_autograd) or state.after(entered_autograd)
    if result_7:
        asked_2 = result_7[0]
        kind_2 = result_7[0]
        inner_5 = state.memo.get(entered_autograd_above_python) or state.after(entered_autograd_above_python)
        token_9 = set_state(inner_5)
        try:
            result_8 = asked_2.__torch_dispatch__(op, result_7, (self, other), {})
        finally:
            reset_state(token_9)
        if result_8 is not NotImplemented:
            if not isinstance(result_8, TensorBase):
                raise no_tensor(schema, result_8)
        else:
            token_10 = set_state(inner_4)
            try:
                result_8 = ask_in_turn(op, result_7[1:], result_7, (self, other), {})
            finally:
                reset_state(token_10)
    else:
        token_11 = set_state(inner_4)
        try:
            result_8 = ask_in_turn(op, result_7, result_7, (self, other), {})
        finally:
            reset_state(token_11)
    return result_8
