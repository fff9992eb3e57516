import childProcess from 'node:child_process';
import { syncBuiltinESMExports } from 'node:module';
import { sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import test from 'ava';

/*
 * Loaded before each file of tests (`require` in ava.config.js). Tests in test/unit/ are pure: a program that one of
 * them starts, directly or through the code under test, is an error where it is started, and fails the file even where
 * that error is handled.
 */
const WAYS = ['spawn', 'spawnSync', 'exec', 'execSync', 'execFile', 'execFileSync', 'fork'] as const;

const file = fileURLToPath(test.meta.file);
if (file.includes(`${sep}test${sep}unit${sep}`)) {
  for (const way of WAYS) Object.assign(childProcess, { [way]: refuse });
  syncBuiltinESMExports();
}

function refuse(program: string): never {
  const error = new Error(`a test in test/unit/ starts ${program}: it belongs in test/component/`);
  setImmediate(() => {
    throw error;
  });
  throw error;
}
