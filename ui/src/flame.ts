// Folded stacks as boxes of a flame graph: innermost above.

export interface Box {
  name: string;
  depth: number;
  /** Where it begins and how wide it is, of the whole. */
  x: number;
  width: number;
  value: number;
}

interface Node {
  value: number;
  children: Map<string, Node>;
}

/** The boxes of lines as `a;b;c` with their weights; those narrower than `least` are left out. */
export function boxes(lines: [string, number][], least: number): { total: number; boxes: Box[] } {
  const root: Node = { value: 0, children: new Map() };
  for (const [stack, value] of lines) {
    root.value += value;
    let node = root;
    for (const name of stack.split(";")) {
      let child = node.children.get(name);
      if (!child) node.children.set(name, (child = { value: 0, children: new Map() }));
      child.value += value;
      node = child;
    }
  }
  const found: Box[] = [];
  const total = root.value;
  const walk = (node: Node, depth: number, from: number): void => {
    let x = from;
    const children = [...node.children].sort((a, b) => b[1].value - a[1].value);
    for (const [name, child] of children) {
      const width = child.value / total;
      if (width < least) continue;
      found.push({ name, depth, x, width, value: child.value });
      walk(child, depth + 1, x);
      x += width;
    }
  };
  if (total > 0) walk(root, 0, 0);
  return { total, boxes: found };
}

/** A colour of eight by the function's name, so that one looks the same in two graphs. */
export function hue(name: string): number {
  let hash = 0;
  for (let i = 0; i < name.length; i++) hash = (hash * 31 + name.charCodeAt(i)) | 0;
  return Math.abs(hash) % 8;
}
