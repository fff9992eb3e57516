import { globSync, readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { join } from 'node:path';

const TESTS = join(import.meta.dirname, '../..');
const ONE_BY_ONE = new URL('one-by-one.ts', import.meta.url).href;
const COLLECTED = new URL('collected.ts', import.meta.url).href;

/** What a file says with these words is true of all tests of its process, and the virtual cluster replaces modules of it. */
const NEEDS_A_PROCESS = /\btest\.(?:before|after)|\/virtual-cluster\/|\/runner\/(?:long|shared)\.|\/shared-nodes\./;

/**
 * Files of a folder that share a process, as `importRoom` takes it and relative to `test/`: a process for each file takes longer
 * than its tests, or nearly.
 * @param room - the folder, relative to `test/`
 */
export function filesOfRoom(room: string): string[] {
  const files = globSync(`${room}/**/*.test.ts`, { cwd: TESTS, exclude: ['**/*.long.test.ts'] }).toSorted();
  return files.filter((file) => !NEEDS_A_PROCESS.test(readFileSync(join(TESTS, file), 'utf8')));
}

/**
 * Declares the tests of a folder in the file that is running. Their titles differ within the folder. Those of `test/unit/` run one
 * after the other, others as in files of their own.
 * @param room - the folder, relative to `test/`
 */
export async function importRoom(room: string): Promise<void> {
  const url = room.startsWith('unit/') ? ONE_BY_ONE : COLLECTED;
  registerHooks({
    resolve: (specifier, context, next) =>
      specifier === 'ava' && context.parentURL?.endsWith('.test.ts') === true
        ? { url, format: 'module-typescript', shortCircuit: true }
        : next(specifier, context),
  });
  for (const file of filesOfRoom(room)) await import(join(TESTS, file));
  if (url !== COLLECTED) return;
  // ava's configuration reads this file, too, where ava cannot be imported
  const { declareCollected } = await import('./collected.ts');
  declareCollected();
}
