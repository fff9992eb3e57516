// Writes dist/: the server as a few files of JavaScript, together with most of its packages. Loaded one by one, a thousand
// modules take twice the time of a start, and memory for good. Run it by `deploy/build`; with a folder as its argument it writes
// the same there.
import { cp, mkdir, mkdtemp, readdir, readFile, rename, rm, stat, utimes } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, dirname, join, relative } from 'node:path';
import { argv } from 'node:process';
import { build, type BuildOptions, type Plugin } from 'esbuild';

const ROOT = join(import.meta.dirname, '..');
const DIST = join(ROOT, 'dist');
/** Packages with pages, programs or libraries. */
const APART = ['@fastify/swagger-ui', 'ffmpeg-static', 'koffi'];
/** Modules of packages that look for files beside their own. */
const LOOKING = /node_modules\/(@fastify\/swagger|ioredis|mediasoup|pino|thread-stream)\/.*\.js$/;
/** Files read at run time, beside the module that reads them. */
const FILES = ['cluster/redis/lua', 'src/web/pages'];
/** Files among them that only the type check reads. */
const CHECKED = /(?:\.ts|tsconfig\.json)$/;

/** Resolves such modules in their package, where they find the files. */
const inPlace: Plugin = {
  name: 'in place',
  setup: ({ onLoad }) =>
    onLoad({ filter: LOOKING }, async ({ path }) => {
      const place = `(DIST + ${JSON.stringify(`/${relative(DIST, dirname(path))}`)})`;
      return { contents: (await readFile(path, 'utf8')).replaceAll(/\b__dirname\b/g, place) };
    }),
};

/**
 * Replaces import statements for built-in modules by calls: a statement runs the getters of all exports, which load more, such
 * as an HTTP client (undici) for `node:http` that takes 30 ms of a start.
 */
const builtIn: Plugin = {
  name: 'built in',
  setup: ({ onResolve, onLoad }) => {
    const namespace = 'built-in';
    onResolve({ filter: /^(node:)?(http|fs|process|util)$/ }, ({ path, kind }) =>
      kind === 'import-statement' ? { path, namespace } : undefined,
    );
    onLoad({ filter: /./, namespace }, ({ path }) => ({
      contents: `module.exports = process.getBuiltinModule(${JSON.stringify(path)});`,
    }));
  },
};

/** Packages of CommonJS without which publishers can be served. */
const LATER = /^(cron-parser|fast-json-stringify|fastify)$/;

/** Runs such packages at their first use, and not where they are imported: together they take a tenth of a start. */
const atFirstUse: Plugin = {
  name: 'at first use',
  setup: ({ onResolve, onLoad }) => {
    const namespace = 'at first use';
    onResolve({ filter: LATER }, ({ path, kind, importer }) =>
      kind === 'import-statement' && !importer.includes('node_modules') ? { path, namespace } : undefined,
    );
    onLoad({ filter: /./, namespace }, ({ path }) => ({
      contents: [
        `const load = () => require(${JSON.stringify(path)});`,
        'module.exports = (...args) => load()(...args);',
        `for (const name of ${JSON.stringify(Object.keys(createRequire(import.meta.url)(path) as object))})`,
        '  Object.defineProperty(module.exports, name, { enumerable: true, get: () => load()[name] });',
      ].join('\n'),
      resolveDir: ROOT,
    }));
  },
};

const began = new Date();
const folder = await mkdtemp(join(ROOT, '.dist-'));
try {
  const server = await bundle({
    entryPoints: ['src/main.ts', 'src/recording/delivery/bucket-thread.ts'],
    splitting: true,
    target: 'node24',
  });
  const commands = await bundle({ entryPoints: ['src/cli/sign.ts', 'src/cli/audit.ts'], target: 'node20' });
  for (const file of [...server, ...commands]) {
    if (file.endsWith('.js') && (await readFile(join(ROOT, file), 'utf8')).includes('__dirname'))
      throw new Error(`${basename(file)}: a package that is not listed here looks for files beside its own`);
  }
  const filter = (path: string): boolean => !CHECKED.test(path);
  for (const path of FILES) await cp(join(ROOT, path), join(folder, basename(path)), { recursive: true, filter });
  // a source that changed during the build is newer
  await utimes(join(folder, 'main.js'), began, began);
  const [, , target] = argv;
  await (target === undefined ? replaceDist() : cp(folder, target, { recursive: true }));
} finally {
  await rm(folder, { recursive: true, force: true });
}

/** @returns paths of the written files, relative to the root of the tree */
async function bundle(options: BuildOptions): Promise<string[]> {
  const { metafile } = await build({
    ...options,
    absWorkingDir: ROOT,
    entryNames: '[name]',
    outdir: folder,
    bundle: true,
    external: APART,
    platform: 'node',
    format: 'esm',
    plugins: [inPlace, builtIn, atFirstUse],
    // node_modules may be a link: keeps the paths that a copy of the tree has
    preserveSymlinks: true,
    // globals that CommonJS modules need
    banner: {
      js: [
        "import { createRequire as createRequireOfBundle } from 'node:module';",
        'const require = createRequireOfBundle(import.meta.url), DIST = import.meta.dirname;',
      ].join('\n'),
    },
    sourcemap: 'linked',
    sourcesContent: false,
    // V8 keeps the text of what it loads: a third of it is comments and indentation, and one character that is not ASCII
    // makes every character of a file take two bytes
    minifyWhitespace: true,
    lineLimit: 200,
    legalComments: 'linked',
    logLevel: 'warning',
    metafile: true,
  });
  return Object.keys(metafile.outputs);
}

/** A running server may yet load parts of the previous build: they stay until the next one. */
async function replaceDist(): Promise<void> {
  await mkdir(DIST, { recursive: true });
  const old = await readdir(DIST);
  const since = old.includes('main.js') ? (await stat(join(DIST, 'main.js'))).mtimeMs : Infinity;
  const made = await readdir(folder);
  // main.js last, since it names the others
  for (const name of made.filter((one) => one !== 'main.js').concat('main.js')) await replace(name);
  for (const name of old.filter((one) => !made.includes(one))) {
    if ((await stat(join(DIST, name))).mtimeMs < since) await rm(join(DIST, name), { recursive: true, force: true });
  }
}

async function replace(name: string): Promise<void> {
  const isFolder = (await stat(join(folder, name))).isDirectory();
  if (isFolder) await rm(join(DIST, name), { recursive: true, force: true });
  await rename(join(folder, name), join(DIST, name));
}
