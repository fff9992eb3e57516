import { globSync, readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { join } from 'node:path';

const TESTS = join(import.meta.dirname, '../..');
const ONE_BY_ONE = new URL('one-by-one.ts', import.meta.url).href;

/** What a file says with these words is true of all tests of its process, and the virtual cluster replaces modules of it. */
const NEEDS_A_PROCESS = /\btest\.(?:before|after)|\/virtual-cluster\//;

/**
 * Files of `test/unit/<room>/` that share a process, as paths relative to `test/`: a process for each file takes longer than its
 * tests.
 */
export function filesOfRoom(room: string): string[] {
  const files = globSync(`unit/${room}/**/*.test.ts`, { cwd: TESTS, exclude: ['**/*.long.test.ts'] }).toSorted();
  return files.filter((file) => !NEEDS_A_PROCESS.test(readFileSync(join(TESTS, file), 'utf8')));
}

/** Declares the tests of rooms in the file that is running, to run one after the other. Their titles differ within the file. */
export async function importRoom(room: string): Promise<void> {
  registerHooks({
    resolve: (specifier, context, next) =>
      specifier === 'ava' && context.parentURL?.endsWith('.test.ts') === true
        ? { url: ONE_BY_ONE, format: 'module-typescript', shortCircuit: true }
        : next(specifier, context),
  });
  for (const file of filesOfRoom(room)) await import(join(TESTS, file));
}
