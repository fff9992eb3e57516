// Writes dist/: the server as a few files of JavaScript, together with most of its packages. Loaded one by one, a thousand
// modules take twice the time of a start, and memory for good. Run it by `deploy/build`.
import { chmod, cp, mkdtemp, readFile, rename, rm, utimes } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { build } from 'esbuild';

const ROOT = join(import.meta.dirname, '..');
const DIST = join(ROOT, 'dist');
/** Packages that read files beside their own, or bring programs and libraries. */
const APART = ['@fastify/swagger', '@fastify/swagger-ui', 'ffmpeg-static', 'ioredis', 'koffi', 'mediasoup', 'pino'];
/** What is read at run time, beside the module that reads it. */
const FILES = ['cluster/redis/lua', 'src/web/pages'];
const READS_BESIDE = /\b__dirname\b|\b__filename\b/;

const began = new Date();
const folder = await mkdtemp(join(ROOT, '.dist-'));
try {
  const { metafile } = await build({
    absWorkingDir: ROOT,
    entryPoints: ['src/main.ts', 'src/tasks/record/delivery/upload-thread.ts'],
    entryNames: '[name]',
    outdir: folder,
    bundle: true,
    splitting: true,
    external: APART,
    platform: 'node',
    target: 'node24',
    format: 'esm',
    banner: {
      // packages of CommonJS ask for it
      js: "import { createRequire } from 'node:module';\nconst require = createRequire(import.meta.url);",
    },
    sourcemap: 'linked',
    sourcesContent: false,
    legalComments: 'linked',
    logLevel: 'warning',
    metafile: true,
  });
  for (const file of Object.keys(metafile.outputs)) {
    if (file.endsWith('.js') && READS_BESIDE.test(await readFile(join(ROOT, file), 'utf8')))
      throw new Error(`${basename(file)}: a package looks for files beside its own and belongs to those kept apart`);
  }
  for (const path of FILES) await cp(join(ROOT, path), join(folder, basename(path)), { recursive: true });
  // a source that has changed meanwhile is newer
  await utimes(join(folder, 'main.js'), began, began);
  await chmod(folder, 0o755);
  await rm(DIST, { recursive: true, force: true });
  await rename(folder, DIST);
} finally {
  await rm(folder, { recursive: true, force: true });
}
