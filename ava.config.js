import { availableParallelism } from 'node:os';

export default {
  // most of the time tests with real clients wait, so two cores have work for three files
  concurrency: Math.ceil(1.5 * availableParallelism()),
  extensions: ['ts'],
  files: ['test/**/*.test.ts'],
  require: ['./test/support/compile-cache.ts', './test/support/fail-on-warning.ts', './test/support/no-programs.ts'],
  timeout: '2m',
};
