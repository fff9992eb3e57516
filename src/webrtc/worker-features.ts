import { readFileSync } from 'node:fs';
import { workerBin } from 'mediasoup';

/** Marker in workers that deploy/build-mediasoup-worker builds. */
const EXTENSION_IDS = 'kiln:consumers-have-extension-ids';

let found: boolean | undefined;

/**
 * Whether consumers can have their own identifiers for header extensions: not with mediasoup's own worker. Reads the
 * worker's file once.
 */
export function mapsExtensionIds(): boolean {
  found ??= readFileSync(process.env['MEDIASOUP_WORKER_BIN'] ?? workerBin).includes(EXTENSION_IDS);
  return found;
}
