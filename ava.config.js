import { availableParallelism } from 'node:os';

export default {
  // most of the time tests with real clients wait, so a core has work for more than one file
  concurrency: 2 * availableParallelism(),
  extensions: ['ts'],
  files: ['test/**/*.test.ts'],
  require: ['./test/support/compile-cache.ts', './test/support/fail-on-warning.ts', './test/support/no-programs.ts'],
  timeout: '2m',
};
