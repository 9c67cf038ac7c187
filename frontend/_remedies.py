"""Remedies of errors: the beginning of a message, a regular expression, and the remedy below it.

`{0}` and so on are the groups of the expression. _hints.py reads the table, and says when.
"""

TABLE = r"""
# shapes

mat1 and mat2 shapes cannot be multiplied \((\d+)x(\d+) and (\d+)x(\d+)\)
    the columns of the first must be as many as the rows of the second ({1} and {2} here): a @ b.T turns the
    second; nn.Linear({1}, ...) takes {1} features
The size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\) at non-singleton dimension (\d+)
    sizes are compared from the last dimension back, and each pair must be equal or have a 1: look at the
    shapes, and x.unsqueeze(dim) gives a dimension of size 1
Sizes of tensors must match except in dimension
    torch.cat joins along one dimension, `dim`; all others must be equal
stack expects each tensor to be equal size
    nn.utils.rnn.pad_sequence makes them equal; torch.cat joins along a dimension that is there
shape '.*' is invalid for input of size (\d+)
    the product of the sizes must be {0}; -1 for one of them is worked out, as in x.reshape(-1, 2)
The expanded size of the tensor \((\d+)\) must match the existing size \((\d+)\)
    only dimensions of size 1 expand; x.unsqueeze(dim) gives one, x.repeat(...) copies
output with shape .* doesn't match the broadcast shape
    in-place operators cannot grow what they write: x = x + y makes a new tensor
Dimension out of range \(expected to be in range of \[(-?\d+), (-?\d+)\]
    dimensions count from 0, or from -1 backwards; x.shape shows them
batch1 must be a 3D tensor
    torch.bmm multiplies batches; a @ b takes matrices, vectors and batches
self must be a matrix
    torch.mm multiplies matrices; a @ b takes vectors, too
inconsistent tensor size, expected tensor
    the two vectors must have as many elements; a[:n] takes the first n
Trying to create tensor with negative dimension
    a size is 0 or more; look at what computed it
expected sequence of length \d+ at dim
    the rows of a tensor are equally long: pad the lists, or nn.utils.rnn.pad_sequence([tensor(row) for row in
    rows])
too many dimensions 'str'
    tensors hold numbers: give each string a number, as in {{word: i for i, word in ...}}
a Tensor with \d+ elements cannot be converted to Scalar
    x[i].item() takes one element, x.tolist() all, x.sum().item() their sum
only one element tensors can be converted to Python scalars
    x.tolist() gives all of them, x[i].item() one
Boolean value of Tensor with more than one value is ambiguous
    (x > 0).any() or .all() is one truth; torch.where(condition, a, b) chooses element by element; & and | stand
    for `and` and `or`
Boolean value of Tensor with no values is ambiguous
    ask x.numel() > 0 whether there are elements
(too many|not enough) values to unpack
    iterating goes over dimension 0: x.shape[0] is how many there are
iteration over a 0-d tensor|len\(\) of a 0-d tensor
    it holds one number: x.item() is it, x.reshape(1) a vector of it
index (-?\d+) is out of bounds for dimension (\d+) with size (\d+)
    indices go from 0 to size - 1, or from -1 backwards; len(x) is the size of dimension 0
too many indices for tensor of dimension (\d+)
    it has {0} dimension(s), and takes as many indices; x.shape shows them
tensors used as indices must be long
    x.long() makes indices of numbers, x > 0 a mask
The shape of the mask
    a mask has the shape of what it chooses from, or of its first dimensions
gather\(\): Expected dtype int
    the index says places: index.long()
unsupported operation: more than one element of the written-to tensor
    x.clone() has memory for each element

# dtypes and devices

expected m1 and m2 to have the same dtype|(mat1|self) and mat2 must have the same dtype
    x.float() or x.to(w.dtype) brings one to the other's dtype
Only Tensors of floating point and complex dtype can require gradients
    x.float(), or a dtype such as torch.float32 where it is made: 1. instead of 1
result type (\w+) can't be cast to the desired output type
    what is written keeps its dtype: x = x + y makes a new tensor, x.float() first makes room for fractions
mean\(\): could not infer output dtype
    x.float().mean(), or x.mean(dtype=torch.float32)
expected target dtype to be Long or Byte
    the target holds the number of a class for each row: target.long(); for probabilities give it the shape of
    the input
Expected tensor for argument #1 'indices'
    an embedding is looked up by whole numbers: x.long()
Expected one of cpu, cuda
    an accelerator of NVIDIA is 'cuda'; torch.cuda.is_available() says whether there is one
Torch not compiled with CUDA enabled
    device = 'cuda' if torch.cuda.is_available() else 'cpu', and x.to(device)
(\w+)\(\): argument 'dtype' must be torch.dtype, not str
    dtypes are objects: dtype=torch.float32

# what functions take

(\w+)\(\): argument '(\w+)' \(position \d+\) must be Tensor, not numpy.ndarray
    torch.from_numpy(x) makes a tensor of it
(\w+)\(\): argument '(\w+)' \(position \d+\) must be Tensor, not (\w+)
    torch.tensor(x) makes a tensor of it
(\w+)\(\): argument '(\w+)' \(position \d+\) must be tuple of ints, not
    sizes are ints: int(n), or n // 2 instead of n / 2
(\w+)\(\) received an invalid combination of arguments
    the lines above are the forms that there are; help(torch.{0}) says what the arguments mean
(\w+)\(\) missing \d+ required positional arguments
    help(torch.{0}) says what it takes

# gradients

a leaf Variable that requires grad is being used in an in-place operation
    x = x + 1 makes a new tensor; to change a parameter itself, write it in `with torch.no_grad():`
Trying to backward through the graph a second time
    make the loss anew for each backward; what is carried over from the last step is cut off by .detach();
    backward(retain_graph=True) keeps the graph
element 0 of tensors does not require grad
    x = torch.ones(2, requires_grad=True), and nothing in between under no_grad, .detach(), .item() or numpy
grad can be implicitly created only for scalar outputs
    a loss is one number: loss.sum().backward() or .mean(); or give the gradient of each,
    y.backward(torch.ones_like(y))
Can't call numpy\(\) on Tensor that requires grad
    x.detach().numpy()
one of the variables needed for gradient computation has been modified by an inplace
    x = x + 1 in the place of x += 1 keeps what backward needs; x.clone() saves a copy of it
The differentiated Tensor at index \d+ appears to not have been used
    allow_unused=True gives None for it
you can only change requires_grad flags of leaf
    y.detach() is the value without its history
function \w+ returned an incorrect number of gradients \(expected (\d+), got (\d+)\)
    backward returns one for each argument of forward, None where there is none: {0} here
attempting to assign a gradient of size
    x.grad = None clears it; a gradient has the shape of its tensor
can't optimize a non-leaf Tensor
    pass the leaf itself, or y.detach().requires_grad_(); model.to(device) before the optimizer
grad_and_value\(f\)\(\*args\): Expected f
    let the function end with .sum() or .mean(); jacrev takes vectors
Only Tensors created explicitly by the user
    y.detach().clone() is a copy without history
Legacy autograd function
    a Function is called by its class: F.apply(x), with no object made
Trying to backward through (\S+) but no autograd formula
    f.register_autograd(backward, setup_context=...) adds one

# layers, losses and optimizers

Given groups=(\d+), weight of size \[(\d+), (\d+).* to have (\d+) channels, but got (\d+) channels
    pictures are (batch, channels, height, width): nn.Conv2d({4}, ...) takes {4} channels
Calculated padded input size per channel
    padding=... or a smaller kernel; pooling before it makes pictures small
Expected 3D \(unbatched\) or 4D \(batched\) input to conv2d
    x.unsqueeze(0) gives a picture its channel: (channels, height, width)
Expected more than 1 value per channel when training
    take batches of 2 or more (drop_last=True), or model.eval()
running_mean should contain (\d+) elements not (\d+)
    the layer was made for {1} features, and got {0}: they are dimension 1
index out of range in self
    nn.Embedding(n, ...) has the numbers 0 to n - 1: is n as many as there are words?
Given normalized_shape=
    nn.LayerNorm takes the sizes of the last dimensions of its input
input.size\(-1\) must be equal to input_size. Expected (\d+), got (\d+)
    the last dimension holds the features; batch_first says which of the others is the batch
was expecting embedding dimension of (\d+), but got (\d+)
    the last dimension of the query must be {0}, as embed_dim says
embed_dim must be divisible by num_heads
    each head takes embed_dim / num_heads: choose a divisor
dropout probability has to be between 0 and 1
    p is the share that is dropped: 0.5 for one half
Using a target size .* that is different to the input size
    y.view_as(x), x.squeeze(-1): both of one shape
Target -?\d+ is out of bounds
    classes count from 0 to the number of columns - 1
Error\(s\) in loading state_dict
    the model must be made with the sizes that were saved; strict=False leaves out missing and unexpected names
optimizer got an empty parameter list
    pass model.parameters() anew, not an iterator used up; layers in a plain list are no part of a model:
    nn.ModuleList
cannot assign (module|parameters?) before Module.__init__\(\) call
    begin __init__ with super().__init__()
Module \[\w+\] is missing the required "forward" function
    define forward(self, x); look whether its name is spelled so
cannot assign '.*' as parameter '(\w+)'
    nn.Parameter(x), or under no_grad: layer.{0}.copy_(x)
list is not a Module subclass
    nn.Sequential(*layers)
torch.nn.functional.(\w+) is not a Module subclass
    layers are classes, nn.ReLU(); functions are called in forward
'\w+' object is not iterable
    an optimizer takes model.parameters(); a sequence takes [x]
Invalid learning rate:
    lr is 0 or more
linalg\.inv: .* singular
    torch.linalg.pinv(x), or x + eps * torch.eye(n); solve(a, b) instead of inv(a) @ b
linalg\.cholesky:
    the matrix must be symmetric with positive eigenvalues: x @ x.T + eps * torch.eye(n)

# transforms

vmap: It looks like you're attempting to use a Tensor in some data-dependent
    torch.where(condition, a, b) in the place of `if`; torch.cond(condition, f, g, args) runs one of two
    functions
vmap: It looks like you're calling .item\(\)
    stay with tensors: x instead of x.item(), torch.where instead of `if`
vmap: Expected all tensors to have the same size in the mapped dimension
    in_dims says which dimension of each argument is the batch, None which has none: in_dims=(0, None)
vmap\(.*Got in_dim=\d+ for an input but the input is of type
    torch.tensor(x), or in_dims=None for what is no batch
vmap: called random operation
    vmap(f, randomness='different') draws for each example, 'same' once for all

# extensions

Unable to cast (.*) to Tensor
    a handler or kernel returns a tensor: is there a `return`? torch.tensor(x) makes one of a number
'NoneType' object has no attribute|unsupported operand type\(s\) for .+: 'NoneType'
    something returned nothing: is a `return` missing in a function, a `forward` or a handler?
infer_schema\(func\): Parameter (\w+) must have a type annotation
    def f({0}: torch.Tensor) -> torch.Tensor
.* The output of this custom operator \(1\) must not also be an input
    return x.clone()
opcheck\(op, \.\.\.\): test_schema failed with Argument (\w+) is not defined as mutable
    mutates_args=('{0}',) says that it is written
Tried to register an operator
    one define() a schema; `with Library(...) as lib:` takes it back at the end
Only a single TORCH_LIBRARY can be used
    Library(name, 'FRAGMENT') adds to a namespace
impl\(.*Explicitly provided namespace
    make a Library of that namespace: Library('other', 'IMPL')
(\S+) takes (\d+) positional arguments? but (\d+) (was|were) given
    a kernel or handler takes the arguments of the schema, in its order; a handler `(cls, func, types, args=(),
    kwargs=None)`
expected arrow but found
    a schema ends with its result: f(Tensor x) -> Tensor, or -> ()
expected a name of the form 'namespace::name'
    custom_op('mylib::f', ...)
.* does not take the arguments of
    give it the parameters of the operator
Can't (get|pickle) .*(<locals>|lambda)
    define the class or function at the top of a module, or save model.state_dict()
<.*> ends, but it is not among the active modes
    leave a mode as often as it is entered; `with mode:` does
"""
