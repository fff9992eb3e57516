import { placed } from './placed-error.ts';

/**
 * What every test file loads first (`require` of ava's configuration): a warning of Node's, as of a leak of listeners,
 * fails the file. The tests in it go on: the promise is reported when they are over.
 */
process.on('warning', (warning) => {
  void Promise.reject(warning);
});

// before ava reports them
process.prependListener('unhandledRejection', placed);
process.prependListener('uncaughtException', placed);
