import { enableCompileCache } from 'node:module';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';

// Each file has a thread of its own, which would compile ava, strip the types of all that the file imports and compile
// that anew. Threads, and processes that tests start, inherit the folder by the environment.
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, 'node_modules/.cache/node');
enableCompileCache(process.env.NODE_COMPILE_CACHE);

export default {
  // Tests wait for half of their time. With still more at once, those with real clients starve each other.
  concurrency: Math.max(3, Math.ceil(1.5 * availableParallelism())),
  extensions: ['ts'],
  // the long ones are for `npm run test:all`
  files: ['test/**/*.test.ts', ...(process.env.KILN_TESTS === 'all' ? [] : ['!test/**/*.long.test.ts'])],
  require: [
    './test/support/runner/quick-imports.js',
    './test/support/runner/fail-on-warning.ts',
    './test/support/runner/no-programs.ts',
  ],
  // a guard against hanging: a test fails by itself when it waits for too long, and this ends the whole run
  timeout: '10m',
};
