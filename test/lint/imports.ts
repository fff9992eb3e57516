import { globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { argv, exit, stdout } from 'node:process';
import { objection } from './rooms.ts';

const CLUSTER = '#cluster';

/** `import ... from 'x'`, `export ... from 'x'` (types too) and `import 'x'`, at the start of a line. */
const STATEMENT =
  /^\s*(?:import|export)\s+(type\s+)?(?:(?:[\w$]+|\*(?:\s+as\s+[\w$]+)?)?\s*,?\s*(?:\{[^}]*\})?\s*from\s*)?['"]([^'"]+)['"]/gm;
/** `import('x')`, of a value or of a type. */
const CALL = /\b(import)\(\s*['"]([^'"]+)['"]/g;

export interface Import {
  readonly specifier: string;
  /** Gone at run time: `import type` and `export type`. */
  readonly typeOnly: boolean;
}

/** What a source file imports, in the words of its import statements and calls. */
export function imports(source: string): Import[] {
  return [STATEMENT, CALL].flatMap((pattern) =>
    [...source.matchAll(pattern)].map(([, mark, specifier = '']) => ({
      specifier,
      typeOnly: mark?.startsWith('type') ?? false,
    })),
  );
}

/**
 * Checks the direction of imports between rooms, of types too, and that nothing a file loads loads the
 * file itself. Within a room a parent and its child may name each other's types.
 * @param files source text by path from the root of the repository
 * @returns a line for each fault
 */
export function faults(files: ReadonlyMap<string, string>): string[] {
  const graph = new Map<string, string[]>();
  const found: string[] = [];
  for (const [path, source] of files) {
    const targets: string[] = [];
    for (const { specifier, typeOnly } of imports(source)) {
      const target = resolve(path, specifier);
      if (target === undefined) continue;
      if (!typeOnly) targets.push(target);
      const wrong = specifier === CLUSTER ? undefined : objection(path, target);
      if (wrong !== undefined) found.push(`${path} imports ${target}: ${wrong}`);
    }
    graph.set(path, targets);
  }
  return [...found, ...cycles(graph).map((cycle) => `import cycle: ${cycle.join(' -> ')}`)];
}

/** Path of an imported file of this repository; undefined for a package. */
function resolve(importer: string, specifier: string): string | undefined {
  if (specifier === CLUSTER) return 'cluster/index.ts';
  return specifier.startsWith('.') ? normalize(join(dirname(importer), specifier)) : undefined;
}

/** Every import that closes a circle, as the path of that circle. */
function cycles(graph: ReadonlyMap<string, readonly string[]>): string[][] {
  const found: string[][] = [];
  const finished = new Set<string>();
  const trail: string[] = [];
  const visit = (file: string): void => {
    const start = trail.indexOf(file);
    if (start >= 0) found.push([...trail.slice(start), file]);
    if (start >= 0 || finished.has(file)) return;
    trail.push(file);
    for (const target of graph.get(file) ?? []) visit(target);
    trail.pop();
    finished.add(file);
  };
  for (const file of graph.keys()) visit(file);
  return found;
}

if (argv[1] === import.meta.filename) {
  const paths = globSync('{src,cluster}/**/*.{ts,js}');
  const found = faults(new Map(paths.map((path) => [path, readFileSync(path, 'utf8')])));
  for (const fault of found) stdout.write(`${fault}\n`);
  exit(found.length === 0 ? 0 : 1);
}
