import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import test, { type ExecutionContext, type Implementation } from 'ava';
import { processTree, programOf } from '../load/usage.ts';
import { ALL } from './all.ts';
import { placed } from './placed-error.ts';

/*
 * ava has one limit for a whole run. Where it is reached its TAP reporter ends the run without naming the test that hung, so each
 * test and each hook has a limit of its own. A test that blocks its thread cannot be told so: it stands in the name of its process,
 * which lists of processes show.
 */

/** Longer than anything takes but the long tests of `npm run test:all`, and less than ava's limit. */
const LIMIT_MS = 8 * 60_000;
const TEARDOWN_LIMIT_MS = LIMIT_MS + 60_000;

// tests may replace those of the process
const { setTimeout, clearTimeout } = globalThis;

const file = basename(fileURLToPath(test.meta.file));
const running = new Set<string>();

/** Runs a test, and fails it when it does not end. A teardown that does not end fails its file. */
export async function runTest(t: ExecutionContext, run: Implementation<unknown[]>, args: unknown[]): Promise<void> {
  const tooLate = setTimeout(() => {
    if (!ALL) throw hung(t.title);
  }, TEARDOWN_LIMIT_MS);
  running.add(t.title);
  show();
  // what was registered first is run last
  t.teardown(() => {
    clearTimeout(tooLate);
    running.delete(t.title);
    show();
  });
  await runHook(t, run, args);
}

/** Runs a hook, which has no teardown. */
export async function runHook(t: ExecutionContext, run: Implementation<unknown[]>, args: unknown[]): Promise<void> {
  if (typeof run !== 'function') throw new TypeError('macros are not guarded');
  const { promise, reject } = Promise.withResolvers<never>();
  const tooLate = setTimeout(() => {
    if (!ALL) reject(hung(t.title));
  }, LIMIT_MS);
  try {
    await Promise.race([run(t, ...args), promise]);
  } catch (error) {
    throw placed(error);
  } finally {
    clearTimeout(tooLate);
  }
}

function show(): void {
  process.title = [file, ...running].join(' > ');
}

function hung(title: string): Error {
  const open = process.getActiveResourcesInfo().join(', ');
  const [, ...programs] = processTree(process.pid).map(programOf);
  return new Error(`"${title}" does not end; open are ${open}; programs that run: ${programs.join(', ') || 'none'}`);
}
