// Writes package.json and package-lock.json for one package and what that needs, at the versions of a lock file, into a
// folder of its name. They change with that part of the lock file only, so a layer of an image that is made of them stays.
//
//   node deploy/lock-part.ts package-lock.json mediasoup
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { argv } from 'node:process';

interface Package {
  readonly version: string;
  readonly dependencies?: Readonly<Record<string, string>>;
}

const [, , file = '', name = ''] = argv;
const { packages, ...lock } = JSON.parse(readFileSync(file, 'utf8')) as { packages: Record<string, Package> };

/** Where a package that is at `path` finds another one: beside its own, or further up. */
function find(needed: string, path: string): string {
  for (let folder = path; ; folder = folder.slice(0, Math.max(folder.lastIndexOf('/node_modules/'), 0))) {
    const found = join(folder, 'node_modules', needed);
    if (found in packages) return found;
    if (folder === '') throw new Error(`${file} has no ${needed}`);
  }
}

const part = new Map<string, Package>();
const open = [find(name, '')];
for (let path = open.pop(); path !== undefined; path = open.pop()) {
  const one = packages[path] as Package;
  if (part.has(path)) continue;
  part.set(path, one);
  for (const needed of Object.keys(one.dependencies ?? {})) open.push(find(needed, path));
}

const root = { private: true, dependencies: { [name]: packages[find(name, '')]?.version } };
const sorted = Object.fromEntries([...part].toSorted(([a], [b]) => (a < b ? -1 : 1)));
mkdirSync(name, { recursive: true });
writeFileSync(join(name, 'package.json'), JSON.stringify(root));
writeFileSync(
  join(name, 'package-lock.json'),
  JSON.stringify({ ...lock, name: undefined, version: undefined, packages: { '': root, ...sorted } }),
);
