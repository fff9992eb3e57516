import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { runProgram } from '../lib/run-program.ts';

/** Path of mediasoup's worker: the one in its package, unless the environment names another. */
export const WORKER_PROGRAM =
  process.env['MEDIASOUP_WORKER_BIN'] ||
  fileURLToPath(new URL('../../worker/out/Release/mediasoup-worker', import.meta.resolve('mediasoup')));

/** Exit code of a worker without mediasoup's version in its environment. */
const NO_VERSION = 41;
/** A program that can run here ends at once. */
const CHECK_MS = 30_000;

/** Runs the worker's program for a moment. @throws Error when it is missing or cannot run here */
export async function checkWorkerProgram(): Promise<void> {
  const { MEDIASOUP_VERSION: _, ...env } = process.env;
  await runProgram(WORKER_PROGRAM, [], { timeoutMs: CHECK_MS, exitCode: NO_VERSION, env }).catch(
    (error: NodeJS.ErrnoException) => {
      if (error.code !== undefined) throw error;
      throw new Error(`the media worker cannot run here: ${error.message}`, { cause: error });
    },
  );
}

/** Marker in workers that deploy/build-mediasoup-worker builds. */
const EXTENSION_IDS = 'kiln:consumers-have-extension-ids';

let found: boolean | undefined;

/**
 * Whether consumers can have their own identifiers for header extensions: not with mediasoup's own worker. Reads the
 * worker's file once.
 */
export function mapsExtensionIds(): boolean {
  found ??= readFileSync(WORKER_PROGRAM).includes(EXTENSION_IDS);
  return found;
}
