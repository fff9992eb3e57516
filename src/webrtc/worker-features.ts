import { readFileSync } from 'node:fs';
import { workerBin } from 'mediasoup';

/** What deploy/build-mediasoup-worker puts into the worker that it builds. */
const EXTENSION_IDS = 'kiln:consumers-have-extension-ids';

let found: boolean | undefined;

/**
 * Whether consumers can have numbers of their own for header extensions, which those of a worker from mediasoup itself have not. The
 * worker's file is read once.
 */
export function mapsExtensionIds(): boolean {
  found ??= readFileSync(process.env['MEDIASOUP_WORKER_BIN'] ?? workerBin).includes(EXTENSION_IDS);
  return found;
}
