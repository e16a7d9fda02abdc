"""A small part of Python, translated to LLVM's language.

Numba understands most of Python and of NumPy, and takes about a millisecond for each operation of
a loop.  Loops over tables of numbers need little of that:

    numbers     int (64 bits), float (double) and bool; a variable keeps the kind of its first value
    vectors     arrays and rows of tables (`addresses`): v[i] is read and written, unchecked
    tuples      of these, packed and unpacked
    statements  assignments, if, while, for over ranges of known step, continue, break, return
    operators   + - * / >> and comparisons; and, or, not, conditional expressions
    functions   abs, min and max of two, `larger`, int, float, math.sqrt, math.isfinite, and others
                that are written in this part of Python

Everything else (None, texts, objects, modules, and what is made of them and of numbers written out)
is known while translating.  A branch that such a value decides is the only one that is translated;
so one text serves several ways to store things.  A function is translated once for each kind of
arguments.
"""

from __future__ import annotations

import ast
import functools
import inspect
import math
import operator
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any, NamedTuple, NoReturn

from llvmlite import ir

from anynorm.design.addresses import Length, Rows, Vector, is_kind, larger

_WORD, _DOUBLE, _BIT = ir.IntType(64), ir.DoubleType(), ir.IntType(1)
_ITEMS = {
    "int64": (_WORD, int, 8),
    "int32": (ir.IntType(32), int, 4),
    "uint64": (_WORD, int, 8),
    "uint32": (ir.IntType(32), int, 4),
    "float64": (_DOUBLE, float, 8),
    "float32": (ir.FloatType(), float, 4),
}
_CODES = {int: _WORD, float: _DOUBLE, bool: _BIT}
# Sums may be reordered (several accumulators, fused multiply-add); NaN and inf keep their meaning.
_REORDER = ("reassoc", "contract", "nsz")
_NO_NAN = ("nnan", "nsz")  # where the code says so itself
_ARITHMETIC: dict[type, tuple[Callable[..., Any], str, str]] = {
    ast.Add: (operator.add, "add", "fadd"),
    ast.Sub: (operator.sub, "sub", "fsub"),
    ast.Mult: (operator.mul, "mul", "fmul"),
    ast.Div: (operator.truediv, "", "fdiv"),
    ast.RShift: (operator.rshift, "ashr", ""),
}
_COMPARISONS: dict[type, tuple[Callable[..., Any], str]] = {
    ast.Lt: (operator.lt, "<"),
    ast.LtE: (operator.le, "<="),
    ast.Gt: (operator.gt, ">"),
    ast.GtE: (operator.ge, ">="),
    ast.Eq: (operator.eq, "=="),
    ast.NotEq: (operator.ne, "!="),
    ast.Is: (operator.is_, ""),
    ast.IsNot: (operator.is_not, ""),
}


class Known(NamedTuple):
    """In the place of a kind: a value that is known while translating."""

    value: Any


class Value(NamedTuple):
    """A number or a vector that the code computes; its kind is int, float, bool or a Vector."""

    kind: Any
    code: Any


def translate(function: Callable[..., Any], *given: Any) -> str:
    """LLVM's text for a function and all that it calls.

    Parameters
    ----------
    function : callable
        Written in the part of Python that this module knows.
    given : int, float, Vector or object
        For each of its parameters the kind of what it will be given or, where it is known already,
        the value.

    Examples
    --------
    >>> from anynorm.design.lowering import translate
    >>> from anynorm.solvers.one_norm.knots import one_norm
    >>> translate(one_norm, int, int).count("define")
    1
    """
    translation = _Translation()
    kinds = tuple(one if is_kind(one) else Known(one) for one in given)
    translation.function(function, kinds, public=True)
    return str(translation.module)


@functools.cache
def _definitions(module: ModuleType) -> dict[str, ast.FunctionDef]:
    """The functions of a module, as they are written."""
    found = ast.parse(inspect.getsource(module)).body
    return {node.name: node for node in found if isinstance(node, ast.FunctionDef)}


def _code_of(kind: Any) -> Any:
    """LLVM's type for values of a kind; a tuple is a structure, None nothing."""
    if isinstance(kind, Vector):
        return _ITEMS[kind.item][0].as_pointer()
    if isinstance(kind, tuple):
        return ir.LiteralStructType([_code_of(one) for one in kind])
    return ir.VoidType() if kind is None else _CODES[kind]


class _Translation:
    """A module of functions, each translated once for each kind of arguments."""

    def __init__(self) -> None:
        self.module = ir.Module("anynorm")
        self._done: dict[Any, tuple[Any, Any]] = {}

    def function(
        self, function: Callable[..., Any], given: tuple[Any, ...], public: bool = False
    ) -> tuple[Any, Any]:
        """The translated function and the kind of its result."""
        key = function, given
        if key not in self._done:
            # The kind of its result is needed to begin with, and known when it is translated.
            result = _Body(self, function, given, public, ir.Module(), _UNKNOWN).result
            code = _Body(self, function, given, public, self.module, result).function
            code.linkage = "" if public else "internal"
            self._done[key] = code, result
        return self._done[key]


_UNKNOWN = object()  # the kind of a result that is to be found out


class _Body:
    """One function, statement after statement."""

    def __init__(
        self,
        translation: _Translation,
        function: Callable[..., Any],
        given: tuple[Any, ...],
        public: bool,
        module: Any,
        result: Any,
    ) -> None:
        assert isinstance(function, FunctionType)
        home = inspect.getmodule(function)
        assert home is not None
        self.translation, self.globals = translation, function.__globals__
        self.name, self.node = function.__name__, _definitions(home)[function.__name__]
        self.learning, self.result = result is _UNKNOWN, result
        kinds = [int if public and isinstance(kind, Vector) else kind for kind in given]
        computed = [_code_of(kind) for kind in kinds if not isinstance(kind, Known)]
        kind = ir.FunctionType(_code_of(None if self.learning else result), computed)
        self.function = ir.Function(module, kind, module.get_unique_name(self.name))
        self.entry = ir.IRBuilder(self.function.append_basic_block("entry"))
        self.builder = ir.IRBuilder(self.function.append_basic_block("body"))
        self.names: dict[str, Any] = {}  # places in memory, or values that are known
        self.loops: list[tuple[Any, Any]] = []  # where continue and break go
        codes = iter(self.function.args)
        for parameter, one in zip(self.node.args.args, given, strict=True):
            if isinstance(one, Known):
                value = one.value
            elif public and isinstance(one, Vector):
                value = self._numbers_of(one, next(codes))
            else:
                value = self._packed(one, next(codes))
            self._assign_name(parameter.arg, value, self.node)
        if self._block(self.node.body):
            self._return(None, self.node)
        if self.learning and self.result is _UNKNOWN:
            self.result = None
        self.entry.branch(self.function.blocks[1])

    def _numbers_of(self, kind: Vector, array: Any) -> Value:
        """Where the numbers of a NumPy array are: its first field after those of all objects."""
        header = ir.Constant(_WORD, object.__basicsize__)
        field = self.builder.inttoptr(self.builder.add(array, header), _WORD.as_pointer())
        return Value(kind, self.builder.inttoptr(self.builder.load(field), _code_of(kind)))

    def _fail(self, node: ast.AST, why: str) -> NoReturn:
        raise TypeError(f"{self.name}, line {getattr(node, 'lineno', 0)} of its module: {why}")

    # ------------------------------------------------------------ statements

    def _block(self, statements: list[ast.stmt]) -> bool:
        """Translate them; whether the end is reached."""
        return all(self._statement(statement) for statement in statements)

    def _statement(self, node: ast.stmt) -> bool:
        if isinstance(node, ast.Assign):
            value = self._expression(node.value)
            for target in node.targets:
                self._assign(target, value)
        elif isinstance(node, ast.AugAssign):
            left, right = self._expression(node.target), self._expression(node.value)
            self._assign(node.target, self._arithmetic(node, left, right))
        elif isinstance(node, ast.Expr):
            self._expression(node.value)
        elif isinstance(node, ast.If):
            return self._if(node)
        elif isinstance(node, ast.While):
            self._while(node)
        elif isinstance(node, ast.For):
            self._for(node)
        elif isinstance(node, ast.Return):
            self._return(None if node.value is None else self._expression(node.value), node)
            return False
        elif isinstance(node, ast.Continue | ast.Break):
            self.builder.branch(self.loops[-1][isinstance(node, ast.Break)])
            return False
        else:
            self._fail(node, f"{type(node).__name__} is not a part of what is translated")
        return True

    def _assign(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Name):
            self._assign_name(target.id, value, target)
        elif isinstance(target, ast.Tuple):
            for one, own in zip(target.elts, value, strict=True):
                self._assign(one, own)
        elif isinstance(target, ast.Subscript):
            vector, place = self._expression(target.value), self._expression(target.slice)
            code, kind, n_bytes = _ITEMS[vector.kind.item]
            number = self._converted(value, kind, target).code
            if code != _CODES[kind]:
                number = (self.builder.trunc if kind is int else self.builder.fptrunc)(number, code)
            self.builder.store(number, self._place(vector, place, target), align=n_bytes)
        else:
            self._fail(target, "only names and entries of vectors can be assigned")

    def _assign_name(self, name: str, value: Any, node: ast.AST) -> None:
        if isinstance(value, tuple) and not isinstance(value, Value):
            own_names = tuple(f"{name}.{k}" for k in range(len(value)))
            if self.names.setdefault(name, own_names) != own_names:
                self._fail(node, f"{name!r} is something else already")
            for own, one in zip(self.names[name], value, strict=True):
                self._assign_name(own, one, node)
            return
        before = self.names.get(name)
        if not isinstance(value, Value | bool | int | float):
            if before not in (None, Known(value)):
                self._fail(node, f"{name!r} has another value already")
            self.names[name] = Known(value)
            return
        value = self._computed(value)
        if before is not None and not isinstance(before, Value):
            self._fail(node, f"{name!r} is something else already")
        if before is None:
            place = self.entry.alloca(_code_of(value.kind))
            self.names[name] = Value(value.kind, place)
        variable = self.names[name]
        self.builder.store(self._converted(value, variable.kind, node).code, variable.code)

    def _if(self, node: ast.If) -> bool:
        test = self._expression(node.test)
        if not isinstance(test, Value):
            return self._block(node.body if test else node.orelse)
        ways = [self.function.append_basic_block(name) for name in ("then", "otherwise")]
        self.builder.cbranch(self._truth(test), *ways)
        ends = []
        for way, statements in zip(ways, (node.body, node.orelse), strict=True):
            self.builder.position_at_end(way)
            if self._block(statements):
                ends.append(self.builder.block)
        if not ends:
            return False
        self._meet(ends)
        return True

    def _meet(self, ends: list[Any]) -> None:
        """Go on in a new block that all of these lead to."""
        after = self.function.append_basic_block("after")
        for end in ends:
            self.builder.position_at_end(end)
            self.builder.branch(after)
        self.builder.position_at_end(after)

    def _while(self, node: ast.While) -> None:
        names = "test", "turn", "after"
        test, turn, after = (self.function.append_basic_block(name) for name in names)
        self.builder.branch(test)
        self.builder.position_at_end(test)
        self.builder.cbranch(self._truth(self._computed(self._expression(node.test))), turn, after)
        self._turns(node.body, turn, test, after)

    def _turns(self, statements: list[ast.stmt], turn: Any, following: Any, after: Any) -> None:
        self.builder.position_at_end(turn)
        self.loops.append((following, after))
        if self._block(statements):
            self.builder.branch(following)
        self.loops.pop()
        self.builder.position_at_end(after)

    def _for(self, node: ast.For) -> None:
        call = node.iter
        if not (isinstance(call, ast.Call) and self._expression(call.func) is range):
            self._fail(node, "only ranges are gone through")
        limits = [self._expression(argument) for argument in call.args]
        start, stop, step = {1: [0, *limits, 1], 2: [*limits, 1], 3: limits}[len(limits)]
        if not isinstance(step, int):
            self._fail(node, "the step must be known")
        bounds = [self._converted(one, int, node).code for one in (start, stop)]
        counter = self.entry.alloca(_WORD)
        self.builder.store(bounds[0], counter)
        names = "test", "turn", "step", "after"
        test, turn, following, after = (self.function.append_basic_block(name) for name in names)
        self.builder.branch(test)
        self.builder.position_at_end(test)
        here, sign = self.builder.load(counter), "<" if step > 0 else ">"
        self.builder.cbranch(self.builder.icmp_signed(sign, here, bounds[1]), turn, after)
        self.builder.position_at_end(following)
        here = self.builder.load(counter)
        self.builder.store(self.builder.add(here, ir.Constant(_WORD, step), flags=["nsw"]), counter)
        self.builder.branch(test)
        self.builder.position_at_end(turn)
        self._assign(node.target, Value(int, self.builder.load(counter)))
        self._turns(node.body, turn, following, after)

    def _return(self, value: Any, node: ast.AST) -> None:
        if isinstance(value, tuple) and not isinstance(value, Value):
            value = tuple(self._computed(one) for one in value)
            kind: Any = tuple(one.kind for one in value)
        elif value is not None:
            value = self._computed(value)
            kind = value.kind
        else:
            kind = None
        if self.learning:
            if self.result not in (_UNKNOWN, kind):
                self._fail(node, f"returns {kind} here and {self.result} before")
            self.result = kind
            self.builder.unreachable()
        elif value is None:
            self.builder.ret_void()
        else:
            self.builder.ret(self._unpacked(value))

    # ------------------------------------------------------------ expressions

    def _expression(self, node: ast.expr) -> Any:
        """A Value, a tuple of them, or what is known."""
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            return self._read(node.id, node)
        if isinstance(node, ast.Tuple):
            return tuple(self._expression(one) for one in node.elts)
        if isinstance(node, ast.Attribute):
            return getattr(self._expression(node.value), node.attr)
        if isinstance(node, ast.Subscript):
            return self._entry(node)
        if isinstance(node, ast.BinOp):
            return self._arithmetic(node, self._expression(node.left), self._expression(node.right))
        if isinstance(node, ast.UnaryOp):
            return self._unary(node)
        if isinstance(node, ast.Compare):
            return self._comparison(node)
        if isinstance(node, ast.BoolOp):
            return self._conditions(isinstance(node.op, ast.And), node.values)
        if isinstance(node, ast.IfExp):
            return self._choice(node)
        if isinstance(node, ast.Call):
            return self._call(node)
        self._fail(node, f"{type(node).__name__} is not a part of what is translated")

    def _read(self, name: str, node: ast.AST) -> Any:
        if name not in self.names:
            if name in self.globals:
                return self.globals[name]
            if name in _BUILTINS:
                return _BUILTINS[name]
            self._fail(node, f"{name!r} has no value")
        found = self.names[name]
        if isinstance(found, Known):
            return found.value
        if isinstance(found, Value):
            return Value(found.kind, self.builder.load(found.code))
        return tuple(self._read(one, node) for one in found)

    def _entry(self, node: ast.Subscript) -> Any:
        vector, place = self._expression(node.value), self._expression(node.slice)
        if not isinstance(vector, Value):
            return vector[place]
        code, kind, n_bytes = _ITEMS[vector.kind.item]
        found = self.builder.load(self._place(vector, place, node), align=n_bytes)
        if code != _CODES[kind]:
            whole = self.builder.zext if vector.kind.item.startswith("u") else self.builder.sext
            found = (whole if kind is int else self.builder.fpext)(found, _CODES[kind])
        return Value(kind, found)

    def _place(self, vector: Any, place: Any, node: ast.AST) -> Any:
        if not (isinstance(vector, Value) and isinstance(vector.kind, Vector)):
            self._fail(node, "only vectors have entries")
        return self.builder.gep(vector.code, [self._converted(place, int, node).code])

    def _arithmetic(self, node: Any, left: Any, right: Any) -> Any:
        known, whole, broken = _ARITHMETIC[type(node.op)]
        if not (isinstance(left, Value) or isinstance(right, Value)):
            return known(left, right)
        left, right = self._computed(left), self._computed(right)
        if whole and float not in (left.kind, right.kind):
            left, right = self._converted(left, int, node), self._converted(right, int, node)
            return Value(int, getattr(self.builder, whole)(left.code, right.code))
        left, right = self._converted(left, float, node), self._converted(right, float, node)
        return Value(float, getattr(self.builder, broken)(left.code, right.code, flags=_REORDER))

    def _unary(self, node: ast.UnaryOp) -> Any:
        value = self._expression(node.operand)
        if isinstance(node.op, ast.Not):
            if not isinstance(value, Value):
                return not value
            return Value(bool, self.builder.not_(self._truth(value)))
        if not isinstance(value, Value):
            return -value
        negative = self.builder.fneg if value.kind is float else self.builder.neg
        return Value(value.kind, negative(value.code))

    def _comparison(self, node: ast.Compare) -> Any:
        sides = [self._expression(side) for side in (node.left, *node.comparators)]
        found: Any = True
        for sign, left, right in zip(node.ops, sides[:-1], sides[1:], strict=True):
            known, symbol = _COMPARISONS[type(sign)]
            if not (isinstance(left, Value) or isinstance(right, Value)):
                here: Any = known(left, right)
            else:
                here = self._compared(symbol, left, right, node)
            found = here if found is True else self._both(found, here)
        return found

    def _both(self, first: Any, second: Any) -> Any:
        first, second = self._computed(first), self._computed(second)
        return Value(bool, self.builder.and_(first.code, second.code))

    def _compared(self, symbol: str, left: Any, right: Any, node: ast.AST) -> Value:
        left, right = self._computed(left), self._computed(right)
        if float in (left.kind, right.kind):
            left, right = self._converted(left, float, node), self._converted(right, float, node)
            # Nothing is equal to NaN, and everything differs from it.
            compare = self.builder.fcmp_unordered if symbol == "!=" else self.builder.fcmp_ordered
            return Value(bool, compare(symbol, left.code, right.code, flags=_REORDER))
        left, right = self._converted(left, int, node), self._converted(right, int, node)
        return Value(bool, self.builder.icmp_signed(symbol, left.code, right.code))

    def _conditions(self, all_of_them: bool, nodes: list[ast.expr]) -> Any:
        """And, or: what comes later is not computed where it does not matter."""
        first = self._expression(nodes[0])
        if len(nodes) == 1:
            return first
        if not isinstance(first, Value):
            return self._conditions(all_of_them, nodes[1:]) if bool(first) == all_of_them else first
        truth, begin = self._truth(first), self.builder.block
        more = self.function.append_basic_block("more")
        after = self.function.append_basic_block("decided")
        self.builder.cbranch(truth, *((more, after) if all_of_them else (after, more)))
        self.builder.position_at_end(more)
        rest = self._truth(self._computed(self._conditions(all_of_them, nodes[1:])))
        end = self.builder.block
        self.builder.branch(after)
        self.builder.position_at_end(after)
        met = self.builder.phi(_BIT)
        met.add_incoming(ir.Constant(_BIT, not all_of_them), begin)
        met.add_incoming(rest, end)
        return Value(bool, met)

    def _choice(self, node: ast.IfExp) -> Any:
        test = self._expression(node.test)
        if not isinstance(test, Value):
            return self._expression(node.body if test else node.orelse)
        names = "if_so", "if_not"
        ways = [self.function.append_basic_block(name) for name in names]
        self.builder.cbranch(self._truth(test), *ways)
        values, ends = [], []
        for way, own in zip(ways, (node.body, node.orelse), strict=True):
            self.builder.position_at_end(way)
            values.append(self._computed(self._expression(own)))
            ends.append(self.builder.block)
        kinds = {value.kind for value in values}
        kind = kinds.pop() if len(kinds) == 1 else float
        for k, end in enumerate(ends):
            self.builder.position_at_end(end)
            values[k] = self._converted(values[k], kind, node)
        self._meet(ends)
        chosen = self.builder.phi(_code_of(kind))
        for value, end in zip(values, ends, strict=True):
            chosen.add_incoming(value.code, end)
        return Value(kind, chosen)

    # ------------------------------------------------------------ calls

    def _call(self, node: ast.Call) -> Any:
        called = self._expression(node.func)
        given = [self._expression(argument) for argument in node.args]
        if isinstance(called, Rows | Length):
            return self._of_table(called, [self._converted(one, int, node).code for one in given])
        if called in _NUMERIC:
            return getattr(self, _NUMERIC[called])(node, *given)
        if not isinstance(called, FunctionType):
            self._fail(node, f"{ast.unparse(node.func)} cannot be called")
        kinds, codes = [], []
        for one in given:
            if isinstance(one, tuple) and not isinstance(one, Value):
                one = tuple(self._computed(part) for part in one)
                kinds.append(tuple(part.kind for part in one))
            elif isinstance(one, Value | int | float):
                one = self._computed(one)
                kinds.append(one.kind)
            else:
                kinds.append(Known(one))
                continue
            codes.append(self._unpacked(one))
        function, kind = self.translation.function(called, tuple(kinds))
        result = self.builder.call(function, codes)
        return None if kind is None else self._packed(kind, result)

    def _of_table(self, called: Any, given: list[Any]) -> Value:
        """A row of a table, or the length of its rows."""
        builder, start = self.builder, self.builder.inttoptr(given[0], _WORD.as_pointer())

        def listed(place: int) -> Any:
            return builder.load(builder.gep(start, [ir.Constant(_WORD, place)]), align=8)

        length = listed(2 * called.table + 1)
        if isinstance(called, Length):
            return Value(int, length)
        kind = Vector(called.item)
        first = builder.inttoptr(listed(2 * called.table), _code_of(kind))
        return Value(kind, builder.gep(first, [builder.mul(length, given[1])]))

    def _intrinsic(self, name: str, value: Any) -> Value:
        function = self.function.module.globals.get(name)
        if function is None:
            kind = ir.FunctionType(_DOUBLE, [_DOUBLE])
            function = ir.Function(self.function.module, kind, name)
        return Value(float, self.builder.call(function, [value.code], fastmath=_REORDER))

    def _size(self, node: ast.AST, value: Any) -> Any:
        if not isinstance(value, Value):
            return abs(value)
        if value.kind is not float:
            return self._largest(node, value, Value(int, self.builder.neg(value.code)))
        return self._intrinsic("llvm.fabs.f64", value)

    def _root(self, node: ast.AST, value: Any) -> Any:
        return self._intrinsic("llvm.sqrt.f64", self._converted(value, float, node))

    def _finite(self, node: ast.AST, value: Any) -> Any:
        size = self._size(node, self._converted(value, float, node))
        return self._compared("<", size, math.inf, node)

    def _largest(self, node: ast.AST, first: Any, second: Any) -> Any:
        return self._extreme(">", first, second, node)

    def _smallest(self, node: ast.AST, first: Any, second: Any) -> Any:
        return self._extreme("<", first, second, node)

    def _extreme(self, symbol: str, first: Any, second: Any, node: ast.AST) -> Any:
        first, second = self._computed(first), self._computed(second)
        kind = float if float in (first.kind, second.kind) else int
        first, second = self._converted(first, kind, node), self._converted(second, kind, node)
        taken = self._compared(symbol, second, first, node).code
        return Value(kind, self.builder.select(taken, second.code, first.code))

    def _larger(self, node: ast.AST, first: Any, second: Any) -> Any:
        """As `_largest` of two floats, which are no NaN: of many, in any order."""
        first, second = self._converted(first, float, node), self._converted(second, float, node)
        taken = self.builder.fcmp_ordered(">", second.code, first.code, flags=_NO_NAN)
        return Value(float, self.builder.select(taken, second.code, first.code, flags=_NO_NAN))

    def _whole(self, node: ast.AST, value: Any) -> Any:
        value = self._computed(value)
        if value.kind is float:
            return Value(int, self.builder.fptosi(value.code, _WORD))
        return self._converted(value, int, node)

    def _broken(self, node: ast.AST, value: Any) -> Any:
        return self._converted(value, float, node)

    # ------------------------------------------------------------ kinds

    def _computed(self, value: Any) -> Value:
        """A number as a Value."""
        if isinstance(value, Value):
            return value
        kind = next((kind for kind in (bool, int, float) if isinstance(value, kind)), None)
        if kind is None:
            raise TypeError(f"{self.name}: {value!r} is no number")
        return Value(kind, ir.Constant(_CODES[kind], value))

    def _converted(self, value: Any, kind: Any, node: ast.AST) -> Value:
        """A value of another kind, if no digits are lost by that."""
        value = self._computed(value)
        if value.kind == kind:
            return value
        if value.kind is bool and kind is int:
            return Value(int, self.builder.zext(value.code, _WORD))
        if value.kind in (bool, int) and kind is float:
            whole = self._converted(value, int, node)
            return Value(float, self.builder.sitofp(whole.code, _DOUBLE))
        self._fail(node, f"{value.kind} where {kind} is needed")

    def _truth(self, value: Value) -> Any:
        return value.code if value.kind is bool else self._compared("!=", value, 0, self.node).code

    def _packed(self, kind: Any, code: Any) -> Any:
        """What passes between functions as a Value, or as a tuple of them."""
        if not isinstance(kind, tuple) or isinstance(kind, Vector):
            return Value(kind, code)
        return tuple(
            self._packed(one, self.builder.extract_value(code, k)) for k, one in enumerate(kind)
        )

    def _unpacked(self, value: Any) -> Any:
        if isinstance(value, Value):
            return value.code
        whole = ir.Constant(_code_of(tuple(one.kind for one in value)), ir.Undefined)
        for k, one in enumerate(value):
            whole = self.builder.insert_value(whole, one.code, k)
        return whole


_BUILTINS = {"abs": abs, "max": max, "min": min, "int": int, "float": float, "range": range}
_NUMERIC: dict[Any, str] = {
    abs: "_size",
    max: "_largest",
    min: "_smallest",
    larger: "_larger",
    int: "_whole",
    float: "_broken",
    math.sqrt: "_root",
    math.isfinite: "_finite",
}
