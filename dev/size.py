"""`./rook-dev size`: lines of code by folder, without blanks, comments, docstrings and imports; tables counted apart.

A table is a display of constants at the top of a module: what it holds is data.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections import Counter
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src" / "rookery"
_NO_CODE = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER),
}
_DISPLAYS = (ast.Dict, ast.List, ast.Tuple, ast.Set)


def count(text: str) -> tuple[int, int]:
    """Lines of code in a module, and lines of tables."""
    tree = ast.parse(text)
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_CODE:
            code.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if is_text or isinstance(node, ast.Import | ast.ImportFrom):
            code -= _lines(node)
    tables = set().union(*(_lines(node) for node in tree.body if _is_table(node))) & code
    return len(code - tables), len(tables)


def _lines(node: ast.AST) -> set[int]:
    return set(range(node.lineno, node.end_lineno + 1))  # type: ignore[attr-defined]


def _is_table(node: ast.stmt) -> bool:
    """True for a constant at the top that spans lines and holds nothing but constants and names."""
    if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None or node.lineno == node.end_lineno:
        return False
    value: ast.expr = node.value
    if isinstance(value, ast.Call) and len(value.args) == 1 and not value.keywords:
        value = value.args[0]
    is_text = isinstance(value, ast.Constant | ast.JoinedStr | ast.BinOp)
    parts = (part for part in ast.walk(value))
    return is_text or (isinstance(value, _DISPLAYS) and not any(isinstance(part, ast.Call) for part in parts))


def main() -> None:
    """Print the table."""
    code: Counter[str] = Counter()
    tables: Counter[str] = Counter()
    modules: Counter[str] = Counter()
    for path in SOURCE.rglob("*.py"):
        folder = path.relative_to(SOURCE).parts[0] if path.parent != SOURCE else "."
        lines, table = count(path.read_text())
        code[folder] += lines
        tables[folder] += table
        modules[folder] += 1
    print(f"{'folder':<14}{'modules':>8}{'code':>8}{'tables':>8}")
    for folder, lines in code.most_common():
        print(f"{folder:<14}{modules[folder]:>8}{lines:>8,}{tables[folder]:>8,}")
    print(f"{'all':<14}{modules.total():>8}{code.total():>8,}{tables.total():>8,}")


if __name__ == "__main__":
    main()
