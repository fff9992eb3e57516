import { enableCompileCache } from 'node:module';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';

// Each file has a thread of its own, which would compile ava, strip the types of all that the file imports and compile
// that anew. Threads, and processes that tests start, inherit the folder by the environment.
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, 'node_modules/.cache/node');
enableCompileCache(process.env.NODE_COMPILE_CACHE);

export default {
  // with more at once, tests with real clients starve each other
  concurrency: Math.max(2, availableParallelism()),
  extensions: ['ts'],
  files: ['test/**/*.test.ts'],
  require: ['./test/support/quick-imports.js', './test/support/fail-on-warning.ts', './test/support/no-programs.ts'],
  timeout: '2m',
};
