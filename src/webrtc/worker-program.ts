import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** Path of mediasoup's worker: the one in its package, unless the environment names another. */
export const WORKER_PROGRAM =
  process.env['MEDIASOUP_WORKER_BIN'] ||
  fileURLToPath(new URL('../../worker/out/Release/mediasoup-worker', import.meta.resolve('mediasoup')));

/** Exit code of a worker without mediasoup's version in its environment. */
const NO_VERSION = 41;

/** Runs the worker's program for a moment. @throws Error when it is missing or cannot run here */
export function checkWorkerProgram(): Promise<void> {
  const { MEDIASOUP_VERSION: _, ...env } = process.env;
  return new Promise((resolve, reject) => {
    execFile(WORKER_PROGRAM, { env }, (error) => {
      if (error?.code === NO_VERSION) resolve();
      else reject(error ?? new Error(`${WORKER_PROGRAM} is no mediasoup worker`));
    });
  });
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
