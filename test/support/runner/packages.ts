import { createHash } from 'node:crypto';
import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import http from 'node:http';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build, type Plugin } from 'esbuild';

const ROOT = join(import.meta.dirname, '../../..');
/** What is made names its place: several trees may have links to one. */
const PLACE = realpathSync(join(ROOT, 'node_modules'));
const CACHE = join(PLACE, '.cache');
const INDEX = 'index.json';

/** What ava runs in the process of a file. */
const WORKER = 'ava/lib/worker/base.js';
/** Packages of CommonJS, whose names esbuild does not export. */
const COMMON_JS = ['fastify', 'ioredis', 'pino'];
const MODULES = [
  'ava',
  'typebox',
  'typebox/compile',
  'typebox/schema',
  'typebox/value',
  '@fastify/type-provider-typebox',
];

/**
 * Bundles the packages that tests load most, ava's worker included, unless these versions are bundled already: a process loads
 * up to 1,500 of their modules, which takes longer than the tests of most files.
 * @returns a file with a JSON object from import specifiers to URLs of modules, for `quick-imports.js`
 */
export async function bundlePackages(): Promise<string> {
  const versions = createHash('sha256').update(PLACE);
  for (const file of [join(ROOT, 'package-lock.json'), import.meta.filename]) versions.update(readFileSync(file));
  const folder = join(CACHE, `test-packages-${versions.digest('hex').slice(0, 16)}`);
  const index = join(folder, INDEX);
  if (existsSync(index)) return index;
  await mkdir(CACHE, { recursive: true });
  const made = await mkdtemp(join(CACHE, '.test-packages-'));
  // programs that tests start as another user read it, too
  await chmod(made, 0o755);
  try {
    await bundleInto(made);
    const files = [WORKER, ...COMMON_JS, ...MODULES, 'node:http'].map((one) => [
      one,
      pathToFileURL(join(folder, fileOf(one))),
    ]);
    await writeFile(join(made, INDEX), JSON.stringify(Object.fromEntries(files)));
    await rename(made, folder).catch((error: unknown) => {
      // another run was faster
      if (!existsSync(index)) throw error;
    });
  } finally {
    await rm(made, { recursive: true, force: true });
  }
  return index;
}

const fileOf = (specifier: string): string => `${specifier.replaceAll('/', '+')}.mjs`;

async function bundleInto(folder: string): Promise<void> {
  const entries = [
    { in: join(PLACE, WORKER), out: fileOf(WORKER) },
    ...[...COMMON_JS, ...MODULES].map((one) => ({ in: one, out: fileOf(one) })),
  ];
  await build({
    absWorkingDir: ROOT,
    entryPoints: entries.map((entry) => ({ ...entry, out: entry.out.replace(/\.mjs$/, '') })),
    outdir: folder,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node24',
    minifyWhitespace: true,
    plugins: [withoutProviders, inPlace, withNames],
    banner: { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);" },
    logLevel: 'warning',
  });
  await writeFile(join(folder, fileOf('node:http')), HTTP);
}

/**
 * `node:http` without its getters: an import runs those of all exports, and some load an HTTP client (undici), which takes as long
 * as the rest of Node's start.
 */
const HTTP = `const all = process.getBuiltinModule('node:http'); export default all; export const { ${valuesOf(http).join()} } = all;`;

function valuesOf(module: object): string[] {
  const properties = Object.entries(Object.getOwnPropertyDescriptors(module));
  return properties.flatMap(([name, property]) => ('value' in property ? [name] : []));
}

/** Leaves out what ava loads to compile tests, half of its packages: nothing compiles these. */
const withoutProviders: Plugin = {
  name: 'without providers',
  setup: ({ onLoad }) =>
    onLoad({ filter: /\/ava\/lib\/provider-manager\.js$/ }, () => ({ contents: 'export default {};' })),
};

/** Lets modules that look for files beside their own find them. */
const inPlace: Plugin = {
  name: 'in place',
  setup: ({ onLoad }) =>
    onLoad({ filter: /node_modules\/(ioredis|pino|thread-stream)\/.*\.js$/ }, async ({ path }) => ({
      contents: (await readFile(path, 'utf8')).replaceAll(/\b__dirname\b/g, JSON.stringify(dirname(path))),
    })),
};

const withNames: Plugin = {
  name: 'with names',
  setup({ onResolve, onLoad }) {
    const namespace = 'with names';
    onResolve({ filter: new RegExp(`^(${COMMON_JS.join('|')})$`) }, ({ path, kind }) =>
      kind === 'entry-point' ? { path, namespace } : undefined,
    );
    onLoad({ filter: /./, namespace }, async ({ path }) => {
      const names = Object.keys((await import(path)) as object).filter(
        (name) => /^\w+$/.test(name) && name !== 'default',
      );
      const contents = `const all = require(${JSON.stringify(path)}); export default all; export const { ${names.join()} } = all;`;
      return { contents, resolveDir: ROOT };
    });
  },
};
